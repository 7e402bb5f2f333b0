"""Who gets the fee of a month: properties that hold for any plans and dates."""

from datetime import date, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from plankeeper.core.dates import Month
from plankeeper.resources.fees.monthly import invoice_number, last_managed_day, plan_fees
from plankeeper.resources.fees.schemas import Candidate, NewFee, PlanDays
from plankeeper.resources.support_items.schemas import SupportItem
from support.catalogues import read_items
from support.fees import FEE_ITEM

MONTH = Month.parse("2026-02")
DAYS = [MONTH.first + timedelta(days=each) for each in range((MONTH.last - MONTH.first).days + 1)]
[ITEM] = read_items(FEE_ITEM)
ITEMS: dict[date, SupportItem] = dict.fromkeys(DAYS, ITEM)

days = st.dates(date(2025, 11, 1), date(2026, 5, 31))
maybe_day = st.none() | days


@st.composite
def plan_lists(draw: st.DrawFn) -> list[PlanDays]:
    """Plans that don't overlap."""
    bounds = sorted(draw(st.lists(days, unique=True, max_size=6)))
    pairs = zip(bounds[::2], bounds[1::2], strict=False)
    return [PlanDays(start, end) for start, end in pairs]


@st.composite
def participants(draw: st.DrawFn) -> Candidate:
    return candidate(
        status=draw(st.sampled_from(["Active", "Inactive", "Lead"])),
        managed_from=draw(maybe_day),
        managed_until=draw(maybe_day),
        deceased_on=draw(maybe_day),
        date_ceased=draw(maybe_day),
        has_fee=draw(st.booleans()),
        plans=draw(plan_lists()),
    )


def with_ids(people: list[Candidate]) -> list[Candidate]:
    return [replace(each, id=UUID(int=99 - number)) for number, each in enumerate(people)]


def candidate(**values: Any) -> Candidate:
    usual: dict[str, Any] = {
        "id": UUID(int=1), "status": "Active", "state": "NSW", "remoteness": None, "managed_from": None,
        "managed_until": None, "deceased_on": None, "date_ceased": None, "has_fee": False, "plans": [],
    }  # fmt: skip
    return Candidate(**usual | values)


def is_managed(participant: Candidate, day: date) -> bool:
    """Whether a plan was in force and managed by the office on a day."""
    last = [participant.managed_until, participant.date_ceased, participant.deceased_on]
    return (
        any(each.start <= day <= each.end for each in participant.plans)
        and (participant.managed_from is None or participant.managed_from <= day)
        and all(each is None or day <= each for each in last)
    )


@given(participants())
def test_the_service_is_on_the_last_managed_day(participant: Candidate) -> None:
    managed = [each for each in DAYS if is_managed(participant, each)]
    found = last_managed_day(participant, MONTH)
    if isinstance(found, date):
        assert found == max(managed)
        assert not participant.has_fee
        assert participant.status != "Lead"
    elif found == "already_made":
        assert participant.has_fee
    elif found == "inactive":
        assert managed
        assert participant.status == "Inactive"
        assert (participant.managed_until, participant.date_ceased, participant.deceased_on) == (None, None, None)
    else:
        assert not managed or participant.status == "Lead"


@given(st.lists(participants(), max_size=12).map(with_ids), st.integers(0, 5))
def test_everybody_gets_one_fee_or_is_left_out_for_one_reason(people: list[Candidate], limit: int) -> None:
    plan = plan_fees(people, MONTH, ITEMS, limit)
    listed = [each.participant_id for each in (*plan.fees, *plan.left_out)]
    assert sorted(listed) == sorted(each.id for each in people)
    assert len(plan.fees) <= limit
    assert plan.total == len(plan.fees) * Decimal("104.45")
    if any(each.reason == "batch_full" for each in plan.left_out):
        assert len(plan.fees) == limit


@given(st.lists(participants(), max_size=12).map(with_ids), st.integers(1, 5))
def test_repeated_requests_make_each_fee_once(people: list[Candidate], limit: int) -> None:
    made = list[NewFee]()
    for _ in range(len(people) + 1):
        fees = plan_fees(people, MONTH, ITEMS, limit).fees
        made += fees
        for each in people:
            each.has_fee = each.has_fee or each.id in {fee.participant_id for fee in fees}
    assert len({each.participant_id for each in made}) == len(made)
    assert not [each for each in people if isinstance(last_managed_day(each, MONTH), date)]


def test_without_a_price_there_is_no_fee() -> None:
    plans = [PlanDays(MONTH.first, MONTH.last)]
    anywhere = candidate(plans=plans)
    [left_out] = plan_fees([anywhere], MONTH, {}).left_out
    assert left_out.reason == "not_in_catalogue"
    [unpriced] = read_items(FEE_ITEM | {"Type": "Unit Price = $1"})
    items = {MONTH.last: unpriced}
    found = plan_fees([anywhere], MONTH, items)
    assert [each.reason for each in found.left_out] == ([] if unpriced.has_price_limit else ["no_price"])


def test_the_number_of_an_invoice_is_the_same_each_time() -> None:
    participant = UUID("017b7bf8-a550-7f78-86c0-9b0f022e7364")
    assert invoice_number(MONTH, participant) == "FEE-2026-02-0F022E7364"
    assert (MONTH.first, MONTH.last) == (date(2026, 2, 1), date(2026, 2, 28))
