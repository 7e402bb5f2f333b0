"""Which files contain a person, and how long a search takes."""

import asyncio
from typing import Any
from uuid import UUID

import pytest

from plankeeper.privacy.service import PART_LENGTH, PersonTexts, split_file

PARTICIPANT_ID = UUID("0190a1b2-0000-7000-8000-000000000001")


def finds(text: str, **names: Any) -> bool:
    texts = PersonTexts()
    texts.add(names)
    return texts.file_pattern(PARTICIPANT_ID).search(text) is not None


@pytest.mark.parametrize(
    "text, expected",
    [
        ("Robin,Hale", True),
        ("hale, ROBIN", True),
        ("Robin\nJo\nHale", True),
        ("Robin Jo Kim Hale", False),
        ("Robinson,Hale", False),
        ("Robin,Haley", False),
        (f"x {PARTICIPANT_ID} x", True),
        ("call 0491 570 006", True),
        ("call 0491 570 0061", False),
    ],
)
def test_a_file_has_the_person_by_names_beside_each_other_or_an_identifier(text: str, *, expected: bool) -> None:
    assert finds(text, first_name="(Robin)", last_name="Hale.", phone_number="0491 570 006") == expected


@pytest.mark.parametrize("first, last", [("--", "zz"), ("zz", "--"), ("ab", f"{'-' * 250}zz"), ("ab-", "zz")])
def test_a_search_takes_linear_time_whatever_the_names_are(first: str, last: str) -> None:
    assert not finds(f"{first}{'-' * 1_000_000}", first_name=first, last_name=last)


def test_a_file_is_searched_in_parts_of_whole_lines() -> None:
    async def split(text: str) -> list[str]:
        return [each async for each in split_file(text.encode())]

    line = "Róisín,Kavanagh\n"
    text = line * 10_000 + "the end"
    parts = asyncio.run(split(text))
    assert (len(parts), "".join(parts)) == (3, text)
    assert {each[-1] for each in parts[:-1]} == {"\n"}
    assert all(PART_LENGTH < len(each) <= PART_LENGTH + len(line) for each in parts[:-1])
    assert asyncio.run(split("")) == []
