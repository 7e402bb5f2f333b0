"""Runs of statements: started by hand or on a day of the month, and items that are tried again.

Locks are always taken in this order: the run, items in order of id. The worker (`worker`) makes the statements.
"""

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, date, datetime
from uuid import UUID

from msgspec.structs import replace
from uuid_utils.compat import uuid7

from plankeeper.core.context import WriteContext, or_404
from plankeeper.core.dates import Month
from plankeeper.core.errors import FieldError, ValidationError
from plankeeper.events.recorder import record_event
from plankeeper.resources.documents.storage import storage_of
from plankeeper.resources.office_settings.restores import require_confirmed
from plankeeper.resources.statement_runs import store
from plankeeper.resources.statement_runs.mails import queue_mail
from plankeeper.resources.statement_runs.rules import DIED, sum_up
from plankeeper.resources.statement_runs.schemas import ItemRow, Person, RecipientRow, StatementRun


def today(ctx: WriteContext, now: datetime) -> date:
    """The date in the time zone of the server."""
    return now.astimezone(ctx.settings.time_zone).date()


async def start(
    ctx: WriteContext, month: date, now: datetime | None = None, *, needs_storage: bool = True
) -> StatementRun:
    """Start the run of the month that begins on a day. A running one is returned as it is.

    One that has ended makes only the statements that it lacks. Without `needs_storage`, a run waits for a storage of
    documents, and says so. Raises ValidationError for a month that hasn't ended,
    DomainError `invalid_transition` after a restore that isn't confirmed, and 503 without a storage of documents.
    """
    now = now or datetime.now(UTC)
    run_date = today(ctx, now)
    if Month.of(month).last >= run_date:
        raise ValidationError(FieldError("month", "must have ended", "too_large"))
    if needs_storage:
        storage_of(ctx.settings)
    await require_confirmed(ctx.tx, ctx.plan_manager_id)
    by = ctx.actor.display_name
    is_new = await store.insert(ctx.tx, ctx.plan_manager_id, uuid7(), month, run_date, now, by)
    run_id = await store.lock_month(ctx.tx, ctx.plan_manager_id, month)
    before = or_404(await store.get(ctx.tx, ctx.plan_manager_id, run_id))
    if before.state == "running" and not is_new:
        return before
    await store.start(ctx.tx, ctx.plan_manager_id, run_id, month, now)
    return await record_change(ctx, "statement_run.started", run_id, None if is_new else before)


async def record_change(ctx: WriteContext, type_: str, run_id: UUID, before: StatementRun | None) -> StatementRun:
    """Record the event of a change of a run, and return the run."""
    after = or_404(await store.get(ctx.tx, ctx.plan_manager_id, run_id))
    await record_event(ctx, type_, before, after)
    return after


async def retry(ctx: WriteContext, run_id: UUID, item_ids: Sequence[UUID] | None) -> StatementRun:
    """Try items again that have failed or that nobody receives, by default all of a run.

    Mails and letters that have failed are queued again. An item without any mail or letter is made again, for the
    people who get it now. Raises NotFound, ValidationError for other items, and DomainError as `start`.
    """
    or_404(await store.lock(ctx.tx, ctx.plan_manager_id, run_id))
    storage_of(ctx.settings)
    await require_confirmed(ctx.tx, ctx.plan_manager_id)
    items = await store.lock_retried(ctx.tx, ctx.plan_manager_id, run_id, item_ids)
    _require_all(items, item_ids)
    before = or_404(await store.get(ctx.tx, ctx.plan_manager_id, run_id))
    if not items:
        return before
    now, recipients = datetime.now(UTC), defaultdict[UUID, list[RecipientRow]](list)
    for each in await store.list_recipients(ctx.tx, ctx.plan_manager_id, [each.id for each in items]):
        recipients[each.item_id].append(each)
    again = [each for each in items if not any(_is_under_way(row) for row in recipients[each.id])]
    await store.delete_items(ctx.tx, ctx.plan_manager_id, [each.id for each in again])
    for each in items:
        if each not in again:
            await _queue_again(ctx, each, recipients[each.id], now)
    await store.resume(ctx.tx, ctx.plan_manager_id, run_id, now)
    return await record_change(ctx, "statement_run.retried", run_id, before)


def _require_all(items: Sequence[ItemRow], item_ids: Sequence[UUID] | None) -> None:
    found = {each.id for each in items}
    message = "must be the id of an item of this run that has failed or that nobody receives"
    errors = [
        FieldError(f"item_ids[{index}]", message, "not_found")
        for index, each in enumerate(item_ids or ())
        if each not in found
    ]
    if errors:
        raise ValidationError(*errors)


def _is_under_way(row: RecipientRow) -> bool:
    """Whether somebody has the statement, or is about to get it."""
    return row.state in ("waiting", "sent", "to_print")


async def _queue_again(ctx: WriteContext, item: ItemRow, recipients: Sequence[RecipientRow], now: datetime) -> None:
    """Queue the mails again that have failed, and print the letters. What was sent, or is in the print file, stays."""
    person = await store.get_person(ctx.tx, ctx.plan_manager_id, item.participant_id)
    after = list[RecipientRow]()
    for each in recipients:
        row = each
        if each.state == "failed" and each.way == "mail" and ctx.settings.smtp_server:
            row = replace(each, state="waiting", reason=None, message=None, queued_at=now)
            await store.set_recipient(ctx.tx, ctx.plan_manager_id, row, now)
            await queue_mail(ctx, row.id, now)
        elif each.state == "failed" and each.way == "post" and person:
            row = await _print_again(ctx, each, person, now)
        after.append(row)
    await store.set_outcome(ctx.tx, ctx.plan_manager_id, item.id, sum_up(after), now)


async def _print_again(ctx: WriteContext, row: RecipientRow, person: Person, now: datetime) -> RecipientRow:
    """Put a letter into the print file if it can be printed now, or cancel it if the person doesn't get it any more."""
    if person.deceased_on or not person.receives_post:
        reason, message = ("deceased", DIED) if person.deceased_on else (None, None)
        row = replace(row, state="cancelled", reason=reason, message=message)
        await store.set_recipient(ctx.tx, ctx.plan_manager_id, row, now)
    elif person.has_postal_address:
        new_id = uuid7()
        await store.print_again(ctx.tx, ctx.plan_manager_id, row, new_id, now)
        row = replace(row, id=new_id, state="to_print", reason=None, message=None, queued_at=now)
    return row
