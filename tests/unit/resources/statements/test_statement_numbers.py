"""The numbers of statements follow from the ones before, whatever happens to lines and plans in between."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from plankeeper.core.dates import Month
from plankeeper.resources.plans.schemas import Plan, PlanComponent, SpentElsewhere
from plankeeper.resources.statements.computation import Numbers, SourceLine, compute, known_lines, plans_in
from plankeeper.resources.statements.schemas import (
    StatementContent,
    StatementLine,
    StatementOffice,
    StatementParticipant,
)

FIRST = date(2026, 1, 1)
MONTHS = [Month.of(date(2026, number, 1)) for number in range(1, 7)]
PARTICIPANT, PLAN, OTHER_PLAN = UUID(int=1), UUID(int=2), UUID(int=3)
COMPONENTS = [UUID(int=10), UUID(int=11)]
STATES = (
    "new",
    "flagged",
    "pending",
    "payment_ready",
    "partially_ready",
    "paid",
    "partially_paid",
    "rejected",
    "cancelled",
)
PAID = {"payment_ready", "partially_ready", "paid", "partially_paid"}
CENTS = st.integers(0, 100_000).map(lambda cents: Decimal(cents) / 100)


def component(id_: UUID, category: int, elsewhere: Decimal) -> PlanComponent:
    spent = SpentElsewhere(amount=elsewhere, as_of=FIRST) if elsewhere else None
    return PlanComponent(
        id=id_, name=f"Part {category}", kind="stated", categories=[category], amount=Decimal(5000), periods=[],
        spent_elsewhere=spent,
    )  # fmt: skip


def plans_until(end: date, elsewhere: Decimal) -> list[Plan]:
    parts = [component(each, 1 + number, elsewhere) for number, each in enumerate(COMPONENTS)]
    first = Plan(id=PLAN, participant_id=PARTICIPANT, start_date=FIRST, end_date=end, components=parts)
    following = end + timedelta(days=1)
    return [first, Plan(id=OTHER_PLAN, participant_id=PARTICIPANT, start_date=following, end_date=date(2027, 1, 1))]


@st.composite
def source_lines(draw: st.DrawFn) -> SourceLine:
    state, amount = draw(st.sampled_from(STATES)), draw(CENTS)
    paid = amount * draw(st.integers(0, 100)) / 100 if state in PAID else None
    number = draw(st.integers(0, 7))
    return SourceLine(
        participant_id=PARTICIPANT,
        service_date=FIRST + timedelta(days=draw(st.integers(0, 200))),
        service_item_number=f"{draw(st.integers(1, 3)):02}_011",
        component_id=draw(st.sampled_from([None, *COMPONENTS])),
        claim_status=state,
        wont_claim=draw(st.booleans()),
        amount=amount,
        paid=paid,
        is_rest_waiting=draw(st.booleans()),
        invoice_id=UUID(int=100 + number),
        id=UUID(int=100),  # ids of lines are unique only in their invoices
        received_at=datetime(2026, 1, 1, tzinfo=UTC),
        position=0,
        adjustments=[],
    )


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[Month, list[Plan], list[SourceLine]]]:
    """What is on record when each month's statement is made; some months have none. Anything can change."""
    chosen = draw(st.lists(st.sampled_from(MONTHS), unique=True, min_size=1).map(sorted))
    found = list[tuple[Month, list[Plan], list[SourceLine]]]()
    for month in chosen:
        lines = draw(st.lists(source_lines(), max_size=8, unique_by=lambda line: line.invoice_id))
        end = draw(st.dates(month.first, date(2026, 12, 31)))
        found.append((month, plans_until(end, draw(CENTS)), lines))
    return found


def content(month: Month, numbers: Numbers) -> StatementContent:
    return StatementContent(
        id=UUID(int=9),
        participant_id=PARTICIPANT,
        plan_id=PLAN,
        previous_id=None,
        month=month.text,
        plan_start_date=FIRST,
        plan_end_date=FIRST,
        participant=StatementParticipant(name="Robin Hale", ndis_number=None),
        office=StatementOffice(name="Harbour Plans", abn=None, email=None, phone=None),
        components=numbers.components,
        lines=numbers.lines,
        earlier_changes=numbers.earlier_changes,
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
        created_by=None,
    )


def spent_in(line: StatementLine | None, component_id: UUID) -> Decimal:
    return line.spent if line and line.component_id == component_id else Decimal(0)


def spent_lines(lines: Sequence[StatementLine], component_id: UUID) -> Decimal:
    return sum((spent_in(each, component_id) for each in lines), Decimal(0))


@settings(max_examples=100, deadline=None)
@given(histories())
def test_what_was_spent_before_follows_from_the_statement_before(
    history: list[tuple[Month, list[Plan], list[SourceLine]]],
) -> None:
    former = list[StatementContent]()
    for month, plans, lines in history:
        numbers = compute(plans[0], plans, lines, known_lines(former), month)
        last = {each.id: each for each in former[-1].components} if former else {}
        for each in numbers.components:
            before = last.get(each.id)
            added = sum(
                (
                    spent_in(change.after, each.id) - spent_in(change.before, each.id)
                    for change in numbers.earlier_changes
                ),
                Decimal(0),
            )
            start = before.spent_before + before.spent - before.spent_elsewhere if before else Decimal(0)
            assert each.spent_before == start + added + each.spent_elsewhere
            assert each.spent == spent_lines(numbers.lines, each.id)
            assert each.available == each.amount - each.spent_before - each.spent - each.waiting
        former.append(content(month, numbers))


@settings(max_examples=100, deadline=None)
@given(st.lists(source_lines(), max_size=8, unique_by=lambda line: line.invoice_id))
def test_a_month_later_nothing_has_changed_unless_something_has(lines: list[SourceLine]) -> None:
    plans, former = plans_until(date(2026, 12, 31), Decimal(0)), list[StatementContent]()
    for month in MONTHS:
        numbers = compute(plans[0], plans, lines, known_lines(former), month)
        assert numbers.earlier_changes == []
        former.append(content(month, numbers))


def test_words_about_a_line_are_no_change() -> None:
    plans = plans_until(date(2026, 12, 31), Decimal(0))
    line = SourceLine(
        participant_id=PARTICIPANT, service_date=date(2026, 1, 5), service_item_number="01_011", component_id=None,
        claim_status="new", wont_claim=False, amount=Decimal(10), paid=None, invoice_id=UUID(int=100), id=UUID(int=1),
        received_at=datetime(2026, 1, 1, tzinfo=UTC), position=0, provider="Amber", adjustments=[],
    )  # fmt: skip
    january = compute(plans[0], plans, [line], {}, MONTHS[0])
    known = known_lines([content(MONTHS[0], january)])
    same = [replace(line, provider="Amber Physio", claim_status="flagged")]
    assert compute(plans[0], plans, same, known, MONTHS[1]).earlier_changes == []
    dearer = [replace(line, amount=Decimal(11))]
    [change] = compute(plans[0], plans, dearer, known, MONTHS[1]).earlier_changes
    assert (change.before, change.after and change.after.amount) == (january.lines[0], 11)


def test_the_plans_of_a_month() -> None:
    plans = plans_until(date(2026, 3, 15), Decimal(0))
    assert [each.id for each in plans_in(plans, MONTHS[2])] == [PLAN, OTHER_PLAN]
    assert [each.id for each in plans_in(plans[::-1], MONTHS[1])] == [PLAN]
    assert plans_in(plans, Month.of(date(2025, 12, 31))) == []
