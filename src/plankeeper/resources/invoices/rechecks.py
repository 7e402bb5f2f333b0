"""Checks queued invoices in the background, because what their warnings depend on has changed.

A write queues the participant or the provider that it changes, in its transaction. The worker checks their open
invoices, up to 500 in a transaction, and deletes the rows that it has read after the last of them. The check of all
open invoices stores its position, so that it continues after a restart. It also starts after midnight, because some
warnings, and what claims leave out, depend on the date.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import takewhile
from typing import NamedTuple
from uuid import UUID

from msgspec.structs import replace

from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.core.ids import uuid7_lower_bound
from plankeeper.core.settings import Settings
from plankeeper.database.client import Database, Executor
from plankeeper.database.errors import is_unavailable
from plankeeper.resources import recheck_queue
from plankeeper.resources.invoices import recheck_store as store
from plankeeper.resources.invoices.recheck_store import Position, RecheckState
from plankeeper.resources.invoices.service import recheck_others
from plankeeper.resources.invoices.store import select_for_update
from plankeeper.resources.recheck_queue import QueuedRecheck

log = logging.getLogger("plankeeper")

BATCH_SIZE = 500  # invoices of one transaction
MAX_ROWS = 25  # of the queue, whose invoices are checked together: each of their batches reads all of their lines
PAUSE = 0.05  # seconds after a batch
TURN = 0.5  # seconds after which the other periodic tasks have their turn
# A request can have read a participant shortly before it changed, and write the invoice that it has checked with it
# shortly after. The worker checks the invoice after that.
MIN_AGE = timedelta(seconds=2)

# Resolves the flagged lines of checked invoices that can be claimed now, which `resources.claims` decides: invoices of
# these ids, as far as they are of these participants and providers.
ResolveFlags = Callable[[WriteContext, Collection[UUID], Collection[UUID]], Awaitable[None]]

_FIRST = UUID(int=0)


class _Pass(NamedTuple):
    """Rows of the queue, and the last of their invoices that has been checked."""

    rows: Sequence[QueuedRecheck]
    after: UUID


class RecheckWorker:
    """Checks the queued invoices of all plan managers, a batch of each in turn."""

    def __init__(
        self, settings: Settings, resolve_flags: ResolveFlags, min_age: timedelta = MIN_AGE, pause: float = PAUSE
    ) -> None:
        self._settings, self._resolve_flags, self._min_age, self._pause = settings, resolve_flags, min_age, pause
        self._passes = dict[UUID, _Pass]()  # those that several transactions need
        self._last = _FIRST  # the plan manager whose turn was last
        self._day: date | None = None
        self._due = set[UUID]()  # the plan managers whose check of this day hasn't started

    async def __call__(self, db: Database) -> None:
        """Check until no invoice waits, or the turn ends."""
        end, progress = time.monotonic() + TURN, True
        while progress:
            progress = False
            waiting = {*await store.list_plan_managers(db, self._before), *await self._find_due(db)}
            for each in sorted(waiting, key=lambda id_: (id_ <= self._last, id_)):  # first those after the last one
                progress |= await self._check_plan_manager(db, each)
                self._last = each
                if time.monotonic() >= end:
                    return

    async def _find_due(self, db: Database) -> set[UUID]:
        """The plan managers whose invoices haven't been checked since midnight, without those that are new since."""
        today = self._settings.today
        midnight = datetime(today.year, today.month, today.day, tzinfo=self._settings.time_zone)
        if today != self._day:
            self._due, self._day = set(await store.list_created_before(db, midnight)), today
        if self._due:
            self._due.difference_update(await store.list_checked_since(db, midnight))
        return self._due

    async def _check_plan_manager(self, db: Database, plan_manager_id: UUID) -> bool:
        """Check a batch of each kind. Returns whether there was any progress."""
        progress = False
        for check in (self._check_concerned, self._check_all):
            try:
                async with db.transaction() as tx:
                    if await store.try_lock(tx, plan_manager_id):
                        progress |= await check(WriteContext(tx, plan_manager_id, self._settings, SYSTEM))
            except Exception as error:  # so that the invoices of others are checked
                self._passes.pop(plan_manager_id, None)
                if not is_unavailable(error):
                    log.exception("invoices can't be checked", extra={"plan_manager_id": str(plan_manager_id)})
            await asyncio.sleep(self._pause)
        return progress

    @property
    def _before(self) -> UUID:
        """The rows of the queue before this id are old enough."""
        return uuid7_lower_bound(datetime.now(UTC) - self._min_age)

    async def _check_concerned(self, ctx: WriteContext) -> bool:
        """Check the next invoices of changed participants and providers."""
        run = self._passes.pop(ctx.plan_manager_id, None)
        if run is None:
            run = _Pass(await store.list_concerned(ctx.tx, ctx.plan_manager_id, self._before, MAX_ROWS), _FIRST)
        if not run.rows:
            return False
        participants = {each.participant_id for each in run.rows if each.participant_id}
        providers = {each.provider_id for each in run.rows if each.provider_id}
        ids = await store.list_open_of(
            ctx.tx, ctx.plan_manager_id, sorted(participants), sorted(providers), run.after, BATCH_SIZE
        )
        checked = await _check(ctx, ids)
        if resolving := {
            id_ for each in run.rows if each.resolves_flags and (id_ := each.participant_id or each.provider_id)
        }:
            await self._resolve_flags(ctx, checked, resolving)
        if len(checked) == len(ids) < BATCH_SIZE:
            await store.delete_queued(ctx.tx, ctx.plan_manager_id, [each.id for each in run.rows])
            return True
        self._passes[ctx.plan_manager_id] = run._replace(after=checked[-1] if checked else run.after)
        return bool(checked)

    async def _check_all(self, ctx: WriteContext) -> bool:
        """Start to check all open invoices, or check the next ones."""
        state = await store.get_state(ctx.tx, ctx.plan_manager_id)
        if state is None or state.position is None:
            return await self._start(ctx, state)
        found = await store.list_after(ctx.tx, ctx.plan_manager_id, state.position, BATCH_SIZE, is_open=True)
        checked = await _check(ctx, [each.id for each in found], levels_changed=True)
        position = found[len(checked) - 1] if checked else state.position
        state = replace(state, done=state.done + len(checked), position=position)
        if len(checked) == len(found) < BATCH_SIZE:
            state = replace(state, position=None, completed_at=datetime.now(UTC))
        await store.upsert_state(ctx.tx, ctx.plan_manager_id, state)
        return state.position is None or bool(checked)

    async def _start(self, ctx: WriteContext, state: RecheckState | None) -> bool:
        rows = await store.list_for_all(ctx.tx, ctx.plan_manager_id, self._before)
        if ctx.plan_manager_id in self._due:
            await recheck_queue.enqueue_flagged(ctx)
        elif not rows:
            return False
        total = await store.count_open(ctx.tx, ctx.plan_manager_id)
        started = RecheckState(
            position=store.FIRST,
            total=total,
            done=0,
            started_at=datetime.now(UTC),
            completed_at=state.completed_at if state else None,
        )
        await store.upsert_state(ctx.tx, ctx.plan_manager_id, started)
        await store.delete_queued(ctx.tx, ctx.plan_manager_id, rows)
        return True


async def _check(ctx: WriteContext, invoice_ids: Sequence[UUID], *, levels_changed: bool = False) -> list[UUID]:
    """Check invoices up to the first one that another transaction has locked, and return them."""
    locked = set(await store.lock_open(ctx.tx, ctx.plan_manager_id, invoice_ids))
    checked = list(takewhile(locked.__contains__, invoice_ids))
    await recheck_others(ctx, checked, levels_changed=levels_changed)
    return checked


async def check_next(ctx: WriteContext, after: Position) -> tuple[list[Position], int]:
    """Check the next invoices in the order of a check of all, closed ones too.

    Returns their positions and the number of changed ones.
    """
    found = await store.list_after(ctx.tx, ctx.plan_manager_id, after, BATCH_SIZE, is_open=False)
    ids = [each.id for each in await select_for_update(ctx.tx, ctx.plan_manager_id, [each.id for each in found])]
    return found, await recheck_others(ctx, ids)


class RecheckProgress(NamedTuple):
    """The progress of the check of all open invoices: `done` of `total`, if it `is_running`.

    `is_queued`: it starts soon. `completed_at` is when the last one ended.
    """

    is_queued: bool
    is_running: bool
    total: int
    done: int
    completed_at: datetime | None


async def get_progress(db: Executor, plan_manager_id: UUID) -> RecheckProgress:
    state = await store.get_state(db, plan_manager_id)
    queued = await store.list_for_all(db, plan_manager_id, UUID(int=2**128 - 1))
    if state is None:
        return RecheckProgress(bool(queued), is_running=False, total=0, done=0, completed_at=None)
    is_running = state.position is not None
    return RecheckProgress(bool(queued), is_running, state.total, min(state.done, state.total), state.completed_at)


async def queue_age(db: Executor) -> float:
    """How long the oldest row of the queue has been waiting, in seconds; 0 if there is none."""
    oldest = await store.oldest_id(db)
    if oldest is None:
        return 0.0
    return max(0.0, time.time() - (oldest.int >> 80) / 1000)
