"""The checks of services, items, prices, budgets and records: what each finds, and where it says nothing."""

from datetime import date, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from msgspec.structs import replace

from plankeeper.resources.invoices.checks import find_facts
from plankeeper.resources.plans.budget_checks import Available
from plankeeper.resources.plans.schemas import FundingPeriod, PlanComponent
from plankeeper.resources.support_items.schemas import PricedItem, PriceLimits
from support.checks import LINE_ID, TODAY, VALID_INVOICE, line, plan

SENTENCES = tuple[str, list[str]]
YEAR_2025 = plan(date(2025, 7, 1), date(2026, 6, 30))
YEAR_2026 = plan(date(2026, 7, 1), date(2027, 6, 30))
ITEM = PricedItem(
    category=15,
    pace_category=18,
    has_price_limit=True,
    price_limits=PriceLimits(nsw=Decimal("193.99"), vic=Decimal("180.00"), remote=Decimal("271.59")),
)


def sentences(*, budget: dict[UUID, Available] | None = None, **changes: Any) -> dict[str, list[str]]:
    """What the checks say of the valid invoice with these changes, by code."""
    found = find_facts(replace(VALID_INVOICE, **changes), TODAY, budget)
    return {code: [fact.sentence for fact in facts] for code, facts in found.items()}


def served(first: str | None, last: str | None = None, **values: Any) -> Any:
    """A line with a service between two days."""
    days = [date.fromisoformat(each) if each else None for each in (first, last or first)]
    return line(service_date_from=days[0], service_date_to=days[1], **values)


BEFORE = "before the plan starts (1 Jul 2026)"
DATE_CASES: dict[str, tuple[list[Any], Any, str, list[str]]] = {
    "a late bill for a service before the renewal": ([YEAR_2025, YEAR_2026], served("2026-06-12"), "2026-08-03", []),
    "a bill for the former plan, which isn't recorded": (
        [YEAR_2026], served("2026-06-12"), "2026-08-03", [f"Line 1 has a service on 12 Jun 2026, 19 days {BEFORE}."],
    ),
    "a service across two plans": ([YEAR_2025, YEAR_2026], served("2026-06-28", "2026-07-03"), "2026-08-03", []),
    "a service that goes on after the last plan": (
        [YEAR_2025], served("2026-06-28", "2026-07-03"), "2026-08-03",
        ["Line 1 has a service on 3 Jul 2026, 3 days after the plan ends (30 Jun 2026)."],
    ),
    "a service in the gap between two plans": (
        [plan(date(2026, 1, 1), date(2026, 5, 31)), YEAR_2026], served("2026-06-12"), "2026-08-03",
        ["Line 1 has a service on 12 Jun 2026, 12 days after the plan ends (31 May 2026)."],
    ),
    "no plan": ([], served("2020-06-12"), "2026-08-03", []),
    "a plan without an end": ([plan(date(2026, 7, 1), None)], served("2026-08-01"), "2026-08-03", []),
    "before a plan without an end": (
        [plan(date(2026, 7, 1), None)], served("2026-06-12"), "2026-08-03",
        [f"Line 1 has a service on 12 Jun 2026, 19 days {BEFORE}."],
    ),
    "a plan without dates": ([plan(None, None)], served("2020-06-12"), "2026-08-03", []),
    "a line without a day: the invoice's date counts": (
        [YEAR_2026], served(None), "2026-06-12", [f"The invoice is dated 12 Jun 2026, 19 days {BEFORE}."],
    ),
    "an old date of an invoice whose lines have days": ([YEAR_2026], served("2026-08-01"), "2026-06-12", []),
}  # fmt: skip


@pytest.mark.parametrize("case", DATE_CASES)
def test_services_are_compared_with_the_plan_in_force(case: str) -> None:
    plans, only_line, day, expected = DATE_CASES[case]
    found = sentences(plans=plans, lines=[only_line], invoice_date=date.fromisoformat(day))
    assert found.get("check_dates", []) == expected


def test_services_before_and_after_the_management_and_after_death() -> None:
    lines = [served("2026-08-01"), served("2026-09-10", "2026-10-02")]
    found = sentences(
        lines=lines, managed_from=date(2026, 9, 1), managed_until=date(2026, 9, 30), deceased_on=date(2026, 9, 15)
    )
    assert found["not_managed"] == [
        "Line 1 has a service on 1 Aug 2026. We manage the participant’s plan from 1 Sep 2026.",
        "Line 2 has a service on 2 Oct 2026. We manage the participant’s plan until 30 Sep 2026.",
    ]
    assert found["after_death"] == ["Line 2 has a service on 2 Oct 2026. The participant died on 15 Sep 2026."]
    on_the_limits = [served("2026-09-01", "2026-09-15"), served(None)]
    limits = {"managed_from": date(2026, 9, 1), "managed_until": date(2026, 9, 15), "deceased_on": date(2026, 9, 15)}
    assert not {"not_managed", "after_death"} & sentences(lines=on_the_limits, **limits).keys()


def test_a_service_can_be_claimed_from_its_day_for_two_years() -> None:
    plans = [plan(date(2020, 1, 1), date(2030, 1, 1))]
    found = sentences(lines=[served("2024-10-29", "2026-10-31")], plans=plans)
    assert found == {
        "service_in_future": ["Line 1 has a service on 31 Oct 2026, which is in the future."],
        "too_old": ["Line 1 has a service on 29 Oct 2024. The first day that can be claimed is 30 Oct 2024."],
    }
    assert sentences(lines=[served("2024-10-30", TODAY.isoformat())], plans=plans) == {}
    leap_day = replace(VALID_INVOICE, lines=[served("2026-02-28"), served("2026-02-27")], plans=plans)
    assert [fact.line for fact in find_facts(leap_day, date(2028, 2, 29))["too_old"]] == [2]


def test_a_price_with_gst_is_compared_with_the_limit_if_claims_have_it() -> None:
    lines = [line(is_known_item=True, item=ITEM, unit_price=Decimal("180.00"), gst_code="P1")]
    values = {"lines": lines, "participant_state": "NSW", "remoteness": None}
    assert "price_above_limit" not in sentences(**values, prices_include_gst=False)
    found = sentences(**values, prices_include_gst=True)["price_above_limit"]
    assert found == ["Line 1: the unit price is $198.00, the limit $193.99."]


def test_an_item_is_looked_up_in_the_catalogue() -> None:
    lines = [
        line(service_item_number="99_999_9999_9_9"),
        line(service_item_number="TRANSPORT", is_known_item=True, item=ITEM, unit_price=None, total_price=None),
        served("2026-09-01", is_known_item=True),
        line(service_item_number="X"),
    ]
    without = sentences(lines=lines, total=None, subtotal=None, tax=None)
    assert "unknown_item" not in without
    found = sentences(lines=lines, total=None, subtotal=None, tax=None, has_catalogue=True)
    assert found["unknown_item"] == [
        "Line 1: the support catalogue has no item 99_999_9999_9_9.", "Line 4: the support catalogue has no item X.",
    ]  # fmt: skip
    assert found["item_not_in_force"] == ["Line 3: the item 01_011_0107_1_1 isn’t in force on 1 Sep 2026."]
    assert found["check_item_code"] == ["Line 4: “X” isn’t a valid number, such as 01_011_0107_1_1."]


@pytest.mark.parametrize(
    "price,state,remoteness,item,limit",
    [
        ("194.00", "NSW", None, ITEM, "$193.99"),
        ("193.99", "NSW", None, ITEM, None),
        ("193.99", "VIC", None, ITEM, "$180.00"),
        ("271.60", "NSW", "remote", ITEM, "$271.59"),
        ("999.00", "NSW", "very_remote", ITEM, None),
        ("999.00", "QLD", None, ITEM, None),
        ("999.00", "NSW", None, replace(ITEM, has_price_limit=False), None),
        ("999.00", "NSW", None, None, None),
    ],
)
def test_the_price_is_compared_with_the_limit_of_the_place(
    price: str, state: str, remoteness: Any, item: PricedItem | None, limit: str | None
) -> None:
    lines = [line("1", price, price, is_known_item=True, item=item)]
    found = sentences(lines=lines, participant_state=state, remoteness=remoteness)
    expected = [f"Line 1: the unit price is ${price}, the limit {limit}."] if limit else []
    assert found.get("price_above_limit", []) == expected


def test_a_price_is_computed_from_the_total_if_it_is_missing() -> None:
    lines = [line("2", None, "400.00", is_known_item=True, item=ITEM)]
    assert sentences(lines=lines)["price_above_limit"] == ["Line 1: the unit price is $200.00, the limit $193.99."]


@pytest.mark.parametrize(
    "tax,lines,expected",
    [
        ("10.00", [line()], []),
        (None, [line(gst_code="P2")], []),
        ("0.00", [line(gst_code="P5")], []),
        ("3.34", [line("1", "33.35", "33.35")], []),
        ("3.33", [line("1", "33.35", "33.35")], []),  # half a cent, rounded down
        ("0.10", [line("1", "0.45", "0.45")] * 2, []),  # rounded line by line
        ("0.09", [line("1", "0.45", "0.45")] * 2, []),
        ("10.01", [line()], ["A tenth of the P1 lines is $10.00, the invoice says $10.01."]),
        (None, [line()], ["A tenth of the P1 lines is $10.00, the invoice says $0.00."]),
        ("10.00", [line(gst_code="P2")], ["No line has the GST code P1, but the invoice has a tax of $10.00."]),
        ("10.00", [line(None, None, None)], []),
        ("10.00", [], []),
    ],
)
def test_the_tax_is_a_tenth_of_the_taxable_lines(tax: str | None, lines: list[Any], expected: list[str]) -> None:
    found = sentences(tax=None if tax is None else Decimal(tax), lines=lines)
    assert found.get("check_gst", []) == expected


def test_negative_amounts() -> None:
    found = sentences(total=Decimal("-110.00"), lines=[line("-2", "50.00", "-100.00"), line("1", "-5.00", None)])
    assert found["negative_line"] == [
        "The total is negative: -110. Record a credit as a refund.",
        "Line 1 is negative: -100. Record a credit as a refund.",
        "Line 2 is negative: -5. Record a credit as a refund.",
    ]


def test_records_of_the_provider() -> None:
    assert sentences(provider_active=False) == {"inactive_provider": ["The provider is marked as inactive."]}
    assert [*sentences(has_earlier_invoice=False)] == ["first_time_provider"]
    assert sentences(provider_abn="51-824-753-556") == {}
    assert sentences(provider_abn=" ") == {"check_abn": ["The provider has no ABN."]}
    assert sentences(provider_abn="51824753557") == {
        "check_abn": ["The provider’s ABN, 51824753557, isn’t 11 digits with a valid check digit."]
    }
    missing = {"provider_exists": False, "provider_active": False, "provider_abn": None, "has_earlier_invoice": False}
    assert [*sentences(**missing)] == ["missing_provider"]


def component(*periods: FundingPeriod, kind: Any = "flexible") -> PlanComponent:
    return PlanComponent(
        id=UUID(int=9), name="Core", kind=kind, categories=[1], amount=Decimal(400), periods=[*periods],
        spent_elsewhere=None,
    )  # fmt: skip


def test_a_service_lies_in_one_plan_and_one_period_that_has_begun() -> None:
    quarters = [
        FundingPeriod(start_date=start, end_date=end, amount=Decimal(200))
        for start, end in ((date(2026, 7, 1), date(2026, 9, 30)), (date(2026, 10, 1), date(2026, 12, 31)))
    ]
    later = FundingPeriod(start_date=date(2027, 1, 1), end_date=date(2027, 6, 30), amount=Decimal(0))
    own = replace(YEAR_2026, components=[component(*quarters, later)])
    lines = [
        served("2026-06-28", "2026-07-03"),
        served("2026-09-29", "2026-10-02"),
        served("2026-10-01", "2026-10-02"),
        served("2027-01-02"),
    ]
    found = sentences(plans=[YEAR_2025, own], lines=lines)
    assert found["check_funding_period"] == [
        "Line 1: the service of 28 Jun 2026 to 3 Jul 2026 goes on after the plan that ends on 30 Jun 2026. Split it.",
        (
            "Line 2: the service of 29 Sep 2026 to 2 Oct 2026 goes on after the funding period that ends on"
            " 30 Sep 2026. Split it."
        ),
        "Line 4: the funding period of the service on 2 Jan 2027 begins on 1 Jan 2027.",
    ]
    assert "check_funding_period" not in sentences(plans=[YEAR_2026], lines=lines[1:])


def test_a_line_beyond_the_budget() -> None:
    budget = {LINE_ID: Available("Core", Decimal("110.00"), Decimal("100.00"))}
    assert sentences(budget=budget) == {"check_budget": ["Line 1 costs $110.00, and Core has $100.00 available."]}
    assert sentences(budget={LINE_ID: Available("Core", Decimal(110), Decimal(110))}) == {}


def test_a_line_of_another_invoice() -> None:
    found = sentences(lines=[served("2026-09-01", has_duplicate=True)])
    assert found == {
        "line_duplicate": ["Line 1: another invoice has 01_011_0107_1_1 on 1 Sep 2026 in the same quantity."]
    }


def test_days_of_a_service_are_those_that_are_known() -> None:
    assert replace(line(), service_date_to=TODAY).days == (TODAY, TODAY)
    assert replace(line(), service_date_from=TODAY).days == (TODAY, TODAY)
    assert served("2026-09-01", "2026-09-02").days == (date(2026, 9, 1), date(2026, 9, 1) + timedelta(days=1))
    assert line().days is None
