"""Text for the files of banks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plankeeper.resources.bank_details.bank_text import (
    BANK_CHARACTERS,
    BankText,
    account_ending,
    format_bsb,
    parse_account_number,
    parse_bsb,
    to_bank_text,
)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("Amber Sample Physio", BankText("Amber Sample Physio")),
        ("  Łukasz Ünal\t& Søn’s “Café” – Pty ", BankText("Lukasz Unal & Son's 'Cafe' - Pty")),
        ("ﬁne ½ Straße; {a|b}", BankText("fine 1/2 Strasse, (a/b)")),
        ("李小龙 Clinic", BankText("Clinic", lost="李小龙")),
        ("Total € and €", BankText("Total and", lost="€")),
        ("A" * 33, BankText("A" * 32, cut="A")),
        ("Brightwater Community Services Ltd", BankText("Brightwater Community Services L", cut="td")),
        ("", BankText("")),
    ],
)
def test_a_text_is_transliterated_and_cut(text: str, expected: BankText) -> None:
    assert to_bank_text(text, 32) == expected


@given(st.text(), st.integers(1, 40))
def test_any_text_fits_into_the_file(text: str, length: int) -> None:
    result = to_bank_text(text, length)
    assert len(result.text) <= length
    assert set(result.text) <= BANK_CHARACTERS
    assert result.text == " ".join(result.text.split())
    assert to_bank_text(result.text, length) == BankText(result.text)


@pytest.mark.parametrize("text", ["062000", "062-000", "062 000", " 062000 "])
def test_a_bsb_has_six_digits(text: str) -> None:
    assert parse_bsb(text) == "062000"
    assert format_bsb("062000") == "062-000"


@pytest.mark.parametrize("text", ["", "06200", "0620000", "06-2000", "062--000", "06200O", "٠٦٢٠٠٠", "062000\n1"])
def test_other_texts_are_no_bsb(text: str) -> None:
    assert parse_bsb(text) is None


@pytest.mark.parametrize(
    "text, number", [("1", "1"), ("123456789", "123456789"), ("12-345 678", "12345678"), ("00220011", "00220011")]
)
def test_an_account_number_has_up_to_nine_digits(text: str, number: str) -> None:
    assert parse_account_number(text) == number
    assert account_ending(number) == number[-3:]


@pytest.mark.parametrize("text", ["", " - ", "1234567890", "12345678A", "000000", "١٢٣", "1\n2", "1\u00a02"])
def test_other_texts_are_no_account_number(text: str) -> None:
    assert parse_account_number(text) is None
