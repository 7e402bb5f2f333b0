"""How a search text is understood."""

import pytest

from plankeeper.resources.search.schemas import KINDS
from plankeeper.resources.search.terms import (
    parse,
    part_pattern,
    prefix_pattern,
    word_pattern,
)


@pytest.mark.parametrize(
    "text, words",
    [
        ("kavanagh", ("kavanagh",)),
        ("kavanagh, roisin", ("kavanagh", "roisin")),
        ("al-masri", ("al", "masri")),
        ("o'dea (bo)", ("o", "dea", "bo")),
        ("ann ann lee", ("ann", "lee")),
        ("a b c d e f", ("a", "b", "c", "d", "e")),
        ("430 205 409", ("430205409",)),
        ("(02) 5550-1234", ("0255501234",)),
        ("+61 491 571 266", ("61491571266",)),
        ("inv-00166", ("inv00166",)),
        ("unit 7", ("unit", "7")),
        ("-", ()),
        ("", ()),
    ],
)
def test_a_text_consists_of_words_or_is_one_number(text: str, words: tuple[str, ...]) -> None:
    assert parse(text).words == words


@pytest.mark.parametrize(
    "text, phone",
    [
        ("0491 571 266", "0491571266"),
        ("+61 491 571 266", "0491571266"),
        ("0061 491 571 266", "0491571266"),
        ("61491571266", "0491571266"),
        ("571266", "571266"),
        ("+1 212 555 0100", "12125550100"),
        ("430205409", "430205409"),
    ],
)
def test_people_are_searched_by_national_phone_numbers(text: str, phone: str) -> None:
    terms = parse(text)
    assert (terms.words_of("participant"), terms.words_of("team_member")) == ([phone], [phone])


def test_providers_are_searched_by_all_digits() -> None:
    assert parse("61 491 571 266").words_of("provider") == ["61491571266"]


def test_invoices_are_searched_by_the_whole_text() -> None:
    assert parse("inv 2026/001").words_of("invoice") == ["inv2026001"]


@pytest.mark.parametrize(
    "text, words",
    [
        ("12 wattle st", ["wattle", "12"]),
        ("wattle street, st kilda vic 3182", ["wattle", "kilda"]),
        ("unit 7", []),
        ("nsw 2204", []),
        ("12", []),
        ("a1b", []),
        ("ann@lee", []),
        ("李 wattle", []),
    ],
)
def test_an_address_has_a_name(text: str, words: list[str]) -> None:
    assert parse(text).address_words == words


def test_a_word_beside_a_key_can_have_the_arabic_article() -> None:
    assert parse("ann 明 李 خطيب").patterns_beside_key == ["%ann%", "% 李%", "%خطيب%"]


def test_one_letter_finds_only_participants_and_providers() -> None:
    terms = parse("a")
    assert [terms.words_of(kind) for kind in KINDS] == [["a"], [], ["a"], [], []]


def test_only_one_word_can_be_the_beginning_of_an_email() -> None:
    assert [parse(text).email for text in ("ann", "ann.lee@", "an", "ann lee")] == ["ann", "ann.lee@", None, None]


def test_the_longest_word_comes_first() -> None:
    assert parse("al masri 李 fatima").latin_words == ["fatima", "masri", "al"]
    assert parse("al masri 李 fatima").other_words == ["李"]


def test_slips_are_forgiven_in_long_words_of_letters() -> None:
    assert parse("anna kavanah 12345 李李李李李").words_with_typos == ["kavanah"]


@pytest.mark.parametrize(
    "word, pattern",
    [
        ("ann", "%ann%"),
        ("an", "% an%"),
        ("4302", "%4302%"),
        ("430", "% 430 %"),
        ("100%_\\", "%100\\%\\_\\\\%"),
        ("%", "% \\%%"),
    ],
)
def test_short_words_are_beginnings_and_short_numbers_complete(word: str, pattern: str) -> None:
    assert part_pattern(word) == pattern


def test_patterns_of_beginnings_and_of_words() -> None:
    assert (prefix_pattern("a_b"), word_pattern("a_b")) == ("% a\\_b%", "% a\\_b %")
