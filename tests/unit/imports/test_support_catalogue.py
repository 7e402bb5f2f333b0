"""The support catalogue's file: both layouts as CSV and XLSX, every kind of error, and the export."""

import time
import tracemalloc
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plankeeper.imports.reader import UnreadableFileError
from plankeeper.imports.support_catalogue import read_catalogue, write_catalogue
from plankeeper.resources.support_items.schemas import PRICE_NAMES, PriceLimits, SupportItem
from plankeeper.resources.upsert import RowError
from support.catalogues import NATIONAL_HEADERS, STATE_HEADERS, THERAPY, read_items, to_csv, to_xlsx

STATES = ("act", "nsw", "nt", "qld", "sa", "tas", "vic", "wa")
REMOTE = {"remote": Decimal("271.59"), "very_remote": Decimal("290.99")}
ITEM = SupportItem(
    support_item_number="15_056_0128_1_3",
    start_date=date(2026, 7, 1),
    end_date=None,
    name="Invented therapy - Physical Sample",
    registration_group_number="0128",
    registration_group_name="Therapeutic Samples",
    category=15,
    pace_category=15,
    category_name="Sample Daily Living",
    pace_category_name="Sample Daily Living (PACE)",
    unit="H",
    is_quote_required=False,
    type="Price Limited Supports",
    has_price_limit=True,
    price_limits=PriceLimits(**dict.fromkeys(STATES, Decimal("193.99")), **REMOTE),
    allows_non_face_to_face=True,
    allows_provider_travel=True,
    allows_short_notice_cancellations=True,
    allows_ndia_requested_reports=True,
    allows_irregular_sil=False,
)


def errors_of(**values: str) -> list[tuple[int, str, str]]:
    row = THERAPY | {"Support Item Number": "other"} | {name.replace("_", " "): value for name, value in values.items()}
    return [tuple(each) for each in read_catalogue(to_csv(THERAPY, row)).errors]


def test_a_csv_file_has_a_price_for_each_state() -> None:
    assert read_catalogue(to_csv(THERAPY)).items == [ITEM]


def test_a_workbook_has_a_national_price_and_numbers_as_cells() -> None:
    typed: dict[str, Any] = THERAPY | {
        "Registration Group Number": 128, "Support Category Number": 15, "Start date": 20260701,
        "National": 193.99, "Remote": 271.59, "Very Remote": 290.99,
    }  # fmt: skip
    [item] = read_catalogue(to_xlsx(typed)).items
    assert item.price_limits == PriceLimits(national=Decimal("193.99"), **REMOTE)
    assert item.registration_group_number == "0128"
    assert (item.start_date, item.end_date, item.category) == (date(2026, 7, 1), None, 15)
    assert read_catalogue(to_csv(THERAPY, headers=NATIONAL_HEADERS)).items == [item]


def test_the_sheet_with_the_items_is_found_by_its_name() -> None:
    workbook = to_xlsx(THERAPY, headers=STATE_HEADERS, sheets=("Notes", "Current support items"))
    assert read_catalogue(workbook).items == [ITEM]
    with pytest.raises(UnreadableFileError, match="has no column Support Item Number in its first 20 rows"):
        read_catalogue(to_xlsx(THERAPY, sheets=("Notes", "Other")))


def test_headers_are_read_without_case_blanks_and_punctuation() -> None:
    content = to_csv(THERAPY).decode()
    header, _, rest = content.partition("\r\n")
    spaced = ",".join(f" {name.upper().replace('.', '')} " for name in header.split(","))
    assert read_catalogue(f"\ufeffThe catalogue\r\n\r\n{spaced}\r\n{rest}\r\n,,,\r\n".encode()).items == [ITEM]


NO_PRICE = "must be a price such as $1,321.77, with at most two decimal places"
REPEATED = "row 2 has the same item with the same start date"


@pytest.mark.parametrize(
    "values, header, message",
    [
        ({"National": "", "ACT": "$1,321.777"}, "ACT", NO_PRICE),
        ({"NSW": "$13,21.77"}, "NSW", NO_PRICE),
        ({"VIC": "-5"}, "VIC", NO_PRICE),
        ({"Remote": "$10,000,000,000.00"}, "Remote", "must be below $10,000,000,000"),
        ({"Start_date": "01/07/2026"}, "Start date", "must be a date such as 20260701"),
        ({"Start_date": "20260231"}, "Start date", "must be a date such as 20260701"),
        ({"Start_date": ""}, "Start date", "must be a date such as 20260701"),
        ({"End_Date": "20260630"}, "End Date", "is before the start date"),
        ({"Support_Category_Number": "0"}, "Support Category Number", "must be a number from 1 to 99"),
        ({"Support_Category_Number": ""}, "Support Category Number", "must be a number from 1 to 99"),
        ({"Quote": "maybe"}, "Quote", "must be Y, N or empty"),
        ({"Support_Item_Name": " "}, "Support Item Name", "is required"),
        ({"Support_Item_Name": "a\0b"}, "Support Item Name", "must not contain control characters"),
        ({"Support_Item_Name": "a" * 501}, "Support Item Name", "must have at most 500 characters"),
        ({"Support_Item_Number": "1" * 61}, "Support Item Number", "must have at most 60 characters"),
        ({"Support_Item_Number": "15_056_0128_1_3"}, "Support Item Number", REPEATED),
    ],
)  # fmt: skip
def test_an_invalid_cell_is_an_error_with_row_and_column(values: dict[str, str], header: str, message: str) -> None:
    assert errors_of(**values) == [(3, header, message)]


def test_all_errors_are_reported_and_no_item_is_returned() -> None:
    row = THERAPY | {"Quote": "?", "WA": "x"}
    found = read_catalogue(to_csv(THERAPY | {"Unit": "D", "Start date": "2026"}, row))
    assert [(each.line_number, each.field) for each in found.errors] == [(2, "Start date"), (3, "Quote"), (3, "WA")]
    assert found.items == []


def test_unknown_missing_and_repeated_columns_are_errors() -> None:
    headers = [each for each in STATE_HEADERS if each not in ("Unit", "WA")]
    assert read_catalogue(to_csv(THERAPY, headers=[*headers, "Colour", "unit price", "act"])).errors == [
        RowError(1, "Colour", "isn't a column of the support catalogue"),
        RowError(1, "unit price", "isn't a column of the support catalogue"),
        RowError(1, "ACT", "stands in the header twice"),
        RowError(1, "Unit", "is missing"),
        RowError(1, "WA", "is missing"),
    ]
    content = to_csv(THERAPY).replace(b"\r\n", b",\r\n", 1)
    assert [*read_catalogue(content.rstrip() + b",x").errors] == [
        RowError(2, "column 29", "has a value, but no header")
    ]
    assert read_catalogue(content + b"only a number\r\n").errors[0] == RowError(
        3, "Support Item Name", "is missing: the row is too short"
    )


@pytest.mark.parametrize(
    "content, message",
    [
        (b"", "has no column Support Item Number"),
        (b"a,b\n1,2\n", "has no column Support Item Number"),
        (b"\xff\xfe\x00", "is neither XLSX nor CSV in UTF-8"),
        (b"PK\x03\x04 nothing", "isn't a valid XLSX file"),
        (to_csv(THERAPY) + b'"a', "line 3 isn't valid CSV"),
    ],
)
def test_other_files_are_unreadable(content: bytes, message: str) -> None:
    with pytest.raises(UnreadableFileError, match=message):
        read_catalogue(content)


@pytest.mark.parametrize("type_", ["Unit Price = $1", "Quotable Supports", ""])
def test_only_price_limited_supports_have_a_limit(type_: str) -> None:
    [item] = read_items(THERAPY | {"Type": type_})
    assert (item.type, item.has_price_limit) == (type_ or None, False)


PRICES = st.none() | st.integers(0, 2_000_000).map(lambda cents: Decimal(cents) / 100)
NAMES = st.text("aÖ7_,;\"'$.", min_size=1, max_size=12)


@st.composite
def support_items(draw: st.DrawFn) -> SupportItem:
    start = draw(st.dates(date(2020, 1, 1), date(2030, 1, 1)))
    prices = {name: price for name in PRICE_NAMES if (price := draw(PRICES)) is not None}
    type_ = draw(st.sampled_from(["Price Limited Supports", "Quotable Supports", None]))
    return SupportItem(
        support_item_number=draw(NAMES),
        start_date=start,
        end_date=draw(st.none() | st.dates(start, date(2040, 1, 1))),
        name=draw(NAMES),
        registration_group_number=draw(st.none() | st.text("0123456789", min_size=4, max_size=4)),
        category=draw(st.integers(1, 99)),
        pace_category=draw(st.none() | st.integers(1, 99)),
        unit=draw(st.none() | st.sampled_from(["H", "E"])),
        is_quote_required=draw(st.booleans()),
        type=type_,
        has_price_limit=type_ == "Price Limited Supports",
        price_limits=PriceLimits(**prices) if prices else None,
        allows_irregular_sil=draw(st.booleans()),
    )


@given(st.lists(support_items(), max_size=5, unique_by=lambda each: (each.support_item_number, each.start_date)))
def test_an_exported_catalogue_imports_to_the_same(items: list[SupportItem]) -> None:
    found = read_catalogue(write_catalogue(items).encode())
    assert (found.items, found.errors) == (items, [])


def test_a_large_catalogue_takes_little_time_and_memory() -> None:
    rows = [
        THERAPY | {"Support Item Number": f"15_{number:03}_0128_1_3", "Start date": f"{year}0701"}
        for number in range(900)
        for year in range(2023, 2027)
    ]
    content = to_xlsx(*rows)
    tracemalloc.start()
    started = time.process_time()
    assert len(read_catalogue(content).items) == 3600
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert time.process_time() - started < 10
    assert peak < 60 * 1024**2
