"""The numbers and lines of a statement, without input or output. Amounts are in dollars.

What is spent is what the agency has paid, by the day of the service. A statement knows the lines of the statements
before it that were sent: each line with an earlier service that differs from what they say is an earlier change.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from uuid import UUID

from msgspec import Struct

from plankeeper.core.dates import Month
from plankeeper.resources.plans import rules
from plankeeper.resources.plans.schemas import Plan, PlanComponent, ServiceLine
from plankeeper.resources.statements.schemas import (
    LineState,
    StatementAdjustment,
    StatementChange,
    StatementComponent,
    StatementContent,
    StatementLine,
)

ZERO = Decimal(0)
LineKey = tuple[UUID, UUID]  # the invoice and the line: a line's id alone isn't unique

STATES: Mapping[str, LineState] = {
    "new": "waiting",
    "flagged": "waiting",
    "on_hold": "waiting",
    "pending": "claimed",
    "payment_ready": "approved",
    "partially_ready": "partly_approved",
    "partially_paid": "partly_paid",
    "paid": "paid",
    "rejected": "rejected",
    "cancelled": "cancelled",
}


class SourceLine(ServiceLine, frozen=True, kw_only=True):
    """A line of an invoice as a statement reads it. `is_fee`: it is the plan manager's own fee."""

    service_date_to: date | None = None
    invoice_number: str | None = None
    is_reimbursement: bool = False
    is_fee: bool = False
    provider: str | None = None
    description: str | None = None
    rejection_reason: str | None = None
    adjustments: list[StatementAdjustment]


class Numbers(Struct, frozen=True):
    """What a statement says about money and services."""

    components: list[StatementComponent]
    lines: list[StatementLine]
    earlier_changes: list[StatementChange]


def plans_in(plans: Iterable[Plan], month: Month) -> list[Plan]:
    """The plans in force on a day of a month, in the order of their first days."""
    found = [each for each in plans if rules.is_in_order(each) and _has_day_in(each, month)]
    return sorted(found, key=lambda each: each.start_date or date.min)


def _has_day_in(plan: Plan, month: Month) -> bool:
    return (plan.start_date or date.min) <= month.last and (plan.end_date or date.max) >= month.first


def known_lines(former: Sequence[StatementContent]) -> dict[LineKey, StatementLine]:
    """What statements of a plan, in the order of their months, say about its lines: of each the last word."""
    known = dict[LineKey, StatementLine]()
    for statement in former:
        for change in statement.earlier_changes:
            if change.before:
                known.pop(key_of(change.before), None)
            if change.after:
                known[key_of(change.after)] = change.after
        known |= {key_of(each): each for each in statement.lines}
    return known


def key_of(line: StatementLine) -> LineKey:
    return line.invoice_id, line.line_id


def compute(
    plan: Plan, plans: Sequence[Plan], lines: Iterable[SourceLine], known: Mapping[LineKey, StatementLine], month: Month
) -> Numbers:
    """A statement of a plan, one of all `plans` of a participant, from all lines of the participant.

    `known` are the lines of the statements before it, see `known_lines`.
    """
    own = [_describe(plan, each) for each in lines if _is_of_plan(plans, plan, each)]
    own = [each for each in own if each.state != "cancelled" or each.spent or key_of(each) in known]
    own.sort(key=lambda each: (each.service_date, each.invoice_id, each.line_id))
    earlier = [each for each in own if each.service_date < month.first]
    current = [each for each in own if month.first <= each.service_date <= month.last]
    components = [_add_up(each, earlier, current) for each in plan.components]
    return Numbers(components, current, _find_changes(known, earlier))


def _is_of_plan(plans: Sequence[Plan], plan: Plan, line: SourceLine) -> bool:
    owner = rules.plan_on(plans, line.service_date) if line.service_date else None
    return owner is not None and owner.id == plan.id


def _describe(plan: Plan, line: SourceLine) -> StatementLine:
    spent, pending, waiting = rules.amounts_of(line)
    component = rules.component_for(plan, line.component_id, rules.category_of(line, plan.is_pace_plan))
    state = STATES[line.claim_status]
    return StatementLine(
        line_id=line.id,
        invoice_id=line.invoice_id,
        invoice_number=line.invoice_number,
        kind="fee" if line.is_fee else "reimbursement" if line.is_reimbursement else "service",
        service_date=line.service_date or date.min,
        service_date_to=line.service_date_to,
        provider=line.provider,
        item=line.service_item_number,
        description=line.description,
        component_id=component.id if component else None,
        amount=line.amount or ZERO,
        spent=spent,
        waiting=pending + waiting,
        state="not_claimed" if line.wont_claim and state in ("waiting", "rejected") else state,
        reason=line.rejection_reason if line.claim_status == "rejected" else None,
        adjustments=line.adjustments,
    )


def _add_up(
    component: PlanComponent, earlier: Iterable[StatementLine], current: Iterable[StatementLine]
) -> StatementComponent:
    elsewhere = rules.spent_before(component)
    before = [each for each in earlier if each.component_id == component.id]
    now = [each for each in current if each.component_id == component.id]
    spent_before = elsewhere + sum((each.spent for each in before), ZERO)
    spent = sum((each.spent for each in now), ZERO)
    waiting = sum((each.waiting for each in (*before, *now)), ZERO)
    return StatementComponent(
        id=component.id,
        name=component.name,
        amount=component.amount,
        spent_elsewhere=elsewhere,
        spent_before=spent_before,
        spent=spent,
        waiting=waiting,
        available=component.amount - spent_before - spent - waiting,
    )


def _find_changes(known: Mapping[LineKey, StatementLine], earlier: Sequence[StatementLine]) -> list[StatementChange]:
    """What differs from the statements before, in the order of the services."""
    now = {key_of(each): each for each in earlier}
    changes = [
        StatementChange(line_id=each.line_id, before=known.get(key), after=each)
        for key, each in now.items()
        if key not in known or _is_changed(known[key], each)
    ]
    changes += [
        StatementChange(line_id=each.line_id, before=each, after=None) for key, each in known.items() if key not in now
    ]
    return sorted(changes, key=_date_of)


def _is_changed(before: StatementLine, after: StatementLine) -> bool:
    return _facts(before) != _facts(after)


def _facts(line: StatementLine) -> tuple[object, ...]:
    """What counts as a change: amounts and states, and not the words about them."""
    return line.amount, line.spent, line.waiting, line.state, line.component_id, line.adjustments


def _date_of(change: StatementChange) -> date:
    line = change.after or change.before
    return line.service_date if line else date.min
