"""The page about the console shows every page of it, at both widths, and no picture is left over."""

import re
from pathlib import Path

import pytest

from browser.screenshots import WIDTHS
from plankeeper.console.routing import PageRoute
from support.factories import DOWNLOADS, PAGES, is_redirect, route_name
from support.pages import PROJECT, text_of

SCREENSHOTS = PROJECT / "docs/console"
DOCUMENTED_PAGES = [each for each in PAGES if each not in DOWNLOADS and not is_redirect(each)]
ROLE_LABELS = {
    "anyone": "anyone", "password_verified": "password verified", "signed_in": "signed in",
    "viewer": "viewer", "manager": "manager", "owner": "owner",
}  # fmt: skip


@pytest.mark.parametrize("entry", DOCUMENTED_PAGES, ids=route_name)
def test_every_page_has_a_row(entry: PageRoute) -> None:
    assert f"| `{entry.path}` | {ROLE_LABELS[entry.role]} |" in text_of("docs/console.md")


def test_every_screenshot_exists_and_is_shown() -> None:
    named = set(re.findall(r"\(console/([a-z0-9-]+\.png)\)", text_of("docs/console.md")))
    assert named == {each.name for each in SCREENSHOTS.iterdir()}


@pytest.mark.parametrize("width", WIDTHS)
def test_screenshots_have_the_stated_width(width: int) -> None:
    for each in SCREENSHOTS.glob(f"*-{width}.png"):
        assert int.from_bytes(_png_header(each)[16:20], "big") == width


def _png_header(file: Path) -> bytes:
    with file.open("rb") as content:
        return content.read(24)
