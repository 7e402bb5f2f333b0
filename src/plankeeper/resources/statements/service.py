"""Statements: made, read again, and recorded as sent."""

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from uuid import UUID

from uuid_utils.compat import uuid7

from plankeeper.core.context import ReadContext, WriteContext, or_404
from plankeeper.core.dates import Month
from plankeeper.core.errors import FieldError, ValidationError
from plankeeper.core.json import to_json
from plankeeper.database.client import Executor
from plankeeper.events.recorder import record_event
from plankeeper.resources.parents import participant_exists
from plankeeper.resources.plans.rules import describe_dates
from plankeeper.resources.plans.schemas import Plan
from plankeeper.resources.plans.store import list_of_participants
from plankeeper.resources.statements import files, store
from plankeeper.resources.statements.computation import compute, known_lines, plans_in
from plankeeper.resources.statements.schemas import (
    SendWay,
    Statement,
    StatementContent,
    StatementOffice,
    StatementParticipant,
    StatementRow,
    StatementSend,
)
from plankeeper.resources.statements.store import Recipient


async def make_statement(
    ctx: WriteContext,
    participant_id: UUID,
    plan_id: UUID | None,
    month: date,
    *,
    run_id: UUID | None = None,
    after_death: bool = False,
) -> Statement:
    """Make and store the statement of a plan and the month that begins on the day `month`.

    Without `plan_id`, it is that of the last plan that is in force in the month. A run makes each statement once: the
    second time, it is returned unchanged. Raises NotFound for an unknown participant, and ValidationError with the
    field `month` (no plan is in force in it: `inconsistent`; it hasn't begun: `too_large`), `plan_id` (`not_found`,
    `inconsistent`), or `after_death` (the participant has died: `required`).
    """
    recipient = or_404(await store.get_recipient(ctx.tx, ctx.plan_manager_id, participant_id))
    _require_choice(recipient, after_death=after_death)
    plans = await list_of_participants(ctx.tx, ctx.plan_manager_id, [participant_id])
    period = Month.of(month)
    plan = _choose_plan(plans, plan_id, period, ctx.settings.today)
    if run_id and (made := await store.get_of_run(ctx.tx, ctx.plan_manager_id, run_id, plan.id)):
        return made.statement
    row = await _make(ctx, recipient, plan, plans, period, run_id)
    await store.insert(ctx.tx, ctx.plan_manager_id, row)
    await record_event(ctx, "statement.created", None, row.summary)
    return row.statement


def _require_choice(recipient: Recipient, *, after_death: bool) -> None:
    if recipient.deceased_on and not after_death:
        message = (
            "must be true: the participant has died, and their statements have stopped. Make one only if somebody, "
            "such as the executor, has asked for it"
        )
        raise ValidationError(FieldError("after_death", message, "required"))


def _choose_plan(plans: Sequence[Plan], plan_id: UUID | None, month: Month, today: date) -> Plan:
    """The plan of a statement: the one with the id, or the last one of the month. Raises ValidationError."""
    if month.first > today:
        raise ValidationError(
            FieldError("month", f"must have begun: the last one is {Month.of(today).text}", "too_large")
        )
    found = plans_in(plans, month)
    if plan_id is None:
        if not found:
            message = f"has no plan of the participant: {_list_plans(plans)}"
            raise ValidationError(FieldError("month", message, "inconsistent"))
        return found[-1]
    plan = next((each for each in plans if each.id == plan_id), None)
    if plan is None:
        raise ValidationError(FieldError("plan_id", "must be the id of a plan of the participant", "not_found"))
    if plan not in found:
        message = f"is in force on no day of {month.text}: {describe_dates(plan)}"
        raise ValidationError(FieldError("plan_id", message, "inconsistent"))
    return plan


def _list_plans(plans: Iterable[Plan]) -> str:
    listed = "; ".join(describe_dates(each) for each in plans)
    return f"their plans are {listed}" if listed else "they have none"


async def _make(
    ctx: WriteContext, recipient: Recipient, plan: Plan, plans: Sequence[Plan], month: Month, run_id: UUID | None
) -> StatementRow:
    lines = await store.list_lines(ctx.tx, ctx.plan_manager_id, plan.participant_id)
    former = _chain(await store.list_sent_before(ctx.tx, ctx.plan_manager_id, plan.id, month.first))
    numbers = compute(plan, plans, lines, known_lines(former), month)
    statement_id, now, by = uuid7(), datetime.now(UTC), ctx.actor.display_name
    content = StatementContent(
        id=statement_id,
        participant_id=plan.participant_id,
        plan_id=plan.id,
        previous_id=former[-1].id if former else None,
        month=month.text,
        plan_start_date=plan.start_date or month.first,
        plan_end_date=plan.end_date or month.last,
        participant=StatementParticipant(name=recipient.name, ndis_number=recipient.ndis_number),
        office=StatementOffice(
            name=recipient.office,
            abn=recipient.office_abn,
            email=recipient.office_email,
            phone=recipient.office_phone,
            dispute=recipient.office_dispute,
        ),
        components=numbers.components,
        lines=numbers.lines,
        earlier_changes=numbers.earlier_changes,
        created_at=now,
        created_by=by,
    )
    return StatementRow(
        id=statement_id,
        participant_id=plan.participant_id,
        plan_id=plan.id,
        month=month.first,
        content=to_json(content),
        made_at=now,
        made_by=by,
        updated_at=now,
        run_id=run_id,
    )


def _chain(rows: Sequence[StatementRow]) -> list[StatementContent]:
    """The last statement that was sent, and those that it builds on, in the order of their months."""
    contents = {each.id: each.statement for each in rows}
    found, next_id = list[StatementContent](), rows[-1].id if rows else None
    while next_id and (content := contents.get(next_id)):
        found.append(content)
        next_id = content.previous_id
    return found[::-1]


async def get(db: Executor, plan_manager_id: UUID, participant_id: UUID, statement_id: UUID) -> StatementRow:
    """A statement of a participant. Raises NotFound, also for one that is kept of an erased or deleted participant."""
    row = await store.get(db, plan_manager_id, statement_id)
    is_known = (
        row
        and row.participant_id == participant_id
        and await participant_exists(db, plan_manager_id, row.participant_id)
    )
    return or_404(row if is_known else None)


async def record_sent(ctx: WriteContext, statement_id: UUID, way: SendWay, recipient: str) -> StatementSend:
    """Record that a statement was sent, with the event `statement.sent`. Raises NotFound."""
    row = or_404(await store.get(ctx.tx, ctx.plan_manager_id, statement_id))
    send = StatementSend(way=way, recipient=recipient, sent_at=datetime.now(UTC))
    before = row.summary
    row.updated_at = await store.insert_send(ctx.tx, ctx.plan_manager_id, uuid7(), statement_id, send)
    row.sent = [*row.sent, send]
    await record_event(ctx, "statement.sent", before, row.summary)
    return send


async def statement_pdf(ctx: ReadContext | WriteContext, statement_id: UUID) -> bytes:
    """The PDF of a statement, which is rendered and stored the first time.

    Raises NotFound, DomainError `service_unavailable` without a storage of documents, and UnprintableError. A
    worker passes `ReadContext(db, plan_manager_id, settings)`.
    """
    db = ctx.tx if isinstance(ctx, WriteContext) else ctx.db
    row = or_404(await store.get(db, ctx.plan_manager_id, statement_id))
    return await files.get_pdf(db, ctx.settings, ctx.plan_manager_id, row)
