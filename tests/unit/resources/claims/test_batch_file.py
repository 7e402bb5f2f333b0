"""The file of a claim batch: each field's place, how numbers are written, and references."""

import re
from decimal import ROUND_HALF_UP, Decimal
from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from plankeeper.resources.claims.batch_file import (
    HEADER,
    FileRow,
    Price,
    claim_suffix,
    express,
    express_rest,
    file_name,
    format_price,
    format_quantity,
    references,
    render,
)
from support.office_files import CLAIM_COLUMNS, read_claims
from support.sweeps import sweep

ROWS = [
    FileRow(
        registration_number="4050000000", ndis_number="430000001", delivered_from="2026-11-02",
        delivered_to="2026-11-02", support_number="15_056_0128_1_3", claim_reference="2026/442_1", quantity="1.50",
        unit_price="193.99", gst_code="P2", claim_type="", cancellation_reason="", provider_abn="89000000019",
    ),
    FileRow(
        registration_number="4050000000", ndis_number="430000019", delivered_from="2026-11-03",
        delivered_to="2026-11-04", support_number="03_045_0103_1_1", claim_reference="R-118", quantity="1500",
        unit_price="25.00", gst_code="P5", claim_type="CANC", cancellation_reason="NSDO", provider_abn="REIMB",
    ),
]  # fmt: skip
GOLDEN = (
    "RegistrationNumber,NDISNumber,SupportsDeliveredFrom,SupportsDeliveredTo,SupportNumber,ClaimReference,Quantity,"
    "Hours,UnitPrice,GSTCode,AuthorisedBy,ParticipantApproved,InKindFundingProgram,ClaimType,CancellationReason,"
    "ABN of Support Provider\r\n"
    "4050000000,430000001,2026-11-02,2026-11-02,15_056_0128_1_3,2026/442_1,1.50,,193.99,P2,,,,,,89000000019\r\n"
    "4050000000,430000019,2026-11-03,2026-11-04,03_045_0103_1_1,R-118,1500,,25.00,P5,,,,CANC,NSDO,REIMB\r\n"
)
CENT = Decimal("0.01")


def cents(value: Decimal) -> Decimal:
    return value.quantize(CENT, ROUND_HALF_UP)


def test_the_file_is_the_golden_one() -> None:
    assert render(ROWS) == GOLDEN.encode()
    assert not render(ROWS).startswith(b"\xef\xbb\xbf")


def test_an_independent_reader_finds_each_field_at_its_place() -> None:
    assert HEADER == CLAIM_COLUMNS
    first, second = read_claims(render(ROWS))
    assert [*first.values()] == [
        "4050000000", "430000001", "2026-11-02", "2026-11-02", "15_056_0128_1_3", "2026/442_1", "1.50", "", "193.99",
        "P2", "", "", "", "", "", "89000000019",
    ]  # fmt: skip
    assert [*second.values()] == [
        "4050000000", "430000019", "2026-11-03", "2026-11-04", "03_045_0103_1_1", "R-118", "1500", "", "25.00", "P5",
        "", "", "", "CANC", "NSDO", "REIMB",
    ]  # fmt: skip


def test_the_name_of_the_file_is_short() -> None:
    assert file_name("B000001") == "C000000000001.csv"
    assert len(file_name("B1234567")) < 20


@sweep(
    "quantity, text",
    [
        ("1.5", "1.50"), ("0.01", "0.01"), ("999.99", "999.99"), ("1000", "1000"), ("1E+3", "1000"),
        ("99999", "99999"), ("1.50000", "1.50"), ("100000", None), ("1000.5", None), ("1.333", None), ("0", None),
        ("-1", None), ("NaN", None), ("0.004", None),
    ],
)  # fmt: skip
def test_quantities_have_the_form_of_the_file(quantity: str, text: str | None) -> None:
    assert format_quantity(Decimal(quantity)) == text


@sweep(
    "price, text",
    [
        ("193.99", "193.99"),
        ("25", "25.00"),
        ("999999.99", "999999.99"),
        ("1000000", None),
        ("1.005", None),
        ("0", None),
    ],
)
def test_prices_have_two_decimals(price: str, text: str | None) -> None:
    assert format_price(Decimal(price)) == text


def test_a_quantity_is_required() -> None:
    assert format_quantity(None) is None


@sweep(
    "quantity, price, net, amount, expected",
    [
        ("1.5", "193.99", "290.99", "290.99", ("1.50", "193.99")),  # 290.985
        ("1.5", "193.99", "290.98", "290.98", "inexpressible_total"),
        ("2", None, "50", "50.00", ("2.00", "25.00")),
        ("3", None, "50", "50.00", "inexpressible_total"),
        ("1.333", "10", "13.33", "13.33", "inexpressible_quantity"),
        ("1", "10.005", "10.01", "10.01", "inexpressible_total"),
        ("0.5", "0.01", "0.01", "0.01", ("0.50", "0.01")),  # half a cent is rounded up
    ],
)
def test_quantity_times_price_is_the_amount_to_the_cent(
    quantity: str, price: str | None, net: str, amount: str, expected: object
) -> None:
    unit_price = Decimal(price) if price else None
    line = Price(Decimal(quantity), unit_price, Decimal(net), Decimal(amount), is_taxed=False)
    assert express(line, prices_include_gst=False) == expected
    assert express(line, prices_include_gst=True) == expected


@sweep(
    "includes, price, net, amount, expected",
    [
        (True, "100", "200", "220", ("2.00", "110.00")),
        (False, "100", "200", "220", ("2.00", "100.00")),
        (True, "0.05", "0.10", "0.11", "inexpressible_total"),  # twice 0.06 is 0.12
        (False, "0.05", "0.10", "0.11", ("2.00", "0.05")),
        (True, "100", "200", "219.99", "inexpressible_total"),
    ],
)
def test_prices_of_taxed_lines_include_gst_if_the_setting_says_so(
    includes: bool, price: str, net: str, amount: str, expected: object
) -> None:
    line = Price(Decimal(2), Decimal(price), Decimal(net), Decimal(amount), is_taxed=True)
    assert express(line, prices_include_gst=includes) == expected


def test_a_rest_has_quantity_1() -> None:
    rest = Decimal("90.99")
    assert express_rest(rest, is_taxed=False, prices_include_gst=False) == ("1.00", "90.99")
    assert express_rest(Decimal("110.00"), is_taxed=True, prices_include_gst=True) == ("1.00", "110.00")
    assert express_rest(Decimal("110.00"), is_taxed=True, prices_include_gst=False) == ("1.00", "100.00")
    assert express_rest(Decimal("0.05"), is_taxed=True, prices_include_gst=False) == "inexpressible_total"


hundredths = st.integers(min_value=1, max_value=2_000_000).map(lambda each: Decimal(each) / 100)


@given(st.builds(Price, hundredths, st.none() | hundredths, hundredths, hundredths, st.booleans()), st.booleans())
def test_what_is_expressed_is_exact(price: Price, prices_include_gst: bool) -> None:
    found = express(price, prices_include_gst=prices_include_gst)
    if isinstance(found, str):
        return
    quantity, unit_price = found
    assert Decimal(quantity) == price.quantity
    assert re.fullmatch(r"\d{1,5}|\d{1,3}\.\d\d", quantity)
    assert re.fullmatch(r"\d{1,6}\.\d\d", unit_price)
    expected = price.net if price.is_taxed and not prices_include_gst else price.amount
    assert expected is not None
    assert cents(Decimal(quantity) * Decimal(unit_price)) == expected


@given(st.text(max_size=80), st.none() | st.integers(1, 500), st.integers(0, 99), st.booleans())
def test_references_have_only_allowed_characters_and_differ(
    number: str, line: int | None, earlier: int, is_rest: bool
) -> None:
    suffix = claim_suffix(earlier, is_rest=is_rest)
    found = [*islice(references(number, line, suffix), 120)]
    assert len({*found}) == len(found)
    for each in found:
        assert re.fullmatch(r"[A-Za-z0-9/_-]{1,50}", each)
        assert each.endswith(suffix)
        assert line is None or f"_{line}" in each


def test_the_number_is_cut_so_that_suffixes_fit() -> None:
    number = "N" * 60
    assert next(references(number, None)) == "N" * 50
    assert next(references(number, 12, "-R2")) == "N" * 44 + "_12-R2"
    assert [*islice(references("2026 № 442", None), 3)] == ["2026442", "2026442-2", "2026442-3"]
    assert next(references(None, 1)) == "INV_1"


def test_further_claims_have_suffixes() -> None:
    assert [claim_suffix(each, is_rest=False) for each in range(3)] == ["", "-R2", "-R3"]
    assert [claim_suffix(each, is_rest=True) for each in range(2)] == ["-G2", "-G3"]
