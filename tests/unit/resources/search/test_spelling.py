"""Words that differ by one letter."""

import pytest

from plankeeper.resources.search.service import rank
from plankeeper.resources.search.terms import correct, has_typo


@pytest.mark.parametrize(
    "word, other, is_slip",
    [
        ("kavanah", "kavanagh", True),
        ("kavanaghh", "kavanagh", True),
        ("nguyan", "nguyen", True),
        ("thompsno", "thompson", True),
        ("avanagh", "kavanagh", True),
        ("kavanagh", "kavanagh", False),
        ("kvanah", "kavanagh", False),
        ("smith", "smithers", False),
        ("abcde", "abdec", False),
        ("", "a", True),
        ("", "", False),
    ],
)
def test_a_slip_is_one_letter(word: str, other: str, is_slip: bool) -> None:
    assert (has_typo(word, other), has_typo(other, word)) == (is_slip, is_slip)


def test_only_the_words_with_a_slip_are_corrected() -> None:
    text = " roisin kavanagh  roisin kavanagh 430205409 "
    assert correct(["rois", "kavanah"], text) == "rois kavanagh"
    assert correct(["kavanah", "smith"], text) is None


def test_whole_words_precede_beginnings_of_names_of_words_and_other_parts() -> None:
    texts = [" annabel lee ", " joanna lee ", " ann lee ", " lee anne ", " ann bo lee "]
    assert sorted(texts, key=lambda text: rank(["ann"], text)) == [
        " ann lee ",
        " ann bo lee ",
        " annabel lee ",
        " lee anne ",
        " joanna lee ",
    ]
