"""The page about the console shows every page of it, at both widths, and no picture is left over."""

import re
from pathlib import Path

import pytest

from console.furnished import FILES, PAGES, name_of
from console.screenshots import WIDTHS, file_name
from plankeeper.console.routing import PageRoute
from support.pages import PROJECT, text_of

PICTURES = PROJECT / "docs/console"
SHOWN = [each for each in PAGES if each not in FILES and each.path != "/console"]
NEEDS = {
    "anyone": "anybody", "password_verified": "who gave a password", "signed_in": "who is signed in",
    "viewer": "viewer", "manager": "manager", "owner": "owner",
}  # fmt: skip


@pytest.mark.parametrize("entry", SHOWN, ids=name_of)
def test_every_page_has_a_row_with_its_pictures(entry: PageRoute) -> None:
    name = file_name(entry.path)
    pictures = f"[wide](console/{name}-{WIDTHS[0]}.png), [phone](console/{name}-{WIDTHS[1]}.png)"
    assert f"| `{entry.path}` | {NEEDS[entry.role]} | {pictures} |" in text_of("docs/console.md")


def test_every_picture_is_shown_and_there() -> None:
    named = set(re.findall(r"\(console/([a-z0-9-]+\.png)\)", text_of("docs/console.md")))
    assert named == {each.name for each in PICTURES.iterdir()}


@pytest.mark.parametrize("width", WIDTHS)
def test_pictures_are_as_wide_as_they_say(width: int) -> None:
    for each in PICTURES.glob(f"*-{width}.png"):
        assert int.from_bytes(_header(each)[16:20], "big") == width


def _header(file: Path) -> bytes:
    with file.open("rb") as content:
        return content.read(24)
