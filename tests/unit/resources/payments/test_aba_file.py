"""The direct entry file, read by a reader that shares nothing with its writer."""

from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plankeeper.resources.payments.aba_file import AbaCredit, AbaFileError, AbaHeader, build_aba_file
from support.office_files import ABA_FIELDS, read_aba

HEADER = AbaHeader(
    "BQL", "999002", "87654321", "HARBOUR PLAN OFFICE", "0", "HARBOUR PLAN OFFICE", "PROVIDERS", "HARBOUR PLANS", True
)
PAYMENTS = [
    AbaCredit("999001", "12345678", "CORAL TEST PHYSIO", "2026/442", Decimal("233.17")),
    AbaCredit("999001", "00220011", "DUNE TEST CLEANING", "INV-77", Decimal("40.5")),
]
DAY = date(2026, 12, 15)
ACCEPTED = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 &',-./+$!%()*#=:?[]_^@"


def test_the_fields_of_a_record_cover_all_positions() -> None:
    for fields in ABA_FIELDS.values():
        assert [position for first, last in fields.values() for position in range(first, last + 1)] == [*range(1, 121)]


def test_a_file_has_each_field_in_its_place() -> None:
    first, coral, dune, balance, total = read_aba(build_aba_file(HEADER, DAY, PAYMENTS))
    assert first == {
        "type": "0", "blank_1": " " * 17, "sequence": "01", "bank": "BQL", "blank_2": " " * 7,
        "user_name": "HARBOUR PLAN OFFICE       ", "user_id": "000000", "description": "PROVIDERS   ",
        "date": "151226", "blank_3": " " * 40,
    }  # fmt: skip
    own = {
        "indicator": " ", "trace_bsb": "999-002", "trace_account": " 87654321", "remitter": "HARBOUR PLANS   ",
        "tax": "00000000", "type": "1",
    }  # fmt: skip
    assert coral == own | {
        "bsb": "999-001", "account": " 12345678", "code": "50", "amount": "0000023317",
        "title": "CORAL TEST PHYSIO               ", "reference": "2026/442          ",
    }  # fmt: skip
    assert dune == own | {
        "bsb": "999-001", "account": " 00220011", "code": "50", "amount": "0000004050",
        "title": "DUNE TEST CLEANING              ", "reference": "INV-77            ",
    }  # fmt: skip
    assert balance == own | {
        "bsb": "999-002", "account": " 87654321", "code": "13", "amount": "0000027367",
        "title": "HARBOUR PLAN OFFICE             ", "reference": "PROVIDERS         ",
    }  # fmt: skip
    assert total == {
        "type": "7", "bsb": "999-999", "blank_1": " " * 12, "net": "0000000000", "credits": "0000027367",
        "debits": "0000027367", "blank_2": " " * 24, "count": "000003", "blank_3": " " * 40,
    }  # fmt: skip


def test_the_whole_file_is_as_expected() -> None:
    lines = [
        "0                 01BQL       HARBOUR PLAN OFFICE       000000PROVIDERS   151226" + " " * 40,
        (
            "1999-001 12345678 500000023317CORAL TEST PHYSIO               2026/442          "
            "999-002 87654321HARBOUR PLANS   00000000"
        ),
        (
            "1999-001 00220011 500000004050DUNE TEST CLEANING              INV-77            "
            "999-002 87654321HARBOUR PLANS   00000000"
        ),
        (
            "1999-002 87654321 130000027367HARBOUR PLAN OFFICE             PROVIDERS         "
            "999-002 87654321HARBOUR PLANS   00000000"
        ),
        "7999-999            000000000000000273670000027367" + " " * 24 + "000003" + " " * 40,
    ]
    assert build_aba_file(HEADER, DAY, PAYMENTS).decode() == "".join(f"{each}\r\n" for each in lines)


def test_without_a_balancing_record_the_net_is_the_total() -> None:
    *_, total = read_aba(build_aba_file(HEADER._replace(has_balancing_record=False), DAY, PAYMENTS))
    assert (total["net"], total["credits"], total["debits"]) == ("0000027367", "0000027367", "0000000000")
    assert total["count"] == "000002"


DIGITS = "0123456789"
accepted_texts = st.text(ACCEPTED, min_size=1).filter(lambda text: text.strip())
payments_of_files = st.lists(
    st.builds(
        AbaCredit,
        st.text(DIGITS, min_size=6, max_size=6),
        st.text(DIGITS, min_size=1, max_size=9),
        accepted_texts.map(lambda text: text.strip()[:32]),
        accepted_texts.map(lambda text: text.strip()[:18]),
        st.integers(1, 10**7).map(lambda cents: Decimal(cents) / 100),
    ),
    min_size=1,
    max_size=30,
)


@given(payments_of_files, st.booleans())
def test_each_file_has_what_its_payments_say(payments: list[AbaCredit], has_balancing_record: bool) -> None:
    content = build_aba_file(HEADER._replace(has_balancing_record=has_balancing_record), DAY, payments)
    assert set(content.decode()) <= {*ACCEPTED, "\r", "\n"}
    first, *records, total = read_aba(content)
    credited = [each for each in records if each["code"] == "50"]
    assert first["type"] + total["type"] == "07"
    assert len(records) == len(payments) + has_balancing_record == int(total["count"])
    for each, payment in zip(credited, payments, strict=True):
        assert Decimal(each["amount"]) / 100 == payment.amount
        assert each["bsb"].replace("-", "") == payment.bsb
        assert each["account"].lstrip() == payment.account_number
        assert (each["title"].rstrip(), each["reference"].rstrip()) == (payment.account_name, payment.reference)
    paid = sum(payment.amount for payment in payments)
    assert sum(int(each["amount"]) for each in credited) == int(total["credits"]) == paid * 100
    assert abs(int(total["credits"]) - int(total["debits"])) == int(total["net"])


@pytest.mark.parametrize(
    "changed",
    [
        {"amount": Decimal(0)},
        {"amount": Decimal("-1.00")},
        {"amount": Decimal("1.005")},
        {"amount": Decimal("100000000.00")},
        {"account_number": "1234567890"},
        {"account_number": ""},
        {"account_number": "12 345"},
        {"bsb": "99900"},
        {"bsb": "999-001"},
        {"account_name": "A" * 33},
        {"account_name": "Café"},
        {"account_name": " "},
        {"reference": "A" * 19},
        {"reference": "INV;1"},
    ],
)
def test_a_value_that_the_file_cannot_have_is_an_error(changed: dict[str, object]) -> None:
    with pytest.raises(AbaFileError) as caught:
        build_aba_file(HEADER, DAY, [PAYMENTS[0]._replace(**changed)])
    assert "12345678" not in str(caught.value)


@pytest.mark.parametrize(
    "changed",
    [
        {"bank_letters": "BQLX"},
        {"user_name": "A" * 27},
        {"user_id": "1234567"},
        {"user_id": "AB"},
        {"description": "A" * 13},
        {"remitter": "A" * 17},
        {"bsb": "1"},
        {"account_number": "1234567890"},
    ],
)
def test_an_office_whose_data_the_file_cannot_have_is_an_error(changed: dict[str, object]) -> None:
    with pytest.raises(AbaFileError):
        build_aba_file(HEADER._replace(**changed), DAY, PAYMENTS)


def test_a_total_over_ten_digits_is_an_error() -> None:
    most = PAYMENTS[0]._replace(amount=Decimal("99999999.99"))
    assert len(read_aba(build_aba_file(HEADER, DAY, [most]))) == 4
    with pytest.raises(AbaFileError):
        build_aba_file(HEADER, DAY, [most, PAYMENTS[0]])
    with pytest.raises(AbaFileError):
        build_aba_file(HEADER, DAY, [])
