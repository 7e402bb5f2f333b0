"""The rules of plans: which plan is in force, what a line counts for, what is left, and what a plan must fulfil.

All functions take and return values. Amounts are in dollars to the cent. A plan that lacks a date, or that ends before
it starts, is in force on no day.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import NamedTuple, Protocol, TypeVar
from uuid import UUID

from msgspec.structs import replace

from plankeeper.core.errors import FieldError
from plankeeper.core.formatting import format_date, format_money
from plankeeper.resources.plans.schemas import FundingPeriod, PlanComponent, PlanRow, ServiceLine

ZERO = Decimal(0)
MAX_AMOUNT = Decimal(10) ** 10  # dollars
_DAY = timedelta(days=1)
_CATEGORY = re.compile(r"\s*([0-9]{1,2})_")


class Dates(Protocol):
    """Anything with a first and a last day."""

    @property
    def start_date(self) -> date | None: ...
    @property
    def end_date(self) -> date | None: ...


D = TypeVar("D", bound=Dates)
P = TypeVar("P", bound=PlanRow)


class Numbers(NamedTuple):
    """The numbers of a component on a day."""

    released: Decimal
    paid: Decimal
    pending: Decimal
    waiting: Decimal

    @property
    def available(self) -> Decimal:
        return self.released - self.paid - self.pending - self.waiting


# Which plan


def is_in_order(dates: Dates) -> bool:
    """Whether there are days on which it is in force."""
    return dates.start_date is not None and dates.end_date is not None and dates.start_date <= dates.end_date


def contains(dates: Dates, day: date) -> bool:
    return dates.start_date is not None and dates.end_date is not None and dates.start_date <= day <= dates.end_date


def plan_on(plans: Iterable[D], day: date) -> D | None:
    """The plan in force on a day."""
    return next((each for each in plans if contains(each, day)), None)


def current_plan(plans: Sequence[P], day: date) -> P | None:
    """The plan in force on a day, else the next one, else the latest one."""
    if found := plan_on(plans, day):
        return found
    upcoming = [each for each in plans if is_in_order(each) and each.start_date and each.start_date > day]
    if upcoming:
        return min(upcoming, key=_first_day)
    return max(plans, key=lambda each: (each.end_date or each.start_date or date.min, each.id), default=None)


def next_change(plans: Sequence[P], day: date) -> date | None:
    """The first later day on which another plan is the current one."""
    valid = [each for each in plans if is_in_order(each)]
    starts = [each.start_date for each in valid if each.start_date]
    ends = [each.end_date + _DAY for each in valid if each.end_date and each.end_date < date.max]
    current = current_plan(plans, day)
    return next(
        (each for each in sorted({*starts, *ends}) if each > day and current_plan(plans, each) != current), None
    )


def find_overlap(plan: Dates, others: Iterable[D]) -> D | None:
    """Another plan with a day in common."""
    if not is_in_order(plan):
        return None
    return next((each for each in others if is_in_order(each) and _overlaps(plan, each)), None)


def _overlaps(one: Dates, other: Dates) -> bool:
    return _first_day(one) <= _last_day(other) and _first_day(other) <= _last_day(one)


def _first_day(dates: Dates) -> date:
    return dates.start_date or date.min


def _last_day(dates: Dates) -> date:
    return dates.end_date or date.max


def describe_dates(dates: Dates) -> str:
    """Both dates: `1 Jul 2026 to 30 Jun 2027`."""
    start, end = (format_date(each) if each else "no date" for each in (dates.start_date, dates.end_date))
    return f"{start} to {end}"


# What a line counts for


def category_of(service_item_number: str | None) -> int | None:
    """The support category of an item: the number before the first underscore."""
    found = _CATEGORY.match(service_item_number or "")
    return int(found[1]) if found else None


def component_for(plan: PlanRow, component_id: UUID | None, category: int | None) -> PlanComponent | None:
    """The component that a line names, else the stated one with its category, else the flexible one."""
    named = next((each for each in plan.components if each.id == component_id), None)
    fitting = [each for each in plan.components if category in each.categories]
    stated = [each for each in fitting if each.kind == "stated"]
    return named or next(iter(stated or fitting), None)


def lines_of(plans: Sequence[PlanRow], plan: PlanRow, lines: Iterable[ServiceLine]) -> dict[UUID, list[ServiceLine]]:
    """The lines that count for each component of a plan, one of all `plans` of a participant."""
    found: dict[UUID, list[ServiceLine]] = {each.id: [] for each in plan.components}
    for line in lines:
        owner = plan_on(plans, line.service_date) if line.service_date else None
        component = component_for(plan, line.component_id, category_of(line.service_item_number))
        if owner and owner.id == plan.id and component:
            found[component.id].append(line)
    return found


# Numbers


def released(component: PlanComponent, day: date) -> Decimal:
    """The amounts of the periods that have begun on a day; without periods, the amount."""
    if not component.periods:
        return component.amount
    return sum((each.amount for each in component.periods if each.start_date <= day), ZERO)


def compute_numbers(component: PlanComponent, lines: Iterable[ServiceLine], day: date) -> Numbers:
    """The numbers of a component on a day, from the lines that count for it in their present states."""
    paid, pending, waiting = (component.spent_elsewhere.amount if component.spent_elsewhere else ZERO), ZERO, ZERO
    for line in lines:
        if line.service_date is None or line.service_date > day:
            continue
        paid += line.paid or ZERO
        rest = (line.amount or ZERO) - (line.paid or ZERO)
        if line.claim_status == "pending":
            pending += rest
        elif line.claim_status in WAITING_STATUSES and not line.wont_claim:
            waiting += rest
    return Numbers(released(component, day), paid, pending, waiting)


def with_numbers(plan: P, plans: Sequence[PlanRow], lines: Iterable[ServiceLine], day: date) -> P:
    """The plan, one of all `plans` of a participant, with the numbers of its components on a day."""
    own_lines = lines_of(plans, plan, lines)
    components = list[PlanComponent]()
    for each in plan.components:
        numbers = compute_numbers(each, own_lines[each.id], day)
        components.append(replace(each, **numbers._asdict(), available=numbers.available))
    return replace(plan, components=components)


# An import can have lines that are on hold; elsewhere, a hold leaves the state of a line.
WAITING_STATUSES = frozenset({"new", "flagged", "rejected", "on_hold"})


def runs_out_on(plan: Dates, component: PlanComponent, numbers: Numbers, day: date) -> date | None:
    """The day on which nothing is left, if it is used at the rate from the plan's first day to `day`.

    None if it lasts until the plan's last day, or if nothing has been used. `day` itself if nothing is left.
    """
    if not (plan.start_date and plan.end_date and contains(plan, day)):
        return None
    used = numbers.paid + numbers.pending + numbers.waiting
    left = component.amount - used
    if used <= 0:
        return None
    if left <= 0:
        return day
    days_so_far = (day - plan.start_date).days + 1
    days_left = int(left * days_so_far / used)
    return None if days_left >= (plan.end_date - day).days else day + timedelta(days=days_left)


# What a plan must fulfil


def find_errors(plan: PlanRow) -> Iterator[FieldError]:
    """The errors of a plan by itself, with their fields. One that is in force on no day can have any periods."""
    for index, each in enumerate(plan.components):
        yield from _find_component_errors(plan, each, f"components[{index}]")
    yield from _find_duplicates(plan.components)


def _find_component_errors(plan: PlanRow, component: PlanComponent, path: str) -> Iterator[FieldError]:
    if not component.categories:
        yield FieldError(f"{path}.categories", "must have at least one support category", "too_short")
    amounts = {f"{path}.amount": component.amount}
    amounts |= {f"{path}.periods[{number}].amount": each.amount for number, each in enumerate(component.periods)}
    if component.spent_elsewhere:
        amounts[f"{path}.spent_elsewhere.amount"] = component.spent_elsewhere.amount
    errors = [error for field, amount in amounts.items() for error in _find_amount_errors(field, amount)]
    yield from errors
    for number, each in enumerate(component.periods):
        yield from _find_period_errors(plan, each, component.periods[:number], f"{path}.periods[{number}]")
    if component.periods and not errors:
        total = sum((each.amount for each in component.periods), ZERO)
        if total != component.amount:
            amount = format_money(component.amount)
            yield FieldError(
                f"{path}.periods", f"must add up to the amount, {amount}, and not to {format_money(total)}"
            )


def _find_period_errors(
    plan: PlanRow, period: FundingPeriod, earlier: Sequence[FundingPeriod], path: str
) -> Iterator[FieldError]:
    if period.end_date < period.start_date:
        yield FieldError(f"{path}.end_date", f"is before the start date, {format_date(period.start_date)}")
    elif is_in_order(plan) and not (contains(plan, period.start_date) and contains(plan, period.end_date)):
        message = f"{describe_dates(period)} must lie in the plan, {describe_dates(plan)}"
        yield FieldError(f"{path}.start_date", message)
    if other := find_overlap(period, earlier):
        yield FieldError(f"{path}.start_date", f"{describe_dates(period)} overlaps {describe_dates(other)}")


def _find_amount_errors(field: str, amount: Decimal) -> Iterator[FieldError]:
    if not amount.is_finite() or amount >= MAX_AMOUNT:
        yield FieldError(field, f"must be a number below {MAX_AMOUNT:,}", "too_large")
    elif amount < 0:
        yield FieldError(field, "must be 0 or more", "too_small")
    elif amount != amount.quantize(Decimal("0.01")):
        yield FieldError(field, "must be in dollars and cents, with at most two decimal places", "invalid_format")


def _find_duplicates(components: Sequence[PlanComponent]) -> Iterator[FieldError]:
    """Components with the same id, and flexible ones with the same category: a line would count for either."""
    ids, flexible = set[UUID](), dict[int, int]()
    for index, each in enumerate(components):
        if each.id in ids:
            yield FieldError(f"components[{index}].id", "is a duplicate of an earlier component", "duplicate")
        ids.add(each.id)
        for category in each.categories if each.kind == "flexible" else ():
            if flexible.setdefault(category, index) != index:
                other = components[flexible[category]].name
                message = f"must not have {category}, which the flexible component {other} has"
                yield FieldError(f"components[{index}].categories", message)
