"""Whether lines fit into the budget, in the order of their receipt."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from plankeeper.resources.plans.budget_checks import Available, find_available
from plankeeper.resources.plans.rules import compute_numbers
from plankeeper.resources.plans.schemas import FundingPeriod, Plan, PlanComponent, ServiceLine, SpentElsewhere

START = date(2026, 7, 1)
TODAY = date(2026, 8, 15)
MONTHS = [
    FundingPeriod(start_date=date(2026, 7, 1), end_date=date(2026, 7, 31), amount=Decimal(100)),
    FundingPeriod(start_date=date(2026, 8, 1), end_date=date(2026, 8, 31), amount=Decimal(100)),
    FundingPeriod(start_date=date(2026, 9, 1), end_date=date(2026, 9, 30), amount=Decimal(100)),
]
CORE = PlanComponent(
    id=UUID(int=1), name="Core", kind="flexible", categories=[1], amount=Decimal(300), periods=MONTHS,
    spent_elsewhere=None,
)  # fmt: skip
PLAN = Plan(id=UUID(int=2), participant_id=UUID(int=3), start_date=START, end_date=date(2026, 9, 30), components=[CORE])


def line(number: int, day: date | None, amount: int, status: str = "new", **values: Any) -> ServiceLine:
    """A line of the invoice that was received as the one with this number."""
    own = ServiceLine(
        participant_id=PLAN.participant_id, invoice_id=UUID(int=number), id=UUID(int=100 + number), service_date=day,
        service_item_number="01_011_0107_1_1", component_id=None, claim_status=status, wont_claim=False,
        amount=Decimal(amount), paid=None, received_at=datetime(2026, 8, 1, tzinfo=UTC) + timedelta(hours=number),
        position=0,
    )  # fmt: skip
    return replace(own, **values)


def available(plans: Sequence[Plan], *lines: ServiceLine) -> dict[int, tuple[int, int]]:
    """The amount and what is available for each line, by the number of its invoice."""
    found = find_available(plans, lines, TODAY)
    return {owner.int: (int(each.amount), int(each.available)) for (owner, _), each in found.items()}


def test_earlier_invoices_count_and_later_ones_do_not() -> None:
    first, second = line(1, date(2026, 7, 5), 60), line(2, date(2026, 7, 1), 60)
    assert available([PLAN], second, first) == {1: (60, 100), 2: (60, 40)}


def test_lines_of_an_invoice_count_in_their_order() -> None:
    second = line(1, START, 30, id=UUID(int=200), position=1)
    found = find_available([PLAN], [second, line(1, START, 60)], TODAY)
    assert found[second.invoice_id, second.id] == Available("Core", Decimal(30), Decimal(40))


def test_the_smallest_of_the_periods_that_have_begun_counts() -> None:
    august = line(1, date(2026, 8, 5), 150)
    assert available([PLAN], august, line(2, date(2026, 7, 5), 60)) == {1: (150, 200), 2: (60, 50)}
    # September hasn't begun: what is spent of it doesn't count for July.
    september = line(1, date(2026, 9, 5), 250)
    assert available([PLAN], september, line(2, date(2026, 7, 5), 60)) == {1: (250, 300), 2: (60, 100)}


def test_only_lines_that_wait_are_compared_and_all_amounts_count() -> None:
    lines = [
        line(1, START, 10, "paid", paid=Decimal(10)),
        line(2, START, 20, "pending"),
        line(3, START, 30, "cancelled"),
        line(4, START, 40, wont_claim=True),
        line(5, None, 50),
        line(6, START, 60),
    ]
    assert available([PLAN], *lines) == {6: (60, 70)}


def test_without_periods_the_plan_counts_and_so_does_what_was_spent_elsewhere() -> None:
    spent = SpentElsewhere(amount=Decimal(120), as_of=START)
    own = replace(PLAN, components=[replace(CORE, periods=[], spent_elsewhere=spent)])
    assert available([own], line(1, date(2026, 9, 5), 50), line(2, START, 50)) == {1: (50, 180), 2: (50, 130)}


def test_a_plan_that_is_in_force_on_no_day_has_no_budget() -> None:
    assert available([replace(PLAN, end_date=None)], line(1, START, 5)) == {}


DAYS = st.integers(0, 91).map(lambda number: START + timedelta(days=number))
STATUSES = st.sampled_from(["new", "pending", "paid", "cancelled", "rejected"])


@given(st.lists(st.tuples(DAYS, st.integers(0, 100), STATUSES), min_size=1, max_size=8))
def test_the_last_line_has_what_the_numbers_of_its_period_say(values: list[tuple[date, int, str]]) -> None:
    lines = [line(number, *each) for number, each in enumerate(values, 1)]
    *others, last = lines
    found = find_available([PLAN], lines, TODAY).get((last.invoice_id, last.id))
    own = [each for each in MONTHS if each.end_date >= (last.service_date or START)]
    days = [each.end_date for index, each in enumerate(own) if index == 0 or each.start_date <= TODAY]
    if last.claim_status in ("new", "rejected") and last.amount:
        assert found
        assert found.available == min(compute_numbers(CORE, others, day).available for day in days)
    else:
        assert found is None
