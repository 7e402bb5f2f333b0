"""The console in a real browser: Debian's Chromium."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from console.people import Account, fill_sign_in_form
from support.client import Client
from support.receiver import Receiver
from support.server import RunningServer, wait_until
from webhooks.work import running_worker, signature_of

CHROMIUM = next((path for path in ("/usr/bin/chromium", shutil.which("chromium") or "") if Path(path).is_file()), None)

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="There is no Chromium to try the pages in: install it (Debian: chromium)."
)  # fmt: skip


@pytest.fixture(scope="module")
def chromium(server: RunningServer) -> Iterator[Any]:
    """Playwright has an event loop in the tests' thread: it comes after what runs one there, and goes before."""
    from playwright.sync_api import sync_playwright

    # As root, which it is in a container, Chromium runs without its sandbox only.
    flags = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=flags)
        yield browser
        browser.close()


@pytest.fixture
def page(chromium: Any, server: RunningServer) -> Iterator[Any]:
    """A page that fails the test when a script fails or the policy of the pages is broken."""
    context = chromium.new_context(base_url=server.url)
    opened = context.new_page()
    opened.set_default_timeout(20_000)
    faults: list[str] = []
    opened.on("pageerror", lambda error: faults.append(str(error)))
    opened.on("console", lambda said: faults.append(said.text) if "Security Policy" in said.text else None)
    yield opened
    context.close()
    assert faults == []


def test_a_key_is_created_used_and_revoked(
    server: RunningServer, page: Any, new_person: Callable[..., Account], plan_manager_id: UUID
) -> None:
    fill_sign_in_form(page, new_person("manager").email)
    page.get_by_role("link", name="Settings").click()
    page.get_by_role("link", name="API keys").click()
    page.get_by_role("link", name="Create the first key").click()
    page.get_by_label("Name").fill("Nightly report")
    page.get_by_role("button", name="Create key").click()
    secret = page.get_by_label("The key", exact=True).inner_text()
    page.get_by_role("button", name="Copy").first.click()
    page.get_by_text("Copied").or_(page.get_by_text("Selected")).first.wait_for()

    client = Client(server.url, secret, plan_manager_id)
    assert client.get("/participants").status_code == 200

    page.get_by_role("link", name="I have kept it").click()
    assert page.get_by_text(secret).count() == 0
    page.get_by_role("link", name="Revoke Nightly report").click()
    page.get_by_role("button", name="Revoke key").click()
    page.get_by_role("status").filter(has_text="is revoked").wait_for()
    wait_until(lambda: client.get("/participants").status_code == 401)
    client.http.close()

    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("heading", name="Sign in").wait_for()
    page.goto("/console/settings/keys")
    page.get_by_role("heading", name="Sign in").wait_for()


def test_an_endpoint_is_created_receives_events_and_replays_them(
    server: RunningServer, page: Any, new_person: Callable[..., Account], plan_manager_id: UUID,
    new_key: Callable[..., str],
) -> None:  # fmt: skip
    server.run(server.db.execute("delete from webhook_endpoints"))  # a worker sends for all plan managers
    client = Client(server.url, new_key(plan_manager_id), plan_manager_id)
    with Receiver() as receiver, running_worker(server):
        fill_sign_in_form(page, new_person("manager").email, "/console/settings/webhooks")
        page.get_by_role("link", name="Create the first endpoint").click()
        page.get_by_label("Address").fill(receiver.url)
        page.get_by_label("Events").fill("note_type.*")
        page.get_by_role("button", name="Create endpoint").click()
        secret = page.get_by_label("The secret", exact=True).inner_text()
        page.get_by_role("link", name="I have kept it").click()

        client.create("/note-types", {"note_type": "Visit"})
        wait_until(lambda: receiver.received, 20)
        [first] = receiver.received
        assert first.headers["webhook-signature"] == signature_of(secret, first)

        succeeded = page.get_by_role("row").filter(has_text="note_type.created").filter(has_text="succeeded")
        wait_until(lambda: page.reload() and succeeded.count() == 1, 20)
        page.get_by_label("Send again everything since").fill("2026-01-01T00:00")
        page.get_by_role("button", name="Replay").click()
        page.get_by_role("status").filter(has_text="1 event is sent again").wait_for()
        wait_until(lambda: len(receiver.received) == 2, 20)
        assert receiver.received[1].headers["webhook-id"] == first.headers["webhook-id"]
    client.http.close()
