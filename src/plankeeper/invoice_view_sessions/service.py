"""Sessions that the console keeps: begun, kept by heartbeats, ended."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from msgspec import Struct
from msgspec.structs import replace
from uuid_utils.compat import uuid7

from plankeeper.database.client import Database
from plankeeper.events.recorder import record
from plankeeper.http.context import SYSTEM, Write, found
from plankeeper.http.errors import NotFound, Refusal
from plankeeper.http.parsing import first_id_at
from plankeeper.http.schemas import json_text
from plankeeper.invoice_view_sessions import store
from plankeeper.invoice_view_sessions.rules import SILENCE, Figures, possible
from plankeeper.invoice_view_sessions.schemas import InvoiceViewSession
from plankeeper.invoices import store as invoices
from plankeeper.settings import Settings

BATCH = 500


class Measured(Struct):
    """What a page has measured of a session so far."""

    active_ms: int
    engaged_ms: int
    idle_count: int


# Each writes an event, which webhooks are told of: a reader must not make them without end.
MOST_A_MINUTE = 60


async def begin(call: Write, invoice_id: UUID) -> InvoiceViewSession:
    """The account that acts looks at an invoice."""
    if not await invoices.exists(call.tx, call.plan_manager_id, invoice_id):
        raise NotFound
    now = datetime.now(UTC)
    lately = first_id_at(now - timedelta(minutes=1))
    if await store.begun_since(call.tx, call.plan_manager_id, lately, call.actor.id or "") >= MOST_A_MINUTE:
        raise Refusal("rate_limit_exceeded", "You looked at too many invoices within a minute.")
    session = InvoiceViewSession(
        id=uuid7(), invoice_id=invoice_id, user_id=call.actor.id or "", user_name=call.actor.name or "",
        session_started=now, last_heartbeat=now, created_at=now, duration_seconds=0, active_duration_seconds=0,
        engaged_duration_seconds=0, idle_count=0,
    )  # fmt: skip
    await store.begin(call.tx, call.plan_manager_id, json_text([session]))
    await record(call, "invoice_view_session.started", None, session)
    return session


async def beat(call: Write, session_id: UUID, measured: Measured, *, last: bool = False) -> bool:
    """A heartbeat, the last one where the page is closed: false where the session is over.

    A heartbeat has no event: there are four a minute, and the session's end tells of all of them.
    """
    before = found(await store.in_console_for_update(call.tx, call.plan_manager_id, session_id))
    if before.user_id != call.actor.id:
        raise NotFound
    if before.session_ended is not None:
        return False
    now = max(datetime.now(UTC), before.last_heartbeat)
    if now - before.last_heartbeat > SILENCE:
        await _end(Write(call.tx, call.plan_manager_id, call.settings, SYSTEM), before, before)
        return False
    after = _heard(before, measured, now)
    if last:
        await _end(call, before, after)
    else:
        await store.put(call.tx, call.plan_manager_id, json_text([after]))
    return True


async def end_silent(db: Database, settings: Settings) -> None:
    """End what no heartbeat has come of, where it was last heard of."""
    async with db.transaction() as tx:
        for each in await store.silent_for_update(tx, datetime.now(UTC) - SILENCE, BATCH):
            call = Write(tx, each.plan_manager_id, settings, SYSTEM)
            [session] = await store.records_for_update(tx, each.plan_manager_id, [each.id])
            await _end(call, session, session)


def _heard(before: InvoiceViewSession, measured: Measured, now: datetime) -> InvoiceViewSession:
    known = Figures(before.active_duration_seconds or 0, before.engaged_duration_seconds or 0, before.idle_count or 0)
    elapsed = now - before.session_started
    figures = possible(measured.active_ms, measured.engaged_ms, measured.idle_count, elapsed, known)
    return replace(
        before, last_heartbeat=now, duration_seconds=max(0, int(elapsed.total_seconds())),
        active_duration_seconds=figures.active, engaged_duration_seconds=figures.engaged, idle_count=figures.idle,
    )  # fmt: skip


async def _end(call: Write, before: InvoiceViewSession, after: InvoiceViewSession) -> None:
    """Over since it was last heard of."""
    ended = replace(after, session_ended=after.last_heartbeat)
    await store.put(call.tx, call.plan_manager_id, json_text([ended]))
    await record(call, "invoice_view_session.ended", before, ended)
