"""A statement in plain words, for its page and its PDF, which say the same."""

from collections.abc import Iterable, Sequence
from datetime import date
from decimal import Decimal
from uuid import UUID
from zoneinfo import ZoneInfo

from msgspec import Struct

from plankeeper.core.dates import Month
from plankeeper.core.formatting import format_abn, format_date, format_money, format_ndis_number, single_line
from plankeeper.resources.statements.schemas import (
    AdjustmentWord,
    LineState,
    StatementAdjustment,
    StatementChange,
    StatementComponent,
    StatementContent,
    StatementLine,
)

ZERO = Decimal(0)
STATE_WORDS: dict[LineState, str] = {
    "waiting": "Not sent to the NDIS yet",
    "claimed": "Sent to the NDIS, no answer yet",
    "approved": "The NDIS has paid. We pay the bill next",
    "partly_approved": "The NDIS has paid a part. We pay that part next",
    "paid": "Paid",
    "partly_paid": "Paid in part",
    "rejected": "The NDIS said no",
    "not_claimed": "Not paid from your plan",
    "cancelled": "Cancelled",
}
ADJUSTMENT_WORDS: dict[AdjustmentWord, str] = {
    "refund": "The provider gave back {}",
    "reversal": "The NDIS took back {}",
    "repayment": "We gave back {} to the NDIS",
}
KIND_WORDS = {"service": "", "reimbursement": "Paid back to you", "fee": "Our fee"}


class Money(Struct, frozen=True):
    """A budget and what became of it, as people read it. `is_overdrawn`: more is used than there is."""

    name: str
    amount: str
    spent_before: str
    spent: str
    waiting: str
    available: str
    is_overdrawn: bool


class Service(Struct, frozen=True):
    """A line of an invoice. `notes` are sentences about it."""

    dates: str
    provider: str
    service: str
    amount: str
    spent: str
    state: str
    notes: Sequence[str]


class Change(Struct, frozen=True):
    """An earlier service with what the last statement said about it, and what is true now."""

    dates: str
    provider: str
    service: str
    before: str
    after: str
    notes: Sequence[str]


class StatementDocument(Struct, frozen=True, kw_only=True):
    """What a statement says, as texts. `outside`: what was spent in the month in no part of the budget."""

    title: str
    month: str
    participant: str
    ndis_number: str | None
    office: str
    office_abn: str | None
    email: str | None
    phone: str | None
    dispute: str | None
    plan: str
    made_on: str
    total: Money | None
    components: Sequence[Money]
    outside: str | None
    lines: Sequence[Service]
    lines_total: Service | None
    changes: Sequence[Change]


def to_document(statement: StatementContent, zone: ZoneInfo) -> StatementDocument:
    """The texts of a statement. The day on which it was made is that of the zone."""
    month = Month.parse(statement.month).title
    names = {each.id: each.name for each in statement.components}
    office = statement.office
    return StatementDocument(
        title=f"Statement for {month}",
        month=month,
        participant=single_line(statement.participant.name, 200) or "Name not recorded",
        ndis_number=format_ndis_number(number) if (number := statement.participant.ndis_number) else None,
        office=single_line(office.name, 200),
        office_abn=format_abn(office.abn) if office.abn else None,
        email=office.email,
        phone=office.phone,
        dispute=office.dispute,
        plan=f"{format_date(statement.plan_start_date)} to {format_date(statement.plan_end_date)}",
        made_on=format_date(statement.created_at.astimezone(zone)),
        total=_add_up(statement.components),
        components=[_describe_component(each) for each in statement.components],
        outside=_outside(statement),
        lines=[_describe_line(each, names) for each in statement.lines],
        lines_total=_add_lines(statement.lines),
        changes=[_describe_change(each, names) for each in statement.earlier_changes],
    )


def _outside(statement: StatementContent) -> str | None:
    names = {each.id for each in statement.components}
    spent = sum((each.spent for each in statement.lines if each.component_id not in names), ZERO)
    return format_money(spent) if names and spent else None


def _add_up(components: Sequence[StatementComponent]) -> Money | None:
    if not components:
        return None
    return _to_money(
        "All parts together",
        *(
            sum((getattr(each, name) for each in components), ZERO)
            for name in ("amount", "spent_before", "spent", "waiting", "available")
        ),
    )


def _describe_component(each: StatementComponent) -> Money:
    name = single_line(each.name, 255)
    return _to_money(name, each.amount, each.spent_before, each.spent, each.waiting, each.available)


def _to_money(
    name: str, amount: Decimal, spent_before: Decimal, spent: Decimal, waiting: Decimal, available: Decimal
) -> Money:
    sums = (format_money(each) for each in (amount, spent_before, spent, waiting, available))
    return Money(name, *sums, is_overdrawn=available < 0)


def _describe_line(line: StatementLine, components: dict[UUID, str]) -> Service:
    return Service(
        dates=_describe_days(line.service_date, line.service_date_to),
        provider=_provider(line),
        service=_service(line),
        amount=format_money(line.amount),
        spent=format_money(line.spent),
        state=STATE_WORDS[line.state],
        notes=list(_list_notes(line, components)),
    )


def _add_lines(lines: Sequence[StatementLine]) -> Service | None:
    if not lines:
        return None
    amount, spent = (format_money(sum((getattr(each, name) for each in lines), ZERO)) for name in ("amount", "spent"))
    return Service("", "", "All services of the month", amount, spent, "", [])


def _describe_days(first: date, last: date | None) -> str:
    return f"{format_date(first)} to {format_date(last)}" if last and last != first else format_date(first)


def _provider(line: StatementLine) -> str:
    return single_line(line.provider or "Provider not recorded", 200)


def _service(line: StatementLine) -> str:
    return single_line(line.description or line.item or "A service", 200)


def _list_notes(line: StatementLine, components: dict[UUID, str]) -> Iterable[str]:
    if KIND_WORDS[line.kind]:
        yield KIND_WORDS[line.kind]
    if line.invoice_number:
        yield f"Invoice {single_line(line.invoice_number, 50)}"
    if line.description and line.item:
        yield f"Item {single_line(line.item, 50)}"
    if components and line.component_id not in components:
        yield "Not in a part of your budget"
    if line.reason:
        yield f"Reason: {single_line(line.reason, 255).rstrip('.')}"
    yield from map(_describe_adjustment, line.adjustments)


def _describe_adjustment(each: StatementAdjustment) -> str:
    return f"{ADJUSTMENT_WORDS[each.kind].format(format_money(each.amount))} on {format_date(each.date)}"


def _describe_change(change: StatementChange, components: dict[UUID, str]) -> Change:
    line = change.after or change.before
    if line is None:  # a change always has one of them
        raise ValueError(change.line_id)
    return Change(
        dates=_describe_days(line.service_date, line.service_date_to),
        provider=_provider(line),
        service=_service(line),
        before=_summarise(change.before) if change.before else "Not on an earlier statement",
        after=_summarise(change.after) if change.after else "No longer an earlier service of this plan",
        notes=list(_list_notes(line, components)),
    )


def _summarise(line: StatementLine) -> str:
    paid = f", {format_money(line.spent)} paid" if line.spent != line.amount or line.state != "paid" else ""
    return f"{format_money(line.amount)}{paid}: {STATE_WORDS[line.state]}"
