"""Visibility in Chromium: the focused field beside sticky bars, and long names on narrow screens."""

from collections.abc import Callable
from typing import Any

import pytest
from uuid_utils.compat import uuid7

from plankeeper.console.participants.form import SECTIONS
from support.client import Client
from support.console import Account, add_session
from support.server import RunningServer

# The last one is a window of 1280 px at 400 %.
SIZES = [{"width": 1280, "height": 900}, {"width": 390, "height": 844}, {"width": 320, "height": 256}]
PHONES = [{"width": 390, "height": 844}, {"width": 320, "height": 800}]
LONG_NAME = "Wilhelmina" * 15
EMAIL = "wilhelmina.featherstonehaugh.montgomery@coordination.supports.example.org"
# What the focused element is, if something sticky or fixed that it isn't in covers a part of it; the empty text if
# nothing does, and null if it was focused before.
COVERED = """() => {
  const focused = document.activeElement;
  if (focused === document.body) return "";
  if (window.visited.has(focused)) return null;
  window.visited.add(focused);
  const box = focused.getBoundingClientRect();
  const covers = (bar) => {
    const other = bar.getBoundingClientRect();
    const [left, right] = [Math.max(box.left, other.left), Math.min(box.right, other.right)];
    const [top, bottom] = [Math.max(box.top, other.top), Math.min(box.bottom, other.bottom)];
    return right - left > 1 && bottom - top > 1
      && bar.contains(document.elementFromPoint((left + right) / 2, (top + bottom) / 2));
  };
  const isCovered = [...document.querySelectorAll("main *, .top")].some((each) =>
    ["sticky", "fixed"].includes(getComputedStyle(each).position) && !each.contains(focused) && covers(each));
  return isCovered ? `${focused.tagName} ${focused.name || focused.textContent}` : "";
}"""
# The parts of a text that more than one line has.
SPLIT_PARTS = """link => [...link.childNodes].filter((each) => {
  if (each.nodeType !== Node.TEXT_NODE) return false;
  const range = document.createRange();
  range.selectNode(each);
  return range.getClientRects().length > 1;
}).map((each) => each.textContent)"""


@pytest.fixture
def console(page: Any, server: RunningServer, new_account: Callable[..., Account]) -> Any:
    add_session(page.context, server, new_account("manager"))
    return page


@pytest.fixture
def ids(client: Client, import_rows: Callable[..., Any]) -> dict[str, str]:
    """A participant with a team, and two invoices with one number, all with long names."""
    person = client.create("/participants", {"first_name": LONG_NAME, "email": f"own.{EMAIL}"})["id"]
    contact = {"first_name": LONG_NAME, "last_name": LONG_NAME, "email": EMAIL, "contact_priority": 1}
    client.create(f"/participants/{person}/team-members", contact)
    client.create(f"/participants/{person}/team-members", {"first_name": "Ann", "email": f"ann.{EMAIL}"})
    provider = client.create("/providers", {"entity_name": LONG_NAME})["id"]
    invoices = [
        {"id": str(uuid7()), "invoice_number": "INV-" + "7" * 45, "invoice_date": "2026-01-15", "total": 1234.5,
         "participant_id": person, "pm_provider_id": provider}
        for _ in range(2)
    ]  # fmt: skip
    for each in invoices:
        assert not import_rows(client, "invoices", [each]).errors
    return {"person": person, "invoice": invoices[1]["id"]}


def covered_stops(page: Any, key: str) -> tuple[int, list[str]]:
    """Press a key until the focus has been everywhere: the number of stops, and those that something covers."""
    page.evaluate("() => { window.visited = new Set(); document.activeElement.blur(); }")
    stops, covered = 0, list[str]()
    while True:
        page.keyboard.press(key)
        found = page.evaluate(COVERED)
        if found is None:
            return stops, covered
        stops += 1
        covered += [found] if found else []


def require_nothing_covered(page: Any, least_stops: int) -> None:
    for key in ("Tab", "Shift+Tab"):
        stops, covered = covered_stops(page, key)
        assert covered == [], (page.url, key)
        assert stops >= least_stops, (page.url, key)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size['width']} px")
def test_sticky_bars_never_cover_the_focused_field_of_a_form(
    console: Any, client: Client, size: dict[str, int]
) -> None:
    console.set_viewport_size(size)
    person = client.create("/participants", {"first_name": "Ann"})["id"]
    console.goto("/console/participants/new")
    require_nothing_covered(console, 30)
    for name, section in SECTIONS.items():
        console.goto(f"/console/participants/{person}/edit/{name}")
        require_nothing_covered(console, len(section.fields))


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size['width']} px")
def test_the_bar_of_selected_rows_never_covers_the_focused_row(
    console: Any, client: Client, import_rows: Callable[..., Any], size: dict[str, int]
) -> None:
    rows = [{"id": str(uuid7()), "invoice_number": f"INV-{number}"} for number in range(30)]
    assert not import_rows(client, "invoices", rows).errors
    console.set_viewport_size(size)
    console.goto("/console/invoices")
    console.get_by_role("checkbox", name="INV-7", exact=True).check()
    console.locator("[data-selection]").wait_for()
    require_nothing_covered(console, 2 * len(rows))


@pytest.mark.parametrize("size", PHONES, ids=lambda size: f"{size['width']} px")
def test_long_names_and_emails_fit_narrow_screens(console: Any, ids: dict[str, str], size: dict[str, int]) -> None:
    console.set_viewport_size(size)
    person, widths = f"/console/participants/{ids['person']}", dict[str, int]()
    for path in (person, f"{person}/team", f"/console/invoices/{ids['invoice']}"):
        console.goto(path)
        if "invoices" in path:
            console.locator("details").evaluate_all("all => all.forEach(each => { each.open = true })")
            box = console.locator("table.compared").bounding_box()
            assert box["x"] + box["width"] <= size["width"]
        widths[path] = console.evaluate("document.documentElement.scrollWidth")
    assert widths == dict.fromkeys(widths, size["width"])


@pytest.mark.parametrize("width", [1280, 800, 390, 320])
def test_emails_of_a_team_break_only_between_their_parts(console: Any, ids: dict[str, str], width: int) -> None:
    console.set_viewport_size({"width": width, "height": 900})
    console.goto(f"/console/participants/{ids['person']}/team")
    emails = console.locator(".ticks a[href^='mailto:']")
    assert sorted(emails.all_inner_texts()) == [f"ann.{EMAIL}", EMAIL]
    assert [each.evaluate(SPLIT_PARTS) for each in emails.all()] == [[], []]


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size['width']} px")
def test_the_message_about_a_saved_change_moves_and_covers_nothing(
    console: Any, client: Client, size: dict[str, int]
) -> None:
    console.set_viewport_size(size)
    person = client.create("/participants", {"first_name": "Ann"})["id"]
    console.goto(f"/console/participants/{person}/edit/address")
    console.get_by_label("Suburb").fill("Hobart")
    console.get_by_role("button", name="Save changes").click()
    message = console.get_by_role("status").filter(has_text="Changes saved: Suburb.")
    message.wait_for()
    console.wait_for_load_state()
    box, heading = message.bounding_box(), console.get_by_role("heading", level=1)
    assert 0 <= box["y"] <= size["height"] - box["height"]  # without scrolling
    assert 0 <= box["x"] <= size["width"] - box["width"]
    with_message = heading.bounding_box()
    require_nothing_covered(console, 20)
    console.evaluate("scrollTo(0, 0)")
    console.reload()
    assert message.count() == 0
    assert heading.bounding_box() == with_message
