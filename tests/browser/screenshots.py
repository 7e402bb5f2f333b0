"""Pictures of every page with the demonstration's data, for docs/console.md: `make screenshots`.

A server of its own is started and filled in; the pages are found by following links, as a person would.
"""

import argparse
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
from pyotp import TOTP

from plankeeper.console.application import page_routes
from plankeeper.console.routing import PREFIX, PageRoute
from plankeeper.encryption.key_file import create_key_file
from support.chromium import chromium_flags, chromium_program
from support.factories import is_download
from support.mail import MailServer
from support.openid_provider import CLIENT_ID, CLIENT_SECRET, OpenIdProvider
from support.program import ServeProcess, run_program
from support.receiver import Receiver
from support.tls_front import PUBLIC_URL, TlsFront

PLAN_MANAGER, SECOND_PLAN_MANAGER = (f"017a5f00-0000-7000-8000-00000000da7{each}" for each in "ab")
WIDTHS = (1280, 390)
MAX_HEIGHT = 1300


def file_name(path: str) -> str:
    """`/console/settings/keys/{key_id}/rotate` is saved as `settings-keys-rotate`."""
    return "-".join(re.sub(r"\{.*?\}", "one", path).strip("/").split("/")[1:])


def find_route(address: str, pages: list[PageRoute]) -> PageRoute | None:
    """The page that an address leads to; one without ids goes before one with."""
    for entry in sorted(pages, key=lambda each: each.path.count("{")):
        if re.fullmatch(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(entry.path)), address):
            return entry
    return None


def crawl(page: Any, start: str) -> dict[str, str]:
    """An address of each page that links lead to, by its path."""
    pages = [
        each for each in page_routes() if each.method == "GET" and not is_download(each) and not each.calls_provider
    ]
    addresses, queue = dict[str, str](), [start]
    while queue:
        address = queue.pop(0)
        entry = find_route(address, pages)
        if entry is None or entry.path in addresses:
            continue
        addresses[entry.path] = address
        page.goto(address)
        links: list[str] = page.eval_on_selector_all("a[href^='/console']", "all => all.map(each => each.pathname)")
        queue += links
    return addresses


@contextmanager
def serving() -> Iterator[ServeProcess]:
    """The demonstration, with a webhook endpoint that has been sent something, and two sign-in providers."""
    with TemporaryDirectory() as folder, Receiver() as receiver:
        Path(folder).chmod(0o755)
        create_key_file(Path(folder) / "secret.keys")
        variables = {
            "PLANKEEPER_PUBLIC_URL": PUBLIC_URL,
            "PLANKEEPER_SECRET_KEY_FILE": str(Path(folder) / "secret.keys"),
        }
        server = ServeProcess(
            Path(folder) / "data",
            "--demo",
            **variables,
            PLANKEEPER_WEBHOOK_WORKER="on",
            PLANKEEPER_WEBHOOK_ALLOWED_NETWORKS="127.0.0.1",
        )
        try:
            with server.client() as client:
                _add_records(client, receiver)
            with OpenIdProvider() as provider:
                for plan_manager_id, issuer, domain in (
                    (PLAN_MANAGER, "https://login.wattlebird.example", "wattlebird.example"),
                    (SECOND_PLAN_MANAGER, provider.issuer, "saltbush.example"),
                ):
                    options = f"--plan-manager {plan_manager_id} --issuer {issuer} --domain {domain} --skip-check"
                    command = ["sso", "add", *options.split(), "--client-id", CLIENT_ID]
                    secret = f"{CLIENT_SECRET}\n".encode()
                    variables["PLANKEEPER_DATA_DIR"] = str(Path(folder) / "data")
                    assert run_program(*command, stdin=secret, **variables).returncode == 0
                provider.person = "robin@saltbush.example"
                yield server
        finally:
            server.stop()


def _add_records(client: httpx.Client, receiver: Receiver) -> None:
    endpoint = client.post("/webhook-endpoints", json={"url": f"{receiver.url}/hooks", "description": "Ledger"}).json()
    receiver.respond = lambda _headers, _body: (204 if len(receiver.received) > 1 else 500, {}, b"")
    client.post(f"/webhook-endpoints/{endpoint['id']}/test")
    client.post("/note-types", json={"note_type": "Home visit", "badge_color": "#7c3aed"})
    for path in ("/participants?limit=3", "/providers?limit=2", "/note-types/999999"):
        client.get(path)


def demo_password(server: ServeProcess) -> str:
    return re.findall(r"^Sign-in: +\S+, password (\S+)$", "\n".join(server.lines), re.MULTILINE)[0]


def sign_in(page: Any, server: ServeProcess) -> None:
    page.goto("/console/sign-in")
    page.get_by_label("Email").fill("demo@plankeeper.example")
    page.get_by_label("Password").fill(demo_password(server))
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("button", name="Sign out").or_(page.get_by_label("Code")).first.wait_for()


def save_screenshot(page: Any, folder: Path, name: str) -> None:
    """The whole page at each width, or the beginning of a long one."""
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        height = page.evaluate("document.documentElement.scrollHeight")
        clip = {"x": 0, "y": 0, "width": width, "height": min(height, MAX_HEIGHT)}
        page.screenshot(path=folder / f"{name}-{width}.png", full_page=True, clip=clip)
    page.set_viewport_size({"width": WIDTHS[0], "height": 900})


def settings(page: Any, browser: Any, folder: Path) -> None:
    """Pages that answer a form of the settings, and somebody who is invited."""
    page.goto("/console/settings/keys/new")
    page.get_by_label("Name").fill("Nightly report")
    page.get_by_role("button", name="Create key").click()
    save_screenshot(page, folder, "settings-keys-made")
    page.goto("/console/settings/webhooks/new")
    page.get_by_label("URL").fill("https://example.com/hooks")
    page.get_by_role("button", name="Create endpoint").click()
    save_screenshot(page, folder, "settings-webhooks-made")
    page.goto("/console/settings/people/invite")
    page.get_by_label("Email").fill("sam@example.com")
    page.get_by_label("Name").fill("Sam Nguyen")
    page.get_by_role("button", name="Create invitation").click()
    save_screenshot(page, folder, "settings-people-invited")
    other = browser.new_context(base_url=PUBLIC_URL, viewport={"width": 1280, "height": 900}, ignore_https_errors=True)
    guest = other.new_page()
    guest.goto(page.get_by_label("Invitation link").inner_text())
    save_screenshot(guest, folder, "invitations-one")
    guest.get_by_label("Password").fill("violet-harbour-93-lantern")
    guest.get_by_role("button", name="Join").click()
    guest.get_by_role("button", name="Sign out").click()
    save_screenshot(guest, folder, "sign-in")
    for name in ("single-sign-on", "single-sign-on/failed?reason=invitation"):
        guest.goto(f"/console/{name}")
        save_screenshot(guest, folder, name.partition("?")[0].replace("/", "-"))
    guest.goto(f"/console/single-sign-on/{SECOND_PLAN_MANAGER}/start")
    guest.get_by_role("heading", name="Link your account").wait_for()
    save_screenshot(guest, folder, "single-sign-on-link")
    other.close()


def mailed_links(browser: Any, folder: Path) -> None:
    """A forgotten password, on a server that sends mails."""
    with TemporaryDirectory() as data, MailServer() as mail:
        Path(data).chmod(0o755)
        settings = {"PLANKEEPER_SMTP_URL": mail.url(), "PLANKEEPER_PUBLIC_URL": PUBLIC_URL}
        server = ServeProcess(Path(data) / "data", "--demo", **settings)
        context = browser.new_context(base_url=PUBLIC_URL, viewport={"width": 1280, "height": 900})
        context.route(f"{PUBLIC_URL}/**", lambda route: forward(route, server.url))
        page = context.new_page()
        page.goto("/console/sign-in")
        page.get_by_role("link", name="Forgot your password?").click()
        save_screenshot(page, folder, "forgot-password")
        page.get_by_label("Email").fill("demo@plankeeper.example")
        page.get_by_role("button", name="Send link").click()
        page.get_by_role("heading", name="Look for an email").wait_for()
        save_screenshot(page, folder, "forgot-password-sent")
        [link] = mail.wait_for("demo@plankeeper.example").links
        page.goto(link)
        save_screenshot(page, folder, "reset-password-one")
        context.close()
        server.stop()


def forward(route: Any, url: str) -> None:
    """Lead a request for the public URL to the server, as a proxy does that terminates TLS."""
    request = route.request
    headers = {name: value for name, value in request.all_headers().items() if not name.startswith(":")}
    response = httpx.request(
        request.method, request.url.replace(PUBLIC_URL, url), content=request.post_data_buffer,
        headers=headers | {"host": PUBLIC_URL.removeprefix("https://"), "accept-encoding": "identity"},
    )  # fmt: skip
    route.fulfill(status=response.status_code, headers=dict(response.headers), body=response.content)


def imports(page: Any, folder: Path) -> None:
    """What a file would do, and what is wrong with one."""
    for name, content in {
        "import-faults": "note_type,badge_color\n,teal\nSchool visit,red\n",
        "import-preview": "note_type,badge_color\nSchool visit,teal\nCourt,#7c3aed\n",
    }.items():
        page.goto("/console/imports/new")
        page.get_by_label("Record type").select_option("note-types")
        file = {"name": "note-types.csv", "mimeType": "text/csv", "buffer": content.encode()}
        page.get_by_label("File", exact=True).set_input_files(file)
        page.get_by_role("button", name="Check file").click()
        save_screenshot(page, folder, name)
    page.get_by_role("button", name="Import").click()
    save_screenshot(page, folder, "import-done")


def two_factor(page: Any, server: ServeProcess, folder: Path) -> None:
    """Two-factor authentication: turned on, asked for, turned off."""
    page.goto("/console/account/two-factor")
    codes = TOTP(page.get_by_label("Setup key").inner_text().replace(" ", ""))
    page.get_by_label("Code").fill(codes.now())
    page.get_by_label("Password").fill(demo_password(server))
    page.get_by_role("button", name="Turn on").click()
    save_screenshot(page, folder, "account-two-factor-made")
    for path in ("two-factor/off", "recovery-codes"):
        page.goto(f"/console/account/{path}")
        save_screenshot(page, folder, f"account-{path.replace('/', '-')}")
    page.get_by_role("button", name="Sign out").click()
    sign_in(page, server)
    save_screenshot(page, folder, "two-factor")


def take_screenshots(folder: Path) -> list[str]:
    """Take the pictures: the names of those that there are."""
    from playwright.sync_api import sync_playwright

    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    flags = [*chromium_flags(), "--lang=en-AU"]
    with serving() as server, TlsFront(server.url) as front, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_program(), args=[*flags, *front.flags])
        context = browser.new_context(
            base_url=PUBLIC_URL, reduced_motion="reduce", locale="en-AU", ignore_https_errors=True
        )
        page = context.new_page()
        sign_in(page, server)
        settings(page, browser, folder)
        imports(page, folder)
        for path, address in sorted(crawl(page, PREFIX).items()):
            if path != PREFIX:
                page.goto(address)
                save_screenshot(page, folder, file_name(path))
        page.goto("/console/nowhere")
        save_screenshot(page, folder, "not-found")
        two_factor(page, server, folder)
        mailed_links(browser, folder)
        browser.close()
    return sorted(each.name for each in folder.iterdir())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Write a screenshot of every console page.")
    parser.add_argument("folder", type=Path)
    for each in take_screenshots(parser.parse_args().folder):
        sys.stdout.write(f"{each}\n")
