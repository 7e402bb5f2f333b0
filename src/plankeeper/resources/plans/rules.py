"""The rules of plans: which plan is in force, what a line counts for, what is left, and what a plan must fulfil.

All functions take and return values. Amounts are in dollars to the cent. A plan that lacks a date, or that ends before
it starts, is in force on no day.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta
from decimal import Decimal
from itertools import accumulate
from typing import NamedTuple, Protocol, TypeVar
from uuid import UUID

from msgspec.structs import replace

from plankeeper.core.errors import FieldError
from plankeeper.core.formatting import CENT, format_date, format_money
from plankeeper.resources.plans.schemas import FundingPeriod, LineSum, PlanComponent, PlanRow

ZERO = Decimal(0)
MAX_AMOUNT = Decimal(10) ** 10  # dollars
MAX_WEEKLY_DAYS = 120  # of a plan whose course has a point for each week; that of a longer one has one for each month
SUNDAY = 6
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
L = TypeVar("L", bound=LineSum)


class Numbers(NamedTuple):
    """The numbers of a component on a day."""

    released: Decimal
    paid: Decimal
    pending: Decimal
    waiting: Decimal

    @property
    def used(self) -> Decimal:
        return self.paid + self.pending + self.waiting

    @property
    def available(self) -> Decimal:
        return self.released - self.used


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


def category_of(line: LineSum, is_pace_plan: bool) -> int | None:
    """The support category of a line in a kind of plan: as the catalogue has it, else as the number begins."""
    if line.category is None:
        return category_in(line.service_item_number)
    return line.pace_category if is_pace_plan and line.pace_category is not None else line.category


def category_in(service_item_number: str | None) -> int | None:
    """The number before the first underscore."""
    found = _CATEGORY.match(service_item_number or "")
    return int(found[1]) if found else None


def component_for(plan: PlanRow, component_id: UUID | None, category: int | None) -> PlanComponent | None:
    """The component that a line names, else the stated one with its category, else the flexible one."""
    named = next((each for each in plan.components if each.id == component_id), None)
    fitting = [each for each in plan.components if category in each.categories]
    stated = [each for each in fitting if each.kind == "stated"]
    return named or next(iter(stated or fitting), None)


def lines_of(plans: Sequence[PlanRow], plan: PlanRow, lines: Iterable[L]) -> dict[UUID, list[L]]:
    """The lines that count for each component of a plan, one of all `plans` of a participant."""
    found: dict[UUID, list[L]] = {each.id: [] for each in plan.components}
    for line in lines:
        owner = plan_on(plans, line.service_date) if line.service_date else None
        component = component_for(plan, line.component_id, category_of(line, plan.is_pace_plan))
        if owner and owner.id == plan.id and component:
            found[component.id].append(line)
    return found


# Numbers


def released(component: PlanComponent, day: date) -> Decimal:
    """The amounts of the periods that have begun on a day; without periods, the amount."""
    if not component.periods:
        return component.amount
    return sum((each.amount for each in component.periods if each.start_date <= day), ZERO)


def compute_numbers(component: PlanComponent, lines: Iterable[LineSum], day: date) -> Numbers:
    """The numbers of a component on a day, from the lines that count for it in their present states."""
    sums = [spent_before(component), ZERO, ZERO]
    for line in lines:
        if line.service_date is not None and line.service_date <= day:
            sums = [sum_ + part for sum_, part in zip(sums, amounts_of(line), strict=True)]
    return Numbers(released(component, day), *sums)


def spent_before(component: PlanComponent) -> Decimal:
    """What others have spent."""
    return component.spent_elsewhere.amount if component.spent_elsewhere else ZERO


def amounts_of(line: LineSum) -> tuple[Decimal, Decimal, Decimal]:
    """What is paid, pending and waiting of a line. The unpaid part counts nowhere unless it is claimed again."""
    paid = line.paid or ZERO
    rest = (line.amount or ZERO) - paid
    claimed = rest if line.pending is None else line.pending
    is_waiting = line.claim_status in WAITING_STATUSES or (
        line.is_rest_waiting and line.claim_status in _PARTLY_PAID_STATUSES
    )
    pending = claimed if line.claim_status == "pending" else ZERO
    return paid, pending, rest if is_waiting and not line.wont_claim else ZERO


def numbers_of(component: PlanComponent) -> Numbers:
    """The numbers that a component has, of a response or of `with_numbers`; zero for those that it lacks."""
    return Numbers(*(getattr(component, name) or ZERO for name in Numbers._fields))


def with_numbers(plan: P, plans: Sequence[PlanRow], lines: Iterable[LineSum], day: date) -> P:
    """The plan, one of all `plans` of a participant, with the numbers of its components on a day."""
    own_lines = lines_of(plans, plan, lines)
    components = list[PlanComponent]()
    for each in plan.components:
        numbers = compute_numbers(each, own_lines[each.id], day)
        components.append(replace(each, **numbers._asdict(), available=numbers.available))
    return replace(plan, components=components)


# An import can have lines that are on hold; elsewhere, a hold leaves the state of a line.
WAITING_STATUSES = frozenset({"new", "flagged", "rejected", "on_hold"})
_PARTLY_PAID_STATUSES = frozenset({"partially_ready", "partially_paid"})


def runs_out_on(plan: Dates, component: PlanComponent, numbers: Numbers, day: date) -> date | None:
    """The day on which nothing is left, if it is used at the rate from the plan's first day to `day`.

    None if it lasts until the plan's last day, or if nothing has been used. `day` itself if nothing is left.
    """
    if not (plan.start_date and plan.end_date and contains(plan, day)):
        return None
    used = numbers.used
    left = component.amount - used
    if used <= 0:
        return None
    if left <= 0:
        return day
    days_so_far = (day - plan.start_date).days + 1
    days_left = int(left * days_so_far / used)
    return None if days_left >= (plan.end_date - day).days else day + timedelta(days=days_left)


def passed_share(plan: Dates, day: date) -> Decimal:
    """The part of a plan's days that has passed at the end of a day, from 0 to 1; 0 for one in force on no day."""
    if not is_in_order(plan):
        return ZERO
    first, last = _first_day(plan), _last_day(plan)
    passed = (min(day, last) - first).days + 1
    return Decimal(max(0, passed)) / ((last - first).days + 1)


class Budget(NamedTuple):
    """The components of a plan together."""

    amount: Decimal
    used: Decimal

    @property
    def left(self) -> Decimal:
        """What isn't used, also of periods that haven't begun."""
        return self.amount - self.used


def budget_of(plan: PlanRow) -> Budget:
    """The budget of a plan whose components have numbers."""
    amounts = sum((each.amount for each in plan.components), ZERO)
    return Budget(amounts, sum((numbers_of(each).used for each in plan.components), ZERO))


LITTLE_USED_AFTER = Decimal(1) / 3  # of a plan's time


def is_little_used(budget: Budget, passed: Decimal) -> bool:
    """Whether a third of a plan's time has passed, and the used part is less than half of the part that has passed."""
    return budget.amount > 0 and passed >= LITTLE_USED_AFTER and 2 * budget.used < passed * budget.amount


# The course of a budget


class BudgetDay(NamedTuple):
    """A component at the end of a day. `used` is null after today, `projected` before it, or without a projection."""

    day: date
    released: Decimal
    used: Decimal | None
    projected: Decimal | None


class BudgetCourse(NamedTuple):
    """A component from the plan's first to its last day.

    `releases` are the days on which an amount becomes available, each with all that is released by then, beginning with
    the plan's first day. `spent_before` is what others have spent. `projection` is the day on which use at the present
    rate reaches the amount, or else the plan's last day, with what is used by then.
    """

    releases: Sequence[tuple[date, Decimal]]
    spent_before: Decimal
    days: Sequence[BudgetDay]
    projection: tuple[date, Decimal] | None


def budget_course(plan: Dates, component: PlanComponent, lines: Iterable[LineSum], today: date) -> BudgetCourse:
    """The course of a component, from the lines that count for it. The plan must have both dates, in order."""
    first, days = _first_day(plan), course_days(plan, today)
    used = [ZERO] * len(days)
    for line in lines:
        if line.service_date and line.service_date <= days[-1]:
            used[bisect_left(days, line.service_date)] += sum(amounts_of(line))
    used = list(accumulate(used, initial=spent_before(component)))[1:]
    projection = project(plan, component, used[days.index(today)], today) if today in days else None
    steps = sorted({first, *(each.start_date for each in component.periods if each.start_date > first)})
    return BudgetCourse(
        [(each, released(component, each)) for each in steps],
        spent_before(component),
        [
            BudgetDay(
                day,
                released(component, day),
                used[index] if day <= today else None,
                _projected(plan, used[days.index(today)], day, today) if projection and day >= today else None,
            )
            for index, day in enumerate(days)
        ],
        projection,
    )


def course_days(plan: Dates, today: date) -> list[date]:
    """The last day of each month of a plan, or of each week of a short one; its first and last day, and today."""
    first, last = _first_day(plan), _last_day(plan)
    before_last = [first + _DAY * number for number in range((last - first).days)]
    is_short = len(before_last) < MAX_WEEKLY_DAYS
    ends = [each for each in before_last if (each.weekday() == SUNDAY if is_short else (each + _DAY).day == 1)]
    return sorted({first, *ends, last, *([today] if contains(plan, today) else [])})


def project(plan: Dates, component: PlanComponent, used: Decimal, today: date) -> tuple[date, Decimal] | None:
    """The projection of a course. None if nothing is used, if nothing is left, or on the plan's last day."""
    last = _last_day(plan)
    if used <= 0 or used >= component.amount or today >= last:
        return None
    runs_out = runs_out_on(plan, component, Numbers(ZERO, used, ZERO, ZERO), today)
    return (runs_out, component.amount) if runs_out else (last, _projected(plan, used, last, today))


def _projected(plan: Dates, used: Decimal, day: date, today: date) -> Decimal:
    """What is used on a later day at the rate from the plan's first day to today."""
    days_so_far, days = ((each - _first_day(plan)).days + 1 for each in (today, day))
    return (used * days / days_so_far).quantize(CENT)


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
    elif amount != amount.quantize(CENT):
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
