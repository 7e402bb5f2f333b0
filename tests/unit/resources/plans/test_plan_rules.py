"""The rules of plans, compared with plain computations over all days."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from plankeeper.resources.plans.rules import (
    WAITING_STATUSES,
    Numbers,
    amounts_of,
    budget_course,
    category_of,
    component_for,
    compute_numbers,
    contains,
    course_days,
    current_plan,
    describe_dates,
    find_errors,
    find_overlap,
    lines_of,
    next_change,
    plan_on,
    released,
    runs_out_on,
    with_numbers,
)
from plankeeper.resources.plans.schemas import FundingPeriod, Plan, PlanComponent, ServiceLine, SpentElsewhere

START = date(2026, 7, 1)
DAYS = [START + timedelta(days=number) for number in range(60)]
PARTICIPANT = UUID(int=1)
STATUSES = (
    *sorted(WAITING_STATUSES),
    "pending",
    "payment_ready",
    "partially_ready",
    "partially_paid",
    "paid",
    "cancelled",
)

days = st.sampled_from(DAYS)
amounts = st.integers(0, 100_000).map(lambda cents: Decimal(cents) / 100)


def plan(number: int, start: date | None, end: date | None, *components: PlanComponent) -> Plan:
    return Plan(
        id=UUID(int=number), participant_id=PARTICIPANT, start_date=start, end_date=end, components=list(components)
    )


def component(number: int = 1, amount: Decimal | int = 1000, **fields: Any) -> PlanComponent:
    values: dict[str, Any] = {
        "name": f"Component {number}", "kind": "stated", "categories": [15], "periods": [], "spent_elsewhere": None
    }  # fmt: skip
    return PlanComponent(id=UUID(int=100 + number), amount=Decimal(amount), **(values | fields))


def period(start: date, end: date, amount: Decimal | int) -> FundingPeriod:
    return FundingPeriod(start_date=start, end_date=end, amount=Decimal(amount))


def line(**fields: Any) -> ServiceLine:
    values: dict[str, Any] = {
        "participant_id": PARTICIPANT, "invoice_id": UUID(int=7), "id": UUID(int=8),
        "service_date": START, "service_item_number": "15_056_0128_1_3",
        "component_id": None, "claim_status": "new", "wont_claim": False, "amount": Decimal(100), "paid": None,
        "received_at": datetime(2026, 7, 1, tzinfo=UTC), "position": 0,
    }  # fmt: skip
    return ServiceLine(**(values | fields))


@st.composite
def separate_plans(draw: st.DrawFn) -> list[Plan]:
    """Plans that don't overlap, in any order, some of which lack a date or end before they start."""
    limits = sorted(draw(st.lists(days, unique=True, max_size=8)))
    found = [plan(number, *pair) for number, pair in enumerate(list(pairwise(limits))[::2], 10)]
    found += [plan(number, None, end) for number, end in enumerate(draw(st.lists(st.none() | days, max_size=1)), 50)]
    found += [plan(60, limits[-1], limits[0])] if len(limits) > 1 and draw(st.booleans()) else []
    return draw(st.permutations(found))


@given(separate_plans(), days)
def test_the_current_plan_changes_on_the_next_change_and_not_before(plans: list[Plan], day: date) -> None:
    change = next_change(plans, day)
    current = current_plan(plans, day)
    for later in DAYS[DAYS.index(day) :]:
        if change is None or later < change:
            assert current_plan(plans, later) == current
    if change:
        assert current_plan(plans, change) != current


@given(separate_plans(), days)
def test_the_current_plan_is_in_force_or_next_or_latest(plans: list[Plan], day: date) -> None:
    current = current_plan(plans, day)
    in_force = [each for each in plans if contains(each, day)]
    upcoming = [each for each in plans if each.start_date and each.end_date and day < each.start_date <= each.end_date]
    if in_force:
        assert [current] == in_force == [plan_on(plans, day)]
    elif upcoming:
        assert current == min(upcoming, key=lambda each: each.start_date or day)
    else:
        assert (current is None) == (not plans)


@given(days, days, days, days)
def test_plans_overlap_if_they_have_a_day_in_common(start: date, end: date, other_start: date, other_end: date) -> None:
    one, other = plan(1, start, end), plan(2, other_start, other_end)
    common = [day for day in DAYS if contains(one, day) and contains(other, day)]
    assert (find_overlap(one, [other]) is other) == bool(common)
    assert find_overlap(plan(3, start, None), [one]) is None


def test_a_line_counts_for_the_component_that_it_names_or_that_has_its_category() -> None:
    core = component(1, kind="flexible", categories=[1, 4])
    transport, therapy = component(2, categories=[4]), component(3, categories=[15])
    own = plan(1, START, DAYS[-1], core, transport, therapy)
    assert component_for(own, None, 1) is core
    assert component_for(own, None, 4) is transport
    assert component_for(own, core.id, 15) is core
    assert component_for(own, UUID(int=999), 15) is therapy
    assert component_for(own, None, 7) is None
    assert component_for(own, None, None) is None


@pytest.mark.parametrize("is_pace_plan", [False, True])
def test_the_category_is_that_of_the_catalogue_or_the_beginning_of_the_number(is_pace_plan: bool) -> None:
    numbers = ("15_056_0128_1_3", "1_2", "X", "155_1", "", None)
    lines = [line(service_item_number=each) for each in numbers]
    assert [category_of(each, is_pace_plan) for each in lines] == [15, 1, *[None] * 4]
    assert category_of(line(category=11, pace_category=21), is_pace_plan) == (21 if is_pace_plan else 11)
    assert category_of(line(category=11), is_pace_plan) == 11


def test_the_kind_of_plan_decides_the_component_of_a_line() -> None:
    former, pace = component(1, categories=[11]), component(2, categories=[21])
    own = plan(1, START, DAYS[-1], former, pace)
    lines = [line(category=11, pace_category=21, service_date=START)]
    assert lines_of([own], own, lines) == {former.id: lines, pace.id: []}
    newer = replace(own, is_pace_plan=True)
    assert lines_of([newer], newer, lines) == {former.id: [], pace.id: lines}


@given(
    st.lists(st.tuples(amounts, st.none() | amounts, st.sampled_from(STATUSES), st.booleans(), st.none() | days)),
    amounts,
    days,
)
def test_numbers_are_sums_of_the_lines_up_to_the_day(
    lines: list[tuple[Decimal, Decimal | None, str, bool, date | None]], elsewhere: Decimal, day: date
) -> None:
    spent = SpentElsewhere(amount=elsewhere, as_of=START)
    own = component(spent_elsewhere=spent, periods=[period(each, each, 10) for each in DAYS[::7]], amount=90)
    found = compute_numbers(
        own,
        [
            line(amount=amount, paid=paid, claim_status=status, wont_claim=wont_claim, service_date=on)
            for amount, paid, status, wont_claim, on in lines
        ],
        day,
    )
    counted = [each for each in lines if each[4] and each[4] <= day]
    waiting = [each for each in counted if each[2] in WAITING_STATUSES and not each[3]]
    assert found.paid == elsewhere + sum(paid or 0 for _, paid, *_ in counted)
    assert found.pending == sum(amount - (paid or 0) for amount, paid, status, *_ in counted if status == "pending")
    assert found.waiting == sum(amount - (paid or 0) for amount, paid, *_ in waiting)
    assert found.released == 10 * len([each for each in DAYS[::7] if each <= day]) == released(own, day)
    assert found.available == found.released - found.paid - found.pending - found.waiting


def test_lines_count_for_the_plan_in_force_on_the_day_of_the_service() -> None:
    therapy, later_therapy = component(1), component(2)
    first, second = plan(1, START, DAYS[9], therapy), plan(2, DAYS[10], DAYS[-1], later_therapy)
    lines = [line(service_date=day) for day in (DAYS[0], DAYS[9], DAYS[10], None)]
    assert lines_of([first, second], first, lines) == {therapy.id: lines[:2]}
    assert lines_of([first, second], second, lines) == {later_therapy.id: lines[2:3]}
    [numbers] = with_numbers(first, [first, second], lines, DAYS[0]).components
    assert (numbers.waiting, numbers.available) == (100, 900)


def test_the_amount_is_released_at_once_without_periods() -> None:
    assert released(component(amount=500), START - timedelta(days=1)) == 500


def test_it_runs_out_at_the_rate_of_the_days_so_far() -> None:
    own, budget = plan(1, DAYS[0], DAYS[59]), component(amount=100)

    def on_day_ten(paid: int) -> date | None:
        return runs_out_on(own, budget, Numbers(Decimal(100), Decimal(paid), Decimal(0), Decimal(0)), DAYS[9])

    assert on_day_ten(50) == DAYS[19]
    assert on_day_ten(100) == DAYS[9]
    assert on_day_ten(10) is None  # it lasts
    assert on_day_ten(0) is None
    assert runs_out_on(own, budget, Numbers(*[Decimal(9)] * 4), DAYS[0] - timedelta(days=1)) is None


@given(
    st.lists(st.tuples(amounts, st.none() | amounts, st.sampled_from(STATUSES), st.booleans(), st.none() | days)),
    amounts,
    st.sampled_from([DAYS[0] - timedelta(days=9), *DAYS, DAYS[-1] + timedelta(days=9)]),
    st.sampled_from([59, 400]),
)
def test_a_course_has_the_numbers_of_each_of_its_days(
    lines: list[tuple[Decimal, Decimal | None, str, bool, date | None]], elsewhere: Decimal, today: date, length: int
) -> None:
    spent = SpentElsewhere(amount=elsewhere, as_of=START)
    own = component(spent_elsewhere=spent, periods=[period(each, each, 10) for each in DAYS[::7]], amount=90)
    whole = plan(1, START, START + timedelta(days=length), own)
    found_lines = [
        line(amount=amount, paid=paid, claim_status=status, wont_claim=wont_claim, service_date=on)
        for amount, paid, status, wont_claim, on in lines
    ]
    course = budget_course(whole, own, found_lines, today)
    for each in course.days:
        numbers = compute_numbers(own, found_lines, each.day)
        assert each.released == numbers.released
        assert each.used == (numbers.used if each.day <= today else None)
    assert [each.day for each in course.days] == course_days(whole, today)
    assert (course.days[0].day, course.days[-1].day) == (whole.start_date, whole.end_date)
    assert (today in course_days(whole, today)) == contains(whole, today)
    assert course.releases == [(day, released(own, day)) for day in DAYS[::7]]
    assert course.spent_before == elsewhere
    if course.projection:
        numbers = compute_numbers(own, found_lines, today)
        runs_out = runs_out_on(whole, own, numbers, today)
        assert course.projection[0] == (runs_out or whole.end_date)
        assert numbers.used < course.projection[1] <= own.amount
        assert [each.projected is not None for each in course.days] == [each.day >= today for each in course.days]


def test_a_course_goes_on_at_the_rate_of_the_days_so_far() -> None:
    whole = plan(1, date(2026, 7, 1), date(2027, 6, 30))
    budget, lines = component(amount=1000), [line(amount=Decimal(31))]

    def projection(today: date) -> tuple[date, Decimal] | None:
        return budget_course(whole, budget, lines, today).projection

    assert projection(date(2026, 7, 31)) == (date(2027, 6, 30), 365)  # a dollar a day
    assert projection(date(2026, 7, 3)) == (date(2026, 10, 4), 1000)  # 31 dollars in three days
    assert projection(date(2027, 6, 30)) is None
    assert budget_course(whole, budget, [], date(2026, 7, 31)).projection is None
    monthly = [date(2026, 7, 1), *(date(2026, month, 1) - timedelta(days=1) for month in range(8, 13))]
    assert course_days(whole, date(2026, 12, 5))[:7] == [*monthly, date(2026, 12, 5)]
    until_the_end = course_days(plan(1, date(9999, 7, 1), date.max), date.max)
    assert until_the_end[-3:] == [date(9999, 10, 31), date(9999, 11, 30), date.max]
    weekly = [START, date(2026, 7, 5), date(2026, 7, 12)]
    assert course_days(plan(1, START, DAYS[-1]), date(2028, 1, 1))[:3] == weekly


def test_dates_are_described_for_people() -> None:
    assert describe_dates(plan(1, START, None)) == "1 Jul 2026 to no date"


HALF_YEARS = [period(START, DAYS[29], 400), period(DAYS[30], DAYS[59], 600)]


@pytest.mark.parametrize(
    "components, errors",
    [
        ([component(periods=HALF_YEARS)], []),
        ([component(categories=[])], [("components[0].categories", "too_short")]),
        ([component(amount=-1)], [("components[0].amount", "too_small")]),
        ([component(amount=Decimal("1.005"))], [("components[0].amount", "invalid_format")]),
        ([component(amount=Decimal(10) ** 10)], [("components[0].amount", "too_large")]),
        ([component(amount=Decimal("NaN"))], [("components[0].amount", "too_large")]),
        (
            [component(spent_elsewhere=SpentElsewhere(amount=Decimal(-5), as_of=START))],
            [("components[0].spent_elsewhere.amount", "too_small")],
        ),
        ([component(periods=HALF_YEARS[:1])], [("components[0].periods", "inconsistent")]),
        (
            [component(amount=0, periods=[period(START, DAYS[59] + timedelta(days=1), 0)])],
            [("components[0].periods[0].start_date", "inconsistent")],
        ),
        (
            [component(amount=0, periods=[period(START, DAYS[5], 0), period(DAYS[5], DAYS[9], 0)])],
            [("components[0].periods[1].start_date", "inconsistent")],
        ),
        (
            [component(amount=0, periods=[period(DAYS[5], START, 0)])],
            [("components[0].periods[0].end_date", "inconsistent")],
        ),
        (
            [component(1, kind="flexible", categories=[1, 2]), component(2, kind="flexible", categories=[2])],
            [("components[1].categories", "inconsistent")],
        ),
        ([component(1, kind="flexible", categories=[1]), component(2, categories=[1])], []),
        ([component(1), component(1)], [("components[1].id", "duplicate")]),
    ],
)
def test_errors_name_their_fields(components: Sequence[PlanComponent], errors: list[tuple[str, str]]) -> None:
    found = list(find_errors(plan(1, START, DAYS[59], *components)))
    assert [(each.field, each.code) for each in found] == errors


def test_messages_name_dates_and_sums() -> None:
    own = plan(1, START, DAYS[59], component(periods=[period(START, DAYS[29], 400)]))
    assert [each.message for each in find_errors(own)] == ["must add up to the amount, $1,000.00, and not to $400.00"]
    own.components = [component(amount=0, periods=[period(START, DAYS[59] + timedelta(days=9), 0)])]
    [error] = find_errors(own)
    assert error.message == "1 Jul 2026 to 7 Sep 2026 must lie in the plan, 1 Jul 2026 to 29 Aug 2026"
    own.end_date = None
    assert list(find_errors(own)) == []


def test_the_amounts_of_a_line_follow_its_claims() -> None:
    cases: list[tuple[dict[str, Any], tuple[int, int, int]]] = [
        ({"claim_status": "pending"}, (0, 100, 0)),
        # A part is paid, and its rest is claimed: the claim counts, also if a part was reversed since.
        ({"claim_status": "pending", "paid": Decimal(60), "pending": Decimal(40)}, (60, 40, 0)),
        ({"claim_status": "pending", "paid": Decimal(40), "pending": Decimal(40)}, (40, 40, 0)),
        ({"claim_status": "partially_paid", "paid": Decimal(60)}, (60, 0, 0)),
        ({"claim_status": "partially_paid", "paid": Decimal(60), "is_rest_waiting": True}, (60, 0, 40)),
        ({"claim_status": "partially_ready", "paid": Decimal(60), "is_rest_waiting": True}, (60, 0, 40)),
        ({"claim_status": "payment_ready", "paid": Decimal(99)}, (99, 0, 0)),
        ({"claim_status": "rejected", "paid": Decimal(0)}, (0, 0, 100)),
        ({"claim_status": "rejected", "paid": Decimal(0), "wont_claim": True}, (0, 0, 0)),
        ({"claim_status": "paid", "paid": Decimal(60)}, (60, 0, 0)),
    ]
    assert [amounts_of(line(**fields)) for fields, _ in cases] == [expected for _, expected in cases]
