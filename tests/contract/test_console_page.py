"""The guide of the console lists every page, and shows a few pictures that are small together."""

import re
from pathlib import Path
from typing import get_args

from browser.screenshots import PICTURES
from plankeeper.console import application
from plankeeper.console.components.labels import humanize
from plankeeper.console.shell import templating
from plankeeper.console.shell.routing import PageRoute
from plankeeper.resources.invoices.schemas import ApprovalStatus, ClaimStatus
from plankeeper.resources.participants.schemas import Status
from support.factories import DOWNLOADS, PAGES, is_redirect, route_name
from support.pages import PROJECT, heading_anchors, section, table_rows, text_of
from support.sweeps import sweep

SCREENSHOTS = PROJECT / "docs/console"
PICTURED = ("console", "claim", "pay", "fees", "monthly-statements", "month-end")  # the guides with pictures
MAX_SCREENSHOTS, MAX_SCREENSHOT_BYTES = 27, 2_000_000  # together: each new version adds as much to the history
DOCUMENTED_PAGES = [each for each in PAGES if each not in DOWNLOADS and not is_redirect(each)]
TEMPLATES = sorted(Path(application.__file__).parent.glob("*/templates/*.html"))
ROLE_LABELS = {
    "anyone": "anyone", "password_verified": "password verified", "signed_in": "signed in",
    "viewer": "viewer", "manager": "manager", "owner": "owner",
}  # fmt: skip


@sweep("entry", DOCUMENTED_PAGES, ids=route_name)
def test_every_page_has_a_row(entry: PageRoute) -> None:
    assert f"| `{entry.path}` | {ROLE_LABELS[entry.role]} |" in text_of("docs/console.md")


def test_every_row_is_a_page() -> None:
    rows = [(path, role) for _, path, role in table_rows(section("docs/console.md", "Pages"))]
    assert set(rows) - {(f"`{each.path}`", ROLE_LABELS[each.role]) for each in PAGES} == set()
    assert len(rows) == len(set(rows))


def test_help_leads_to_a_part_of_the_guide_for_every_section_of_the_console() -> None:
    templates = "".join(each.read_text() for each in TEMPLATES)
    sections = set(re.findall(r'{% set section = "(\w*)" %}', templates))
    assert {"participants", "settings", "account"} < sections
    assert set(templating.HELP_ANCHORS) == sections
    assert set(templating.HELP_ANCHORS.values()) <= heading_anchors("docs/console.md")


def test_links_to_the_documentation_open_a_new_tab_and_say_so() -> None:
    links = [
        link for each in TEMPLATES for link in re.findall(r'<a [^>]*href="/docs.*?</a>', each.read_text(), re.DOTALL)
    ]
    assert len(links) >= 6
    assert [each for each in links if 'target="_blank"' not in each or "(new tab)" not in each] == []


def test_the_guide_explains_every_status() -> None:
    known = {"claim": ClaimStatus, "approval": ApprovalStatus, "participant": Status}
    expected = [(of, humanize(each)) for of, type_ in known.items() for each in get_args(get_args(type_)[0])]
    rows = table_rows(section("docs/console.md", "Statuses"))
    assert [(of, status) for of, status, _ in rows] == expected


def test_the_guide_has_the_keys_of_the_console() -> None:
    for keys, action in [*templating.SHORTCUTS.items(), *templating.INVOICE_SHORTCUTS.items()]:
        names = " then ".join(f"`{key}`" for key in keys.split())
        assert f"| {names} | {action} |" in text_of("docs/console.md")


def test_the_guide_to_the_review_queue_has_its_keys() -> None:
    rows = table_rows(section("docs/review-invoices.md", "Decide"))
    assert {key.strip("`") for key, _, _ in rows} == set(templating.REVIEW_SHORTCUTS)


def test_the_guide_to_claims_has_its_keys() -> None:
    rows = table_rows(section("docs/claim.md", "Keys"))
    assert {key.strip("`"): action for key, action in rows} == templating.CLAIM_SHORTCUTS


def test_the_guide_to_payments_has_its_keys() -> None:
    rows = table_rows(section("docs/pay.md", "Keys"))
    assert {key.strip("`"): action for key, action in rows} == templating.PAYMENT_SHORTCUTS


def test_every_screenshot_exists_and_is_shown() -> None:
    texts = [text_of(f"docs/{each}.md") for each in PICTURED]
    named = {name for text in texts for name in re.findall(r"\(console/([a-z0-9-]+\.png)\)", text)}
    assert named == {each.name for each in SCREENSHOTS.iterdir()}
    assert named == {name for picture in PICTURES for name in picture.files().values()}


def test_screenshots_are_few_and_small() -> None:
    sizes = [each.stat().st_size for each in SCREENSHOTS.iterdir()]
    assert len(sizes) <= MAX_SCREENSHOTS
    assert sum(sizes) <= MAX_SCREENSHOT_BYTES
