"""The facts of invoice warnings: each has the actual and the expected value."""

from datetime import date, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from plankeeper.resources.invoices.checks import CheckInput, find_facts
from plankeeper.resources.invoices.facts import (
    AlertNote,
    EarlierDuplicate,
    Fact,
    InactiveParticipant,
    MissingNumber,
    MissingRecord,
    SameDocument,
    SeveralRecords,
    WrongDate,
    WrongItemCode,
    WrongLine,
    WrongSubtotal,
    WrongTotal,
)
from support.checks import ITEM, PARTICIPANT_ID, TODAY, VALID_INVOICE, check_inputs, line

HUNDRED = Decimal("100.00")
LINE = line()
UNSAID = line(None, None, None)
WRONG = line("2.25", "219.80", "495.18")
WRONG_FACT = WrongLine(
    line=1, quantity=Decimal("2.25"), unit_price=Decimal("219.80"), computed=Decimal("494.55"), total=Decimal("495.18")
)


def no_amount(number: int) -> WrongLine:
    return WrongLine(line=number, quantity=None, unit_price=None, computed=None, total=None)


def item_code_fact(code: str | None) -> WrongItemCode:
    return WrongItemCode(line=1, number=code)


@pytest.mark.parametrize(
    "changes,code,facts,sentences",
    [
        ({"invoice_number": " "}, "missing_invoice_number", [MissingNumber(number=" ")],
         ["The invoice has no number."]),
        (
            {"participant_status": None}, "missing_participant", [MissingRecord(kind="participant", id=PARTICIPANT_ID)],
            [f"The participant of this invoice, {PARTICIPANT_ID}, wasn’t found."],
        ),
        (
            {"participant_status": None, "participant_id": None}, "missing_participant",
            [MissingRecord(kind="participant", id=None)], ["No participant on this invoice."],
        ),
        (
            {"provider_exists": False, "pm_provider_id": None}, "missing_provider",
            [MissingRecord(kind="provider", id=None)],
            ["No provider on this invoice."],
        ),
        (
            {"participant_status": None, "participant_id": None, "ambiguous_participant_number": "430205409"},
            "several_participants", [SeveralRecords(kind="participant", number="430205409")],
            ["Several participants have the number 430205409, so the invoice has no participant."],
        ),
        (
            {"provider_exists": False, "pm_provider_id": None, "ambiguous_provider_abn": "51824753556"},
            "several_providers", [SeveralRecords(kind="provider", number="51824753556")],
            ["Several providers have the ABN 51824753556, so the invoice has no provider."],
        ),
        (
            {"participant_status": "Inactive", "date_ceased": date(2026, 2, 1)}, "inactive_participant",
            [InactiveParticipant(exit_date=date(2026, 2, 1))],
            ["The participant is inactive, with the exit date 1 Feb 2026."],
        ),
        (
            {"participant_status": "Inactive"}, "inactive_participant", [InactiveParticipant(exit_date=None)],
            ["The participant is inactive. No exit date is recorded."],
        ),
        (
            {"lines": [WRONG], "subtotal": Decimal("495.18"), "total": Decimal("505.18")}, "check_total", [WRONG_FACT],
            ["Line 1: 2.25 × $219.80 is $494.55, the invoice says $495.18."],
        ),
        (
            {"lines": [LINE, UNSAID]}, "check_total", [no_amount(2)],
            ["Line 2 has no amount."],
        ),
        (
            {"lines": [replace(WRONG, is_deleted=True), LINE, LINE]}, "check_total",
            [WrongSubtotal(sum=Decimal("200.00"), subtotal=HUNDRED, is_stated=True)],
            ["The lines add up to $200.00, the invoice says $100.00."],
        ),
        (
            {"lines": [LINE, LINE], "subtotal": None}, "check_total",
            [WrongSubtotal(sum=Decimal("200.00"), subtotal=HUNDRED, is_stated=False)],
            ["The lines add up to $200.00, but the total less tax is $100.00."],
        ),
        (
            {"total": Decimal("121.00")}, "check_total",
            [WrongTotal(subtotal=HUNDRED, tax=Decimal(10), total=Decimal(121))],
            ["Subtotal $100.00 plus tax $10.00 is $110.00, the invoice says $121.00."],
        ),
        (
            {"total": None, "subtotal": None}, "check_total",
            [WrongTotal(subtotal=HUNDRED, tax=Decimal(10), total=None)],
            ["The invoice has no total. Its subtotal $100.00 plus tax $10.00 is $110.00."],
        ),
        (
            {"total": None, "subtotal": None, "lines": [UNSAID]}, "check_total",
            [no_amount(1), WrongTotal(subtotal=None, tax=Decimal(10), total=None)],
            ["Line 1 has no amount.", "The invoice has no total."],
        ),
        ({"invoice_date": None}, "check_dates", [WrongDate(problem="missing")], ["The invoice has no date."]),
        (
            {"invoice_date": TODAY + timedelta(days=1)}, "check_dates",
            [WrongDate(problem="in_future", day=TODAY + timedelta(days=1), limit=TODAY, days=1)],
            ["The invoice is dated 31 Oct 2026, which is 1 day in the future."],
        ),
        (
            {"invoice_date": date(2025, 12, 20)}, "check_dates",
            [WrongDate(problem="before_plan", day=date(2025, 12, 20), limit=date(2026, 1, 1), days=12)],
            ["The invoice is dated 20 Dec 2025, 12 days before the plan starts (1 Jan 2026)."],
        ),
        (
            {"invoice_date": date(2027, 1, 3)}, "check_dates",
            [
                WrongDate(problem="in_future", day=date(2027, 1, 3), limit=TODAY, days=65),
                WrongDate(problem="after_plan", day=date(2027, 1, 3), limit=date(2026, 12, 31), days=3),
            ],
            [
                "The invoice is dated 3 Jan 2027, which is 65 days in the future.",
                "The invoice is dated 3 Jan 2027, 3 days after the plan ends (31 Dec 2026).",
            ],
        ),
        (
            {"lines": [replace(LINE, service_item_number=None)]}, "check_item_code", [item_code_fact(None)],
            ["Line 1 has no support item number."],
        ),
        (
            {"lines": [replace(LINE, service_item_number="01-011")]}, "check_item_code", [item_code_fact("01-011")],
            ["Line 1: “01-011” isn’t a valid number, such as 01_011_0107_1_1."],
        ),
        (
            {"has_earlier_duplicate": True}, "possible_duplicate", [EarlierDuplicate(number="INV-1")],
            ["An earlier invoice from this provider has the same number."],
        ),
        (
            {"participant_alerts": ["Call\nfirst.", "x" * 101]},
            "flagged_participant",
            [AlertNote(kind="participant", text="Call\nfirst."), AlertNote(kind="participant", text="x" * 101)],
            [
                "The participant has an alert: “Call first.”.",
                f"The participant has an alert: “{'x' * 99}…”.",
            ],
        ),
        (
            {"provider_alerts": ["No cash."]},
            "flagged_provider",
            [AlertNote(kind="provider", text="No cash.")],
            ["The provider has an alert: “No cash.”."],
        ),
        ({"has_same_document": True}, "same_document", [SameDocument()], ["Another invoice has the same document."]),
    ],
)  # fmt: skip
def test_each_warning_says_what_it_has_found(
    changes: dict[str, object], code: str, facts: list[Fact], sentences: list[str]
) -> None:
    found = find_facts(replace(VALID_INVOICE, **changes), TODAY)
    assert {each: found[each] for each in found if each != "check_gst" or code == "check_gst"} == {code: facts}
    assert [fact.sentence for fact in facts] == sentences


def test_a_valid_invoice_has_no_facts() -> None:
    assert find_facts(VALID_INVOICE, TODAY) == {}


CENTS = st.none() | st.integers(-100_000, 100_000).map(lambda cents: Decimal(cents) / 100)
CHECK_INPUTS = check_inputs(CENTS, st.sampled_from([None, ITEM, "", " ", "x"]))


@given(CHECK_INPUTS)
def test_each_found_warning_has_facts_and_each_fact_a_sentence(check_input: CheckInput) -> None:
    found = find_facts(check_input, TODAY)
    for facts in found.values():
        assert facts
        assert all(fact.sentence.endswith(".") for fact in facts)


@given(CHECK_INPUTS)
def test_an_invoice_with_the_expected_amounts_has_no_warning_about_them(check_input: CheckInput) -> None:
    """Lines are corrected first, because the sums depend on them, and then subtotal and total."""
    corrected = check_input
    for _ in range(3):
        for fact in find_facts(corrected, TODAY).get("check_total", []):
            corrected = _correct(corrected, fact)
    assert "check_total" not in find_facts(corrected, TODAY)


def _correct(check_input: CheckInput, fact: Fact) -> CheckInput:
    match fact:
        case WrongLine(line=int(number), computed=computed):
            lines = list(check_input.lines)
            lines[number - 1] = replace(lines[number - 1], total_price=computed or Decimal(0))
            return replace(check_input, lines=lines)
        case WrongSubtotal(sum=sum_of_lines):
            return replace(check_input, subtotal=sum_of_lines)
        case WrongTotal():
            return replace(check_input, total=fact.expected or Decimal(0))
        case _:
            raise AssertionError(fact)


@given(CHECK_INPUTS)
def test_a_date_exceeds_its_limit_by_the_days_that_the_fact_says(check_input: CheckInput) -> None:
    for fact in find_facts(check_input, TODAY).get("check_dates", []):
        assert isinstance(fact, WrongDate)
        days = check_input.lines[fact.line - 1].days if fact.line else [check_input.invoice_date]
        assert fact.found in (days or ())
        if fact.found and fact.limit:
            sign = -1 if fact.problem == "before_plan" else 1
            assert fact.found == fact.limit + timedelta(days=sign * fact.days)
            assert fact.days > 0
