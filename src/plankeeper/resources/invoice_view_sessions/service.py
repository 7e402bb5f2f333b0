"""Invoice view sessions of the console: start, heartbeat, end."""

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from msgspec import Struct
from msgspec.structs import replace
from uuid_utils.compat import uuid7

from plankeeper.core.context import SYSTEM, WriteContext, or_404
from plankeeper.core.errors import DomainError, NotFound
from plankeeper.core.ids import uuid7_lower_bound
from plankeeper.core.json import to_json
from plankeeper.core.settings import Settings
from plankeeper.database.client import Database
from plankeeper.database.versions import next_updated_at
from plankeeper.events.recorder import record_event
from plankeeper.resources.invoice_view_sessions import store
from plankeeper.resources.invoice_view_sessions.schemas import InvoiceViewSession
from plankeeper.resources.invoices import store as invoices

HEARTBEAT_TIMEOUT = timedelta(seconds=60)  # without a heartbeat; then the session ends
IDLE_PERIOD_SECONDS = 60  # without input; then the browser counts an idle period


class Durations(NamedTuple):
    """The durations of a session up to a heartbeat, in whole seconds."""

    active_seconds: int
    engaged_seconds: int
    idle_count: int


def clamp(active_ms: int, engaged_ms: int, idle_count: int, elapsed: timedelta, previous: Durations) -> Durations:
    """Limit reported durations to possible values, which never decrease.

    `elapsed` is the length of the session by the server's clock. It limits the active time, which limits the engaged
    time; each idle period takes at least a minute.
    """
    seconds = max(0, int(elapsed.total_seconds()))
    active = max(previous.active_seconds, min(active_ms // 1000, seconds))
    engaged = max(previous.engaged_seconds, min(engaged_ms // 1000, active))
    return Durations(active, engaged, max(previous.idle_count, min(idle_count, seconds // IDLE_PERIOD_SECONDS)))


BATCH_SIZE = 500


class ClientReport(Struct):
    """The durations of a session so far, as the browser measured them."""

    active_ms: int
    engaged_ms: int
    idle_count: int


# Each start writes an event and triggers webhooks, so the number of starts of a viewer is limited.
MAX_STARTS_PER_MINUTE = 60


async def start(ctx: WriteContext, invoice_id: UUID) -> InvoiceViewSession:
    """Start a session of the current account; raises NotFound for an unknown invoice."""
    if not await invoices.exists(ctx.tx, ctx.plan_manager_id, invoice_id):
        raise NotFound
    now = datetime.now(UTC)
    first_id = uuid7_lower_bound(now - timedelta(minutes=1))
    if (
        await store.count_started_since(ctx.tx, ctx.plan_manager_id, first_id, ctx.actor.id or "")
        >= MAX_STARTS_PER_MINUTE
    ):
        raise DomainError("rate_limit_exceeded", "You viewed too many invoices within one minute. Try again later.")
    session = InvoiceViewSession(
        id=uuid7(),
        invoice_id=invoice_id,
        user_id=ctx.actor.id or "",
        user_name=ctx.actor.name or "",
        session_started=now,
        last_heartbeat=now,
        created_at=now,
        updated_at=now,
        duration_seconds=0,
        active_duration_seconds=0,
        engaged_duration_seconds=0,
        idle_count=0,
    )
    await store.insert(ctx.tx, ctx.plan_manager_id, to_json([session]))
    await record_event(ctx, "invoice_view_session.started", None, session)
    return session


async def heartbeat(ctx: WriteContext, session_id: UUID, report: ClientReport, *, is_last: bool = False) -> bool:
    """Record a heartbeat; `is_last` closes the session. Returns False if the session has ended.

    A heartbeat records no event: there are four a minute, and the event of the session's end has the totals.
    """
    before = or_404(await store.select_console_session_for_update(ctx.tx, ctx.plan_manager_id, session_id))
    if before.user_id != ctx.actor.id:
        raise NotFound
    if before.session_ended is not None:
        return False
    now = max(datetime.now(UTC), before.last_heartbeat)
    if now - before.last_heartbeat > HEARTBEAT_TIMEOUT:
        await _end(WriteContext(ctx.tx, ctx.plan_manager_id, ctx.settings, SYSTEM), before, before)
        return False
    after = _apply_report(before, report, now)
    if is_last:
        await _end(ctx, before, after)
    else:
        await store.upsert(ctx.tx, ctx.plan_manager_id, to_json([after]))
    return True


async def end_stale(db: Database, settings: Settings) -> None:
    """End the sessions without recent heartbeats, at the time of their last heartbeat."""
    before = datetime.now(UTC) - HEARTBEAT_TIMEOUT
    stale: defaultdict[UUID, list[UUID]] = defaultdict(list)
    for each in await store.list_stale(db, before, BATCH_SIZE):
        stale[each.plan_manager_id].append(each.id)
    for plan_manager_id, ids in stale.items():
        async with db.transaction() as tx:
            ctx = WriteContext(tx, plan_manager_id, settings, SYSTEM)
            for session in await store.select_stale_for_update(tx, plan_manager_id, ids, before):
                await _end(ctx, session, session)


def _apply_report(before: InvoiceViewSession, report: ClientReport, now: datetime) -> InvoiceViewSession:
    previous = Durations(
        before.active_duration_seconds or 0, before.engaged_duration_seconds or 0, before.idle_count or 0
    )
    elapsed = now - before.session_started
    durations = clamp(report.active_ms, report.engaged_ms, report.idle_count, elapsed, previous)
    return replace(
        before,
        last_heartbeat=now,
        updated_at=next_updated_at(before.updated_at),
        duration_seconds=max(0, int(elapsed.total_seconds())),
        active_duration_seconds=durations.active_seconds,
        engaged_duration_seconds=durations.engaged_seconds,
        idle_count=durations.idle_count,
    )


async def _end(ctx: WriteContext, before: InvoiceViewSession, after: InvoiceViewSession) -> None:
    """End a session at the time of its last heartbeat."""
    updated_at = next_updated_at(before.updated_at)
    ended = replace(after, session_ended=after.last_heartbeat, updated_at=updated_at)
    await store.upsert(ctx.tx, ctx.plan_manager_id, to_json([ended]))
    await record_event(ctx, "invoice_view_session.ended", before, ended)
