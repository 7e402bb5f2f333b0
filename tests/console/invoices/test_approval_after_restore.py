"""After a restore, links to approve invoices don't work, and nothing is approved without an answer to a new one."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.resources.invoices import approval_store
from plankeeper.resources.invoices.approval_reminders import ApprovalReminders
from plankeeper.resources.office_settings import restores
from plankeeper.resources.office_settings import service as office_settings
from support.client import Client
from support.mail import PUBLIC_URL, public_browser
from support.outbox import MailingServer
from support.server import RunningServer

EMAIL = "sam@example.com"
LINE = {
    "description": "Gardening", "service_item_number": "01_019_0120_1_1", "quantity": 2, "unit_price": 60,
    "total_price": 120, "service_date_from": "2026-01-05", "service_date_to": "2026-01-05",
}  # fmt: skip


@pytest.fixture
def server(mailing: MailingServer) -> RunningServer:
    return mailing.server


def new_invoice(api: Client) -> str:
    """The id of an invoice that waits for the approval of a participant."""
    participant = api.create("/participants", {"first_name": "Sam", "email": EMAIL, "approval_required": True})
    provider = api.create("/providers", {"entity_name": "Green Thumb", "abn": "51824753556"})
    body = {
        "invoice_number": "G-1", "invoice_date": "2026-01-06", "total": 120, "tax": 0, "subtotal": 120,
        "participant_id": participant["id"], "pm_provider_id": provider["id"], "line_items": [LINE],
    }  # fmt: skip
    return api.create("/invoices", body)["id"]


def status_of_link(mailing: MailingServer, count: int) -> int:
    """The status of the page of a mailed link."""
    [link] = mailing.mail.wait_for(EMAIL, count).links
    visitor = public_browser(mailing.server.url)
    with visitor.http:
        return visitor.get(link.removeprefix(PUBLIC_URL)).status_code


async def configure(ctx: WriteContext) -> None:
    await office_settings.set_values(ctx, {"approval_reminder_days": 2, "approval_automatic_days": 5})


async def restore(ctx: WriteContext) -> None:
    now = datetime.now(UTC)
    await approval_store.revoke_all_links(ctx.tx, ctx.plan_manager_id, now)
    statement = "insert into restores (plan_manager_id, restored_at) values ($1, $2)"
    await ctx.tx.execute(statement, ctx.plan_manager_id, now)


async def confirm(ctx: WriteContext) -> None:
    assert await restores.confirm(ctx, datetime.now(UTC), {})


def test_nothing_is_approved_without_an_answer_to_a_new_link(mailing: MailingServer, api: Client) -> None:
    server, invoice_id, plan_manager_id = mailing.server, new_invoice(api), UUID(api.plan_manager_id)
    open_links = "select count(*) from approval_links where plan_manager_id = $1 and revoked_at is null"

    def run_after(days: int) -> tuple[str, int]:
        """The status, and the number of open links."""
        at = datetime.now(UTC) + timedelta(days=days, hours=1)
        server.run(ApprovalReminders(server.settings, clock=lambda: at, interval=0)(server.db))
        status = api.get(f"/invoices/{invoice_id}").json()["approval_status"]
        return status, server.run(server.db.one(int, open_links, plan_manager_id))

    async def write(*steps: Callable[[WriteContext], Awaitable[None]]) -> None:
        async with server.db.transaction() as tx:
            ctx = WriteContext(tx, plan_manager_id, server.settings, SYSTEM)
            for step in steps:
                await step(ctx)

    assert status_of_link(mailing, 1) == 200
    server.run(write(configure, restore))
    assert status_of_link(mailing, 1) == 404
    assert [run_after(3), run_after(6)] == [("pending", 0), ("pending", 0)]
    server.run(write(confirm))
    assert run_after(6) == ("pending", 1)
    assert status_of_link(mailing, 2) == 200
    assert run_after(6)[0] == "approved"
