"""The layout of lists in Chromium: more columns than by default, and long names of saved views."""

import re
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from support.client import Client
from support.console import Account, open_signed_in
from support.server import RunningServer

LIST = "/console/participants"
LONG_NAME = "Participants of Tasmania whose plans have ended and are active"[:60]
FITS = "each => each.scrollWidth <= each.clientWidth"


@pytest.fixture
def console(
    page: Any, server: RunningServer, new_client: Callable[..., Client], plan_manager_id: UUID,
    new_account: Callable[..., Account],
) -> Any:  # fmt: skip
    """The list with a participant who has a value in each column."""
    person = {
        "first_name": "Wilhelmina", "last_name": "Featherstonehaugh", "preferred_name": "Mina", "status": "Inactive",
        "participant_number": "430205409", "plan_start_date": "2025-12-28", "plan_end_date": "2026-12-28",
        "phone_number": "0491570006", "email": "wilhelmina.featherstonehaugh@example.com",
        "date_of_birth": "1975-12-28",
    }  # fmt: skip
    new_client(plan_manager_id).create("/participants", person)
    page.set_viewport_size({"width": 1280, "height": 900})
    open_signed_in(page, server, new_account("manager"), f"{LIST}?status=Inactive")
    return page


def test_two_more_columns_fit_a_small_screen(console: Any) -> None:
    console.locator("summary", has_text="Columns").click()
    for label in ("Preferred name", "Date of birth"):
        console.get_by_label(label, exact=True).check()
    console.get_by_role("button", name="Save", exact=True).click()
    console.get_by_role("columnheader", name="Date of birth").wait_for()
    assert console.locator(".scroll").evaluate(FITS)
    assert console.locator("html").evaluate(FITS)


def test_a_long_name_of_a_saved_view_stays_in_its_button(console: Any) -> None:
    menu = console.locator(".saved-views > summary")
    menu.click()
    console.get_by_label("Name", exact=True).fill(LONG_NAME)
    console.get_by_role("button", name="Save view").click()
    console.get_by_text(f"View “{LONG_NAME}” saved.").wait_for()
    console.wait_for_load_state()
    assert menu.evaluate(FITS)
    console.set_viewport_size({"width": 390, "height": 800})
    tabs, button = console.locator(".views").bounding_box(), menu.bounding_box()
    assert button["y"] > tabs["y"] + tabs["height"]


def test_the_first_row_stands_high(console: Any, new_client: Callable[..., Client], plan_manager_id: UUID) -> None:
    new_client(plan_manager_id).create("/providers", {"entity_name": "Amber & Sons"})
    # A filter takes a line on a phone only.
    for path, limits in {
        f"{LIST}?status=Inactive": (250, 330),
        LIST: (250, 300),
        "/console/providers": (250, 300),
    }.items():
        for width, limit in zip((1280, 390), limits, strict=True):
            console.set_viewport_size({"width": width, "height": 900})
            console.goto(path)
            assert console.locator("table.list tbody tr").first.bounding_box()["y"] <= limit, (path, width)


def choose(page: Any, label: str, value: str) -> None:
    """Choose a value of a filter with the mouse: the list is loaded with it."""
    page.locator("summary", has_text="Filter").click()
    with page.expect_navigation():
        page.locator(".filter-menu").get_by_label(label, exact=True).dispatch_event("pointerdown")
        page.locator(".filter-menu").get_by_label(label, exact=True).select_option(value)


def test_a_filter_applies_as_soon_as_it_is_chosen(console: Any) -> None:
    choose(console, "State", "TAS")
    console.get_by_text("No participants match.").wait_for()
    for chip in ("Status: Inactive", "State: TAS"):
        assert console.get_by_role("link", name=f"Remove the filter {chip}").is_visible()
    console.goto(f"{LIST}?plan_end_from=1/1/2020")
    choose(console, "Plan ends: period", "90d")
    assert "plan_end=90d" in console.url
    assert "plan_end_from=1" not in console.url  # the period replaces the days
    console.get_by_label("Name, number, phone or email").fill("wilhelmina")
    with console.expect_navigation():
        console.keyboard.press("Enter")
    assert "q=wilhelmina" in console.url


def test_keys_that_move_through_choices_do_not_apply_them(console: Any) -> None:
    console.locator("summary", has_text="Filter").click()
    field = console.locator(".filter-menu").get_by_label("State", exact=True)
    url = console.url
    field.focus()
    field.press("ArrowDown")
    field.press("ArrowDown")
    assert (field.input_value() != "", console.url) == (True, url)
    with console.expect_navigation():
        console.get_by_role("button", name="Apply filters").click()
    assert "state=NSW" in console.url


@pytest.mark.parametrize("has_script", [False], indirect=True)
def test_without_scripts_buttons_apply_the_filters(visitor: Any) -> None:
    page = visitor
    page.goto(LIST)
    page.get_by_label("Name, number, phone or email").fill("nobody")
    page.get_by_role("button", name="Apply", exact=True).click()
    page.wait_for_url("**q=nobody**")
    page.locator("summary", has_text="Filter").click()
    page.locator(".filter-menu").get_by_label("State", exact=True).select_option("TAS")
    page.get_by_role("button", name="Apply filters").click()
    page.wait_for_url("**state=TAS**")
    assert page.locator(".chips li").count() == 3


def test_paper_has_whole_values_and_no_controls(console: Any) -> None:
    """Landscape A4 without margins is 1,032 px wide."""
    columns = console.locator("[name=columns]").evaluate_all("all => all.map(each => each.value)")
    console.locator("summary", has_text="Columns").click()
    for name in columns:
        console.locator(f"[name=columns][value={name}]").check()
    console.get_by_role("button", name="Save", exact=True).click()
    console.get_by_role("columnheader", name="Updated").wait_for()
    console.emulate_media(media="print")
    console.set_viewport_size({"width": 1032, "height": 720})
    assert console.locator("table.list thead th:visible").count() == 1 + len(columns)
    cut = "all => all.filter(each => each.scrollWidth > each.clientWidth + 1).map(each => each.innerText)"
    assert console.locator("table.list :is(th, td)").evaluate_all(cut) == []
    assert console.locator("html").evaluate(FITS)
    shown = console.locator("main").inner_text()
    assert ("Participants" in shown, "Status: Inactive · 1 participant · " in shown) == (True, True)
    controls = "main :is(button, summary, input, select, .button, .views, .chips)"
    assert [each for each in console.locator(controls).all() if each.is_visible()] == []
    sizes = re.findall(rb"/MediaBox ?\[0 0 ([\d.]+) ([\d.]+)\]", console.pdf(prefer_css_page_size=True))
    assert {float(width) > float(height) for width, height in sizes} == {True}


def test_records_are_printed_without_controls(console: Any) -> None:
    console.locator("table.list td.lead a").first.click()
    console.get_by_role("heading", name="Wilhelmina Featherstonehaugh").wait_for()
    assert console.get_by_role("link", name="Edit").first.is_visible()
    console.emulate_media(media="print")
    for name in ("Edit", "Change", "Delete", "Ignore", "Copy"):
        for each in console.locator("main :is(a, button, summary)", has_text=name).all():
            assert not each.is_visible(), each.inner_text()
    assert console.get_by_text("430 205 409").first.is_visible()
