"""Whether the lines of a participant's invoices fit into the budgets of the plans, in the order of their receipt."""

from collections.abc import Iterable, Sequence
from datetime import date
from decimal import Decimal
from typing import NamedTuple
from uuid import UUID

from plankeeper.resources.plans import rules
from plankeeper.resources.plans.schemas import PlanComponent, PlanRow, ServiceLine


class Available(NamedTuple):
    """What a line or its rest that isn't claimed yet costs, and what its component has available without it."""

    component: str
    amount: Decimal
    available: Decimal


def find_available(
    plans: Sequence[PlanRow], lines: Iterable[ServiceLine], today: date
) -> dict[tuple[UUID, UUID], Available]:
    """The smallest amount available for each line or rest that isn't claimed yet, by the ids of its invoice and itself.

    Counted are the lines of invoices that were received earlier, and those before it in its own invoice. Compared are
    the last day of the funding period of the service and of each later one that has begun; without periods, the last
    day of the plan. `lines` are all of a participant that aren't deleted.
    """
    found = dict[tuple[UUID, UUID], Available]()
    in_order = sorted(lines, key=lambda each: (each.received_at, each.invoice_id, each.position))
    for plan in plans:
        if plan.components and rules.is_in_order(plan):
            own = rules.lines_of(plans, plan, in_order)
            for component in plan.components:
                found |= _find_available(plan, component, own[component.id], today)
    return found


def _find_available(
    plan: PlanRow, component: PlanComponent, lines: Sequence[ServiceLine], today: date
) -> dict[tuple[UUID, UUID], Available]:
    periods = sorted(component.periods, key=lambda each: each.start_date)
    starts = {each.end_date: each.start_date for each in periods} or {plan.end_date or today: plan.start_date or today}
    left = {day: rules.released(component, day) for day in starts}
    if component.spent_elsewhere:
        left = {day: amount - component.spent_elsewhere.amount for day, amount in left.items()}
    found = dict[tuple[UUID, UUID], Available]()
    for line in lines:
        days = [day for day in starts if line.service_date and day >= line.service_date]
        paid, pending, waiting = rules.amounts_of(line)
        for day in days:
            left[day] -= paid + pending
        compared = [left[day] for index, day in enumerate(days) if index == 0 or starts[day] <= today]
        if waiting and compared:
            found[line.invoice_id, line.id] = Available(component.name, waiting, min(compared))
        for day in days:
            left[day] -= waiting
    return found
