"""Pictures of the console with the sample data, for docs/console.md and the guides of the office: `make screenshots`.

A server of its own is started and filled in. The pictures are few and have 256 colours, because each new version of
them adds as much to the repository's history.
"""

import argparse
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import httpx

from plankeeper.core.encryption.cipher import create_key_file
from support.chromium import chromium_flags, chromium_program
from support.console import wait_until_signed_in
from support.imports import OFFICE_FILE
from support.program import ServeProcess
from support.receiver import Receiver

EMAIL = "demo@plankeeper.example"
SIZES = {"1280": {"width": 1280, "height": 860}, "390": {"width": 390, "height": 844}}
COLORS = 256


class Picture(NamedTuple):
    """A page of the console, and the variants that there are besides the wide and light one."""

    name: str
    path: str  # with the names of the addresses of `find_addresses`
    variants: tuple[str, ...] = ()

    def files(self) -> dict[str, str]:
        """The file name of each variant."""
        return {variant: f"{self.name}-{variant}.png" for variant in ("1280", *self.variants)}


PICTURES = (
    Picture("home", "/console", ("390", "1280-dark")),
    Picture("participants", "/console/participants"),
    Picture("participant", "{participant}", ("390", "1280-dark")),
    Picture("participant-timeline", "{participant}/timeline"),
    Picture("invoices", "/console/invoices", ("390",)),
    Picture("invoice", "{invoice}", ("390",)),
    Picture("invoice-duplicate", "{duplicate}", ("1280-dark",)),
    Picture("claim-batch-new", "/console/claims/new"),
    Picture("claim-batch", "{claim_batch}"),
    Picture("payment-run-new", "/console/payments/new"),
    Picture("payment-run", "{payment_run}"),
    Picture("fees", "/console/payments/fees"),
    Picture("statement-run", "{statement_run}"),
    Picture("invoices-by-manager", "/console/invoices?group=account_manager"),
    Picture("search", "/console/search?q=nguyen"),
    Picture("import-check", "{import}"),
    Picture("api-keys", "/console/settings/keys"),
    Picture("webhook", "{webhook}"),
    Picture("settings", "/console/settings"),
    Picture("sign-in", "/console/sign-in"),
)


@contextmanager
def serving() -> Iterator[ServeProcess]:
    """The sample data on a server with a webhook endpoint that has received and rejected messages."""
    with TemporaryDirectory() as folder, Receiver() as receiver:
        Path(folder).chmod(0o755)
        key_file = Path(folder) / "secret.keys"
        create_key_file(key_file)
        server = ServeProcess(
            Path(folder) / "data",
            "--demo",
            PLANKEEPER_SECRET_KEY_FILE=str(key_file),
            PLANKEEPER_WEBHOOK_WORKER="on",
            PLANKEEPER_WEBHOOK_ALLOWED_NETWORKS="127.0.0.1",
        )
        try:
            with server.client() as client:
                add_records(client, receiver)
            yield server
        finally:
            server.stop()


def add_records(client: httpx.Client, receiver: Receiver) -> None:
    endpoint = client.post("/webhook-endpoints", json={"url": f"{receiver.url}/hooks", "description": "Ledger"}).json()
    receiver.respond = lambda _headers, _body: (204 if len(receiver.received) > 1 else 500, {}, b"")
    client.post(f"/webhook-endpoints/{endpoint['id']}/test")
    client.post("/note-types", json={"note_type": "Home visit", "badge_color": "#7c3aed"})
    for path in ("/participants?limit=3", "/providers?limit=2", "/note-types/999999"):
        client.get(path)


def find_addresses(page: Any, client: httpx.Client) -> dict[str, str]:
    """The addresses of records that a visitor would look for, by name."""
    duplicate, participant = find_duplicate(client)
    endpoint = client.get("/webhook-endpoints").json()["data"][0]["id"]
    page.goto("/console/imports/new")
    file = {"name": "people.csv", "mimeType": "text/csv", "buffer": OFFICE_FILE.encode()}
    page.get_by_label("File", exact=True).set_input_files(file)
    page.get_by_role("button", name="Check file").click()
    page.get_by_role("button", name=re.compile("^Import ")).wait_for()
    paths = ("/claim-batches", "/payment-runs", "/statement-runs")
    batches, runs, statement_runs = (client.get(each).json()["data"] for each in paths)
    return {
        "claim_batch": f"/console/claims/{next(each['id'] for each in batches if each['state'] == 'processed')}",
        "payment_run": f"/console/payments/{next(each['id'] for each in runs if each['state'] == 'paid')}",
        "statement_run": f"/console/statements/{statement_runs[0]['id']}",
        "participant": f"/console/participants/{participant}",
        "duplicate": f"/console/invoices/{duplicate}",
        "invoice": f"/console/invoices/{find_document(client)}",
        "webhook": f"/console/settings/webhooks/{endpoint}",
        "import": page.url,
    }


def find_duplicate(client: httpx.Client) -> tuple[str, str]:
    """The ids of an invoice that could be a duplicate, and of its participant."""
    for offset in count(0, 100):
        body = client.get("/invoices", params={"limit": 100, "offset": offset}).raise_for_status().json()
        for each in body["data"]:
            if "possible_duplicate" in each["state_management"]["errors"] and each["participant_id"]:
                return each["id"], each["participant_id"]
        assert body["pagination"]["has_more"], "the sample data has no duplicate"
    raise AssertionError


def find_document(client: httpx.Client) -> str:
    """The id of an invoice with a document, whose claim isn't made yet."""
    found = client.get("/invoices", params={"sort": "-id", "limit": 500}).raise_for_status().json()["data"]
    return next(each["id"] for each in found if each["document"] and each["claim_status"] in ("new", "on_hold"))


def sign_in(page: Any, server: ServeProcess) -> None:
    [password] = re.findall(rf"^Sign-in: +{EMAIL}, password (\S+)$", "\n".join(server.lines), re.MULTILINE)
    page.goto("/console/sign-in")
    page.get_by_label("Email").fill(EMAIL)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()
    wait_until_signed_in(page)


def save_screenshot(page: Any, file: Path, variant: str) -> None:
    """A screenshot of the page with few colours."""
    from PIL import Image

    size, _, scheme = variant.partition("-")
    page.set_viewport_size(SIZES[size])
    page.emulate_media(color_scheme=scheme or "light")
    page.wait_for_load_state("networkidle")  # the page of a document is drawn after the others
    page.screenshot(path=file)
    with Image.open(file) as image:
        image.convert("RGB").quantize(COLORS, dither=Image.Dither.NONE).save(file, optimize=True)


def take_screenshots(folder: Path) -> list[str]:
    """Take the pictures, and return their names."""
    from playwright.sync_api import sync_playwright

    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with serving() as server, server.client() as client, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium_program(), args=[*chromium_flags(), "--lang=en-AU"]
        )
        visitor, signed_in = (
            browser.new_context(base_url=server.url, reduced_motion="reduce", locale="en-AU").new_page()
            for _ in range(2)
        )
        sign_in(signed_in, server)
        addresses = find_addresses(signed_in, client)
        for picture in PICTURES:
            page = visitor if picture.name == "sign-in" else signed_in
            for variant, file_name in picture.files().items():
                response = page.goto(picture.path.format(**addresses))
                assert response.ok, picture
                save_screenshot(page, folder / file_name, variant)
        browser.close()
    return sorted(each.name for each in folder.iterdir())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write the screenshots of the console.")
    parser.add_argument("folder", type=Path)
    for each in take_screenshots(parser.parse_args().folder):
        sys.stdout.write(f"{each}\n")
