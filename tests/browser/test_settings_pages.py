"""The console in a real browser: Debian's Chromium."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from support.chromium import copy_text
from support.client import Client
from support.console import Account, open_signed_in, sign_out
from support.receiver import Receiver
from support.server import RunningServer, wait_until
from support.webhooks import running_worker, signature_of


def test_a_key_is_created_used_and_revoked(
    server: RunningServer, page: Any, new_account: Callable[..., Account], plan_manager_id: UUID
) -> None:
    open_signed_in(page, server, new_account("manager"))
    page.get_by_role("link", name="Settings").click()
    page.get_by_role("link", name="API keys").click()
    page.get_by_role("link", name="Create API key").click()
    page.get_by_label("Name").fill("Nightly report")
    page.get_by_role("button", name="Create key").click()
    secret = page.get_by_label("API key", exact=True).inner_text()
    assert copy_text(page.get_by_role("button", name="Copy").first) in {"Copied", "Selected"}

    client = Client(server.url, secret, plan_manager_id)
    assert client.get("/participants").status_code == 200

    page.get_by_role("link", name="Done").click()
    assert page.get_by_text(secret).count() == 0
    page.get_by_role("link", name="Revoke Nightly report").click()
    page.get_by_role("button", name="Revoke key").click()
    page.get_by_role("status").filter(has_text="revoked").wait_for()
    wait_until(lambda: client.get("/participants").status_code == 401)
    client.http.close()

    sign_out(page)
    page.get_by_role("heading", name="Sign in").wait_for()
    page.goto("/console/settings/keys")
    page.get_by_role("heading", name="Sign in").wait_for()


def test_an_endpoint_is_created_receives_events_and_replays_them(
    server: RunningServer, page: Any, new_account: Callable[..., Account], plan_manager_id: UUID,
    new_key: Callable[..., str],
) -> None:  # fmt: skip
    server.run(server.db.execute("delete from webhook_endpoints"))  # a worker sends for all plan managers
    client = Client(server.url, new_key(plan_manager_id), plan_manager_id)
    with Receiver() as receiver, running_worker(server):
        open_signed_in(page, server, new_account("manager"), "/console/settings/webhooks")
        page.get_by_role("link", name="Create endpoint").click()
        page.get_by_label("URL").fill(receiver.url)
        page.get_by_label("All events").uncheck()
        page.get_by_role("group", name="Note type").get_by_label("Note type: all").check()
        page.get_by_role("button", name="Create endpoint").click()
        secret = page.get_by_label("Signing secret", exact=True).inner_text()
        page.get_by_role("link", name="Done").click()

        client.create("/note-types", {"note_type": "Visit"})
        wait_until(lambda: receiver.received)
        [first] = receiver.received
        assert first.headers["webhook-signature"] == signature_of(secret, first)

        succeeded = page.get_by_role("row").filter(has_text="note_type.created").filter(has_text="succeeded")
        wait_until(lambda: page.reload() and succeeded.count() == 1)
        page.get_by_label("Resend all events since").fill("1/1/2026")
        page.get_by_role("button", name="Resend events").click()
        page.get_by_role("status").filter(has_text="1 event resent").wait_for()
        wait_until(lambda: len(receiver.received) == 2)
        assert receiver.received[1].headers["webhook-id"] == first.headers["webhook-id"]
    client.http.close()
