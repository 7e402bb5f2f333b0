"""Reminders of requests for approval, and approval without an answer, as the settings of a plan manager say."""

import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from uuid import UUID

from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.core.formatting import format_date
from plankeeper.core.settings import Settings
from plankeeper.database.client import Database
from plankeeper.resources.invoices import approval_store, store
from plankeeper.resources.invoices.approval import approve_automatically
from plankeeper.resources.invoices.approval_requests import (
    ask_again,
    content_hash,
    is_ready,
    read_requests,
    update_requests,
)
from plankeeper.resources.invoices.approval_schemas import DueRequest
from plankeeper.resources.invoices.approval_store import ApprovalDays

INTERVAL = 60.0  # seconds between two searches
BATCH_SIZE = 100  # of one plan manager, in each search
_BEGINNING = DueRequest(UUID(int=0), datetime.min.replace(tzinfo=UTC))

_ListDue = Callable[[Database, UUID, datetime, DueRequest, int], Awaitable[list[DueRequest]]]
_Handle = Callable[[WriteContext, ApprovalDays, DueRequest], Awaitable[None]]


class ApprovalReminders:
    """The periodic task. Tests replace `clock`."""

    def __init__(
        self, settings: Settings, clock: Callable[[], datetime] = lambda: datetime.now(UTC), interval: float = INTERVAL
    ) -> None:
        self._settings, self._clock, self._interval = settings, clock, interval
        self._next = 0.0
        # The last request of the search before, by plan manager and duty. Requests that aren't ready stay in their
        # place, such as those of invoices with warnings that block claims, and mustn't keep later ones.
        self._last: dict[tuple[UUID, _ListDue], DueRequest] = {}

    async def __call__(self, db: Database) -> None:
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + self._interval
        for each in await approval_store.list_days(db):
            await self._handle_plan_manager(db, each)

    async def _handle_plan_manager(self, db: Database, days: ApprovalDays) -> None:
        now = self._clock()
        if days.automatic_days:
            asked_before = now - timedelta(days=days.automatic_days)
            await self._handle_batch(db, days, approval_store.list_to_approve, asked_before, self._approve)
        if days.reminder_days and self._settings.smtp_server:
            asked_before = now - timedelta(days=days.reminder_days)
            await self._handle_batch(db, days, approval_store.list_to_remind, asked_before, self._remind)

    async def _handle_batch(
        self, db: Database, days: ApprovalDays, list_due: _ListDue, asked_before: datetime, handle: _Handle
    ) -> None:
        """Handle the requests after those of the search before. After the last one, the next search begins again."""
        key = (days.plan_manager_id, list_due)
        after = self._last.get(key, _BEGINNING)
        due = await list_due(db, days.plan_manager_id, asked_before, after, BATCH_SIZE)
        for each in due:
            self._last[key] = each  # also if it fails
            await self._run(db, days, each, handle)
        if len(due) < BATCH_SIZE:
            self._last.pop(key, None)

    async def _run(self, db: Database, days: ApprovalDays, due: DueRequest, handle: _Handle) -> None:
        async with db.transaction() as tx:
            ctx = WriteContext(tx, days.plan_manager_id, self._settings, SYSTEM)
            await store.select_for_update(tx, days.plan_manager_id, [due.invoice_id])
            await update_requests(ctx, [due.invoice_id], creates=False)
            await handle(ctx, days, due)

    async def _approve(self, ctx: WriteContext, days: ApprovalDays, due: DueRequest) -> None:
        [(invoice, state)] = await read_requests(ctx, [due.invoice_id])
        is_same = state.asked_at == due.asked_at and state.content_hash == content_hash(invoice)
        if not is_ready(invoice, state) or not is_same:
            return
        asked_on = format_date(due.asked_at.astimezone(self._settings.time_zone).date())
        noun = "day" if days.automatic_days == 1 else "days"
        reason = f"No answer within {days.automatic_days} {noun} of the request on {asked_on}."
        await approve_automatically(ctx, due.invoice_id, reason)

    async def _remind(self, ctx: WriteContext, _days: ApprovalDays, due: DueRequest) -> None:
        [(invoice, state)] = await read_requests(ctx, [due.invoice_id])
        if is_ready(invoice, state) and state.asked_at == due.asked_at and state.reminded_at is None:
            await ask_again(ctx, invoice, state, is_reminder=True)
