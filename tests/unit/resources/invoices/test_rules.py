from datetime import date, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from plankeeper.resources.invoices.checks import CheckInput, CheckLine, find_facts, is_item_code
from plankeeper.resources.invoices.warnings import WARNINGS, has_errors
from support.checks import ITEM, TODAY, VALID_INVOICE, check_inputs, line, plan

CENTS = st.integers(0, 10_000_000).map(lambda cents: Decimal(cents) / 100)
NO_TAX = replace(VALID_INVOICE, total=Decimal("100.00"), tax=None, lines=(line(gst_code="P2"),))


def to_decimal(text: str | None) -> Decimal | None:
    return None if text is None else Decimal(text)


def warnings_for_amounts(total: str | None, tax: str | None, subtotal: str | None, *lines: CheckLine) -> list[str]:
    check_input = replace(
        VALID_INVOICE, total=to_decimal(total), tax=to_decimal(tax), subtotal=to_decimal(subtotal), lines=lines
    )
    return [code for code in find_facts(check_input, TODAY) if code == "check_total"]


def test_a_valid_invoice_has_no_warnings() -> None:
    assert list(find_facts(VALID_INVOICE, TODAY)) == []
    assert list(find_facts(NO_TAX, TODAY)) == []


def test_every_warning_is_reported_once_in_catalogue_order() -> None:
    bad = CheckLine(
        Decimal(3),
        Decimal(5),
        Decimal(-20),
        None,
        is_deleted=False,
        service_date_from=date(2023, 1, 1),
        service_date_to=date(2027, 1, 1),
        gst_code="P1",
        has_duplicate=True,
    )
    check_input = replace(
        VALID_INVOICE, invoice_number=None, invoice_date=None, total=None, subtotal=Decimal(1),
        participant_status=None, provider_exists=False, has_earlier_duplicate=True, has_same_document=True,
        managed_from=date(2024, 1, 1), deceased_on=date(2024, 1, 1), has_catalogue=True,
        lines=(bad, bad),
    )  # fmt: skip
    others = {
        "inactive_participant",
        "several_participants",
        "several_providers",
        "inactive_provider",
        "flagged_participant",
        "flagged_provider",
        "first_time_provider",
        "check_abn",
        "unknown_item",
        "item_not_in_force",
        "price_above_limit",
        "check_funding_period",
        "check_budget",
    }
    assert list(find_facts(check_input, TODAY)) == [code for code in WARNINGS if code not in others]


@pytest.mark.parametrize("number", [None, "", "  \t"])
def test_a_blank_number_counts_as_missing(number: str | None) -> None:
    assert list(find_facts(replace(VALID_INVOICE, invoice_number=number), TODAY)) == ["missing_invoice_number"]


@pytest.mark.parametrize(
    "status,expected",
    [(None, ["missing_participant"]), ("Inactive", ["inactive_participant"]), ("Active", []), ("Lead", [])],
)
def test_only_missing_or_inactive_participants_cause_a_warning(status: str | None, expected: list[str]) -> None:
    assert list(find_facts(replace(VALID_INVOICE, participant_status=status), TODAY)) == expected


def test_a_missing_provider_and_an_earlier_duplicate_cause_warnings() -> None:
    facts = replace(VALID_INVOICE, provider_exists=False, has_earlier_duplicate=True)
    assert list(find_facts(facts, TODAY)) == ["missing_provider", "possible_duplicate"]


@pytest.mark.parametrize(
    "total,tax,subtotal",
    [
        ("110.00", None, "100.00"),
        ("110.00", "0", "100.00"),
        ("110.01", "10.00", "100.00"),
        ("109.99", "10.00", "100.00"),
        ("121.00", "11.00", "110.00"),
        ("100.01", None, None),
        (None, None, "100.00"),
        (None, None, None),
        (None, "10.00", None),
    ],
)
def test_inconsistent_amounts_cause_a_warning(total: str | None, tax: str | None, subtotal: str | None) -> None:
    assert warnings_for_amounts(total, tax, subtotal, line()) == ["check_total"]


@pytest.mark.parametrize(
    "total,tax,subtotal,lines",
    [
        ("100.00", None, None, [line()]),
        ("110.00", "10.00", None, [line()]),
        ("100.00", "0", "100.00", [line(None, None)]),
        ("100.00", "0", "100.00", [line(None), line("0", None, "0")]),
        ("200.00", "0", "200.00", [line(), line(total_price=None)]),
        ("98.21", "0", "98.21", [line("1.5", "65.47", None)]),
        ("98.21", "0", "98.21", [line("1.5", "65.47", "98.21")]),
        ("98.20", "0", "98.20", [line("1.5", "65.47", "98.20")]),
        ("0", "0", "0", []),
        (None, None, None, []),
        (None, "0", None, [line(None, "50.00", None)]),
        ("-100.00", None, "-100.00", [line("-2", "50.00", "-100.00")]),
    ],
)
def test_amounts_implied_by_others_may_be_missing(
    total: str | None, tax: str | None, subtotal: str | None, lines: list[CheckLine]
) -> None:
    assert warnings_for_amounts(total, tax, subtotal, *lines) == []


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [line(None, "50.00", None)],
        [line(), line(None, None, None)],
        [line("3")],
        [line("2", "50.01")],
        [line("2", "50.00", "99.99"), line("1", "0.01", "0.01")],
        [line("1E30", "1E30", None)],
    ],
)
def test_lines_that_do_not_add_up_to_the_subtotal_cause_a_warning(lines: list[CheckLine]) -> None:
    assert warnings_for_amounts("100.00", "0", "100.00", *lines) == ["check_total"]


def test_a_tax_without_a_total_causes_a_warning() -> None:
    assert warnings_for_amounts(None, "10.00", None) == ["check_total"]


def test_deleted_lines_do_not_count() -> None:
    wrong = CheckLine(Decimal(1), Decimal(2), Decimal(3), "nonsense", is_deleted=True)
    assert list(find_facts(replace(VALID_INVOICE, lines=(line(), wrong)), TODAY)) == []
    assert list(find_facts(replace(VALID_INVOICE, lines=(wrong,)), TODAY)) == ["check_total"]


@pytest.mark.parametrize(
    "day,expected",
    [
        (None, ["check_dates"]),
        (date(2025, 12, 31), ["check_dates"]),
        (date(2026, 1, 1), []),
        (TODAY, []),
        (TODAY + timedelta(days=1), ["check_dates"]),
    ],
)
def test_an_invoice_is_dated_within_the_plan_and_not_in_the_future(day: date | None, expected: list[str]) -> None:
    assert list(find_facts(replace(VALID_INVOICE, invoice_date=day), TODAY)) == expected


def test_the_last_day_of_the_plan_is_inclusive() -> None:
    ended = replace(VALID_INVOICE, plans=[plan(date(2026, 1, 1), date(2026, 10, 1))])
    assert list(find_facts(ended, TODAY)) == []
    assert list(find_facts(replace(ended, invoice_date=date(2026, 10, 2)), TODAY)) == ["check_dates"]


def test_unknown_plan_dates_cause_no_warning() -> None:
    facts = replace(VALID_INVOICE, plans=[plan(None, None)], invoice_date=date(1999, 1, 1))
    assert list(find_facts(facts, TODAY)) == []


@pytest.mark.parametrize("code", [ITEM, "03_090000911_0103_1_1", "15_617_0128_1_3"])
def test_well_formed_item_codes_cause_no_warning(code: str) -> None:
    assert is_item_code(code)


@pytest.mark.parametrize(
    "code",
    [
        None,
        "",
        "1_011_0107_1_1",
        "01_01_0107_1_1",
        "01_0000000000_0107_1_1",
        "01_011_107_1_1",
        "01_011_0107_11_1",
        "01_011_0107_1",
        "01-011-0107-1-1",
        "01_011_0107_1_1_T",
        " 01_011_0107_1_1",
        "01_011_0107_1_1\n",
        "٠١_٠١١_٠١٠٧_١_١",
        "O1_011_0107_1_1",
    ],
)
def test_malformed_item_codes_cause_a_warning(code: str | None) -> None:
    assert not is_item_code(code)
    facts = replace(VALID_INVOICE, lines=(line(service_item_number=code),))
    assert list(find_facts(facts, TODAY)) == ["check_item_code"]


def test_an_ignored_warning_is_no_error() -> None:
    assert not has_errors([], [])
    assert not has_errors([], ["check_total"])
    assert not has_errors(["check_total"], ["check_dates", "check_total"])
    assert has_errors(["check_total", "check_dates"], ["check_total"])


def test_every_warning_is_explained() -> None:
    for each in WARNINGS.values():
        assert each.title
        assert not each.title.endswith(".")
        assert each.description.endswith(".")


@given(st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 100_000)), min_size=1, max_size=8), CENTS)
def test_consistent_amounts_pass_and_one_cent_more_does_not(pairs: list[tuple[int, int]], tax: Decimal) -> None:
    quantities = [(Decimal(quantity) / 100, Decimal(price) / 100) for quantity, price in pairs]
    lines = [CheckLine(q, p, round(q * p, 2), ITEM, is_deleted=False) for q, p in quantities]
    subtotal = sum((each.total_price or Decimal(0) for each in lines), Decimal(0))
    facts = replace(VALID_INVOICE, total=subtotal + tax, tax=tax, subtotal=subtotal, lines=lines)
    assert "check_total" not in find_facts(facts, TODAY)
    assert "check_total" in find_facts(replace(facts, total=subtotal + tax + Decimal("0.01")), TODAY)
    assert "check_total" not in find_facts(replace(facts, subtotal=None), TODAY)


AMOUNT = st.none() | st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**30), max_value=10**30)
CHECK_INPUTS = check_inputs(AMOUNT, st.none() | st.text(max_size=20))


@given(CHECK_INPUTS, st.dates())
def test_any_input_is_handled_and_null_tax_is_zero(check_input: CheckInput, today: date) -> None:
    found = list(find_facts(check_input, today))
    assert found == [code for code in WARNINGS if code in found]
    if check_input.tax is None:
        assert list(find_facts(replace(check_input, tax=Decimal(0)), today)) == found
