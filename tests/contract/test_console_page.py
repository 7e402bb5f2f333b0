"""The guide of the console lists every page, and shows a few pictures that are small together."""

import re

import pytest

from plankeeper.console.routing import PageRoute
from support.factories import DOWNLOADS, PAGES, is_redirect, route_name
from support.pages import PROJECT, text_of

SCREENSHOTS = PROJECT / "docs/console"
MAX_SCREENSHOTS, MAX_SCREENSHOT_BYTES = 24, 2_000_000  # together: each new version adds as much to the history
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


def test_screenshots_are_few_and_small() -> None:
    sizes = [each.stat().st_size for each in SCREENSHOTS.iterdir()]
    assert len(sizes) <= MAX_SCREENSHOTS
    assert sum(sizes) <= MAX_SCREENSHOT_BYTES
