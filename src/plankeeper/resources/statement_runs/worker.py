"""Makes the statements of running runs in the background, a plan at a time, each in a transaction of its own.

The statement, its item, its recipients and their mails are committed together. Until then the run's row is locked:
a server that is killed leaves no plan with only a part of them, and two servers never work on the same run.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime
from uuid import UUID

import asyncpg
from uuid_utils.compat import uuid7

from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.core.errors import DomainError, NotFound, ValidationError
from plankeeper.core.pdf.documents import UnprintableError
from plankeeper.core.settings import Settings
from plankeeper.database.client import Database
from plankeeper.database.errors import is_unavailable
from plankeeper.resources.documents.storage import storage_of
from plankeeper.resources.office_settings.restores import require_confirmed
from plankeeper.resources.statement_runs import service, store
from plankeeper.resources.statement_runs.mails import fail_expired, queue_mail
from plankeeper.resources.statement_runs.print_file import stop_letters
from plankeeper.resources.statement_runs.rules import (
    MESSAGES,
    Outcome,
    due_month,
    nobody_reason,
    plan_recipients,
    skip_reason,
    skipped,
    sum_up,
)
from plankeeper.resources.statement_runs.schemas import DuePlan, ItemRow, Person, RecipientRow, RunningRun
from plankeeper.resources.statements import service as statements

log = logging.getLogger("plankeeper")

PAUSE = 0.02  # seconds after each plan, for other requests
TURN = 0.5  # seconds after which the other periodic tasks have their turn
INTERVAL = 60.0  # seconds between two searches for due runs, and before a run with a problem continues
_FIRST = UUID(int=0)


class StatementRuns:
    """The periodic task. Tests replace `clock`."""

    def __init__(
        self,
        settings: Settings,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        interval: float = INTERVAL,
        pause: float = PAUSE,
    ) -> None:
        self._settings, self._clock, self._interval, self._pause = settings, clock, interval, pause
        self._next_search = 0.0
        self._waiting = dict[UUID, float]()  # runs with a problem, and when they continue
        self._last = _FIRST  # the run whose turn was last

    async def __call__(self, db: Database) -> None:
        """Start the runs that are due, and work on the running ones until the turn ends."""
        if time.monotonic() >= self._next_search:
            self._next_search = time.monotonic() + self._interval
            await self._start_due(db)
            await fail_expired(db, self._settings, self._clock())
            await stop_letters(db, self._settings, self._clock())
        end, progress = time.monotonic() + TURN, True
        while progress:
            progress = False
            running = sorted(await store.list_running(db), key=lambda run: run.id)
            for each in sorted(running, key=lambda run: run.id <= self._last):  # first those after the last one
                if self._waiting.get(each.id, 0.0) > time.monotonic():
                    continue
                self._last = each.id
                progress |= await self._continue(db, each)
                if time.monotonic() >= end:
                    return

    async def _start_due(self, db: Database) -> None:
        now = self._clock()
        day = now.astimezone(self._settings.time_zone).date()
        for each in await store.list_due_offices(db):
            month = due_month(each, day)
            if month is None:
                continue
            try:
                async with db.transaction() as tx:
                    ctx = WriteContext(tx, each.plan_manager_id, self._settings, SYSTEM)
                    await service.start(ctx, month, now, needs_storage=False)
            except DomainError as error:  # after a restore
                log.warning("a run of statements can't start", exc_info=error)

    async def _continue(self, db: Database, run: RunningRun) -> bool:
        """Make the next statement of a run. Returns whether there was any progress."""
        try:
            storage_of(self._settings)
            async with db.transaction() as tx:
                ctx = WriteContext(tx, run.plan_manager_id, self._settings, SYSTEM)
                progress = await make_next(ctx, run.id, self._clock())
        except DomainError as error:  # no storage, or one that fails; a restore that isn't confirmed
            await self._wait(db, run, error.detail)
            return False
        except Exception as error:  # so that the runs of others continue
            if is_unavailable(error):
                raise
            log.exception("a run of statements can't continue", extra={"run_id": str(run.id)})
            await self._wait(db, run, MESSAGES["error"])
            return False
        await asyncio.sleep(self._pause)
        return progress

    async def _wait(self, db: Database, run: RunningRun, problem: str) -> None:
        self._waiting[run.id] = time.monotonic() + self._interval
        await store.set_problem(db, run.plan_manager_id, run.id, problem, self._clock())


async def make_next(ctx: WriteContext, run_id: UUID, now: datetime, *, renders: bool = True) -> bool:
    """Make the next statement of a run, or end it. Returns whether another one can follow.

    Without `renders`, its document is rendered when somebody first needs it.
    """
    run = await store.lock_running(ctx.tx, ctx.plan_manager_id, run_id)
    if run is None:  # another server works on it, or it has just ended
        return False
    await require_confirmed(ctx.tx, ctx.plan_manager_id)
    plan = await store.next_plan(ctx.tx, run, run.position or _FIRST)
    if plan is None and run.position:  # a plan can have been added with any id
        plan = await store.next_plan(ctx.tx, run, _FIRST)
    if plan is None:
        before = await store.get(ctx.tx, ctx.plan_manager_id, run.id)
        await store.end(ctx.tx, ctx.plan_manager_id, run.id, now)
        await service.record_change(ctx, "statement_run.ended", run.id, before)
        return False
    await make_item(ctx, run, plan, now, renders=renders)
    await store.set_position(ctx.tx, run, plan.id, now)
    return True


async def make_item(ctx: WriteContext, run: RunningRun, plan: DuePlan, now: datetime, *, renders: bool = True) -> None:
    """Make the statement of a plan, and queue its mails. Raises DomainError if the storage of documents fails."""
    person = await store.get_person(ctx.tx, ctx.plan_manager_id, plan.participant_id)
    item_id, statement_id = uuid7(), None
    recipients = list[RecipientRow]()
    reason = skip_reason(person, run.month) if person else "error"
    if person is None or reason:
        outcome = skipped(reason or "error")
    else:
        recipients = _to_recipients(ctx, item_id, person, now)
        outcome = sum_up(recipients) if recipients else skipped(nobody_reason(person))
        statement_id, failure = await _make_statement(ctx, run, plan, needs_pdf=renders and bool(recipients))
        if failure:
            outcome, recipients = failure, []
    row = ItemRow(
        id=item_id,
        run_id=run.id,
        plan_id=plan.id,
        participant_id=plan.participant_id,
        statement_id=statement_id,
        state=outcome.state,
        reason=outcome.reason,
        message=outcome.message,
        created_at=now,
    )
    await store.insert_item(ctx.tx, ctx.plan_manager_id, row, recipients)
    for each in recipients:
        if each.state == "waiting":
            await queue_mail(ctx, each.id, now)


def _to_recipients(ctx: WriteContext, item_id: UUID, person: Person, now: datetime) -> list[RecipientRow]:
    return [
        RecipientRow(
            id=uuid7(),
            item_id=item_id,
            way=each.way,
            recipient_kind=each.kind,
            recipient_id=each.id,
            state=each.state,
            reason=each.reason,
            message=MESSAGES[each.reason] if each.reason else None,
            queued_at=now,
        )
        for each in plan_recipients(person, sends_mail=ctx.settings.smtp_server is not None)
    ]


async def _make_statement(
    ctx: WriteContext, run: RunningRun, plan: DuePlan, *, needs_pdf: bool
) -> tuple[UUID | None, Outcome | None]:
    """The id of the statement, and why it or its document can't be made."""
    statement_id = None
    try:
        async with ctx.tx.savepoint():
            made = await statements.make_statement(ctx, plan.participant_id, plan.id, run.month, run_id=run.id)
            statement_id = made.id
        if needs_pdf:
            async with ctx.tx.savepoint():
                await statements.statement_pdf(ctx, made.id)
    except UnprintableError as error:
        return statement_id, Outcome("failed", "unprintable", f"The document can't be printed: {error}.")
    except (ValidationError, NotFound) as error:
        return statement_id, Outcome("failed", "error", f"It can't be made: {error}")
    except Exception as error:
        if isinstance(error, DomainError | asyncpg.PostgresError) or is_unavailable(error):
            raise
        log.exception("a statement can't be made", extra={"plan_id": str(plan.id)})
        return statement_id, Outcome("failed", "error", MESSAGES["error"])
    return statement_id, None
