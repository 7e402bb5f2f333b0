from datetime import date, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plankeeper.invoices.warnings import WARNINGS, CheckInput, CheckLine, has_errors, find_warnings, is_item_code

TODAY = date(2026, 10, 30)
ITEM = "01_011_0107_1_1"
CENTS = st.integers(0, 10_000_000).map(lambda cents: Decimal(cents) / 100)


def line(quantity: str | None = "2", unit_price: str | None = "50.00", total_price: str | None = "100.00") -> CheckLine:
    return CheckLine(dollars(quantity), dollars(unit_price), dollars(total_price), ITEM, is_deleted=False)


def dollars(text: str | None) -> Decimal | None:
    return None if text is None else Decimal(text)


CLEAN = CheckInput(
    invoice_number="INV-1",
    invoice_date=date(2026, 10, 1),
    total=Decimal("110.00"),
    tax=Decimal("10.00"),
    subtotal=Decimal("100.00"),
    participant_status="Active",
    plan_start_date=date(2026, 1, 1),
    plan_end_date=date(2026, 12, 31),
    provider_exists=True,
    has_earlier_duplicate=False,
    lines=(line(),),
)
NO_TAX = CLEAN._replace(total=Decimal("100.00"), tax=None)


def amounts(total: str | None, tax: str | None, subtotal: str | None, *lines: CheckLine) -> list[str]:
    facts = CLEAN._replace(total=dollars(total), tax=dollars(tax), subtotal=dollars(subtotal), lines=lines)
    return find_warnings(facts, TODAY)


def test_a_sound_invoice_has_no_warnings() -> None:
    assert find_warnings(CLEAN, TODAY) == []
    assert find_warnings(NO_TAX, TODAY) == []


def test_everything_wrong_is_reported_once_and_in_the_catalogue_s_order() -> None:
    bad = CheckLine(Decimal(3), Decimal(5), Decimal(20), None, is_deleted=False)
    facts = CheckInput(None, None, None, None, Decimal(1), None, None, None, False, True, (bad, bad))
    assert find_warnings(facts, TODAY) == [code for code in WARNINGS if code != "inactive_participant"]


@pytest.mark.parametrize("number", [None, "", "  \t"])
def test_a_blank_number_is_no_number(number: str | None) -> None:
    assert find_warnings(CLEAN._replace(invoice_number=number), TODAY) == ["missing_invoice_number"]


@pytest.mark.parametrize(
    "status,expected",
    [(None, ["missing_participant"]), ("Inactive", ["inactive_participant"]), ("Active", []), ("Lead", [])],
)
def test_only_a_participant_who_is_absent_or_left_is_warned_of(status: str | None, expected: list[str]) -> None:
    assert find_warnings(CLEAN._replace(participant_status=status), TODAY) == expected


def test_an_absent_provider_and_an_earlier_twin_are_warned_of() -> None:
    facts = CLEAN._replace(provider_exists=False, has_earlier_duplicate=True)
    assert find_warnings(facts, TODAY) == ["missing_provider", "possible_duplicate"]


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
def test_amounts_that_disagree_with_one_another(total: str | None, tax: str | None, subtotal: str | None) -> None:
    assert amounts(total, tax, subtotal, line()) == ["check_total"]


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
def test_what_the_rest_determines_may_go_unsaid(
    total: str | None, tax: str | None, subtotal: str | None, lines: list[CheckLine]
) -> None:
    assert amounts(total, tax, subtotal, *lines) == []


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
def test_lines_that_do_not_explain_the_subtotal(lines: list[CheckLine]) -> None:
    assert amounts("100.00", "0", "100.00", *lines) == ["check_total"]


def test_a_tax_alone_asks_for_a_total() -> None:
    assert amounts(None, "10.00", None) == ["check_total"]


def test_deleted_lines_do_not_count() -> None:
    wrong = CheckLine(Decimal(1), Decimal(2), Decimal(3), "nonsense", is_deleted=True)
    assert find_warnings(CLEAN._replace(lines=(line(), wrong)), TODAY) == []
    assert find_warnings(CLEAN._replace(lines=(wrong,)), TODAY) == ["check_total"]


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
    assert find_warnings(CLEAN._replace(invoice_date=day), TODAY) == expected


def test_the_plan_s_last_day_is_within_it_and_the_next_is_not() -> None:
    ended = CLEAN._replace(plan_end_date=date(2026, 10, 1))
    assert find_warnings(ended, TODAY) == []
    assert find_warnings(ended._replace(invoice_date=date(2026, 10, 2)), TODAY) == ["check_dates"]


def test_plan_dates_that_are_not_known_hold_nobody_up() -> None:
    facts = CLEAN._replace(plan_start_date=None, plan_end_date=None, invoice_date=date(1999, 1, 1))
    assert find_warnings(facts, TODAY) == []


@pytest.mark.parametrize("code", [ITEM, "03_090000911_0103_1_1", "15_617_0128_1_3"])
def test_item_codes_that_are_well_formed(code: str) -> None:
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
def test_item_codes_that_are_not(code: str | None) -> None:
    assert not is_item_code(code)
    facts = CLEAN._replace(lines=(line()._replace(service_item_number=code),))
    assert find_warnings(facts, TODAY) == ["check_item_code"]


def test_a_warning_that_is_ignored_is_no_error() -> None:
    assert not has_errors([], [])
    assert not has_errors([], ["check_total"])
    assert not has_errors(["check_total"], ["check_dates", "check_total"])
    assert has_errors(["check_total", "check_dates"], ["check_total"])


def test_every_warning_is_explained() -> None:
    for code, (applies_to, title, description) in WARNINGS.items():
        assert applies_to == ("line_item" if code == "check_item_code" else "invoice")
        assert title
        assert not title.endswith(".")
        assert description.endswith(".")


@given(st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 100_000)), min_size=1, max_size=8), CENTS)
def test_an_invoice_made_by_the_rule_adds_up_and_a_cent_more_does_not(
    pairs: list[tuple[int, int]], tax: Decimal
) -> None:
    quantities = [(Decimal(quantity) / 100, Decimal(price) / 100) for quantity, price in pairs]
    lines = [CheckLine(q, p, round(q * p, 2), ITEM, is_deleted=False) for q, p in quantities]
    subtotal = sum((each.total_price or Decimal(0) for each in lines), Decimal(0))
    facts = CLEAN._replace(total=subtotal + tax, tax=tax, subtotal=subtotal, lines=lines)
    assert find_warnings(facts, TODAY) == []
    assert find_warnings(facts._replace(total=subtotal + tax + Decimal("0.01")), TODAY) == ["check_total"]
    assert find_warnings(facts._replace(subtotal=None), TODAY) == []


AMOUNT = st.none() | st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**30), max_value=10**30)
LINES = st.builds(CheckLine, AMOUNT, AMOUNT, AMOUNT, st.none() | st.text(max_size=20), st.booleans())
FACTS = st.builds(
    CheckInput,
    invoice_number=st.none() | st.text(max_size=5),
    invoice_date=st.none() | st.dates(),
    total=AMOUNT,
    tax=AMOUNT,
    subtotal=AMOUNT,
    participant_status=st.sampled_from([None, "Active", "Inactive", "Lead"]),
    plan_start_date=st.none() | st.dates(),
    plan_end_date=st.none() | st.dates(),
    provider_exists=st.booleans(),
    has_earlier_duplicate=st.booleans(),
    lines=st.lists(LINES, max_size=4),
)


@given(FACTS, st.dates())
def test_no_facts_are_too_strange_and_null_tax_is_zero(facts: CheckInput, today: date) -> None:
    found = find_warnings(facts, today)
    assert found == [code for code in WARNINGS if code in found]
    if facts.tax is None:
        assert find_warnings(facts._replace(tax=Decimal(0)), today) == found
