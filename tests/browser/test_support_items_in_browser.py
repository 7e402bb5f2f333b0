"""Suggestions of support items in Chromium, for the first line and for one that was added.

The server of these tests has no catalogue: tests/console/invoices/test_item_suggestions.py compares the suggestions.
"""

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from support.chromium import pause_clock
from support.console import Account, add_session
from support.server import RunningServer

ITEM = "15_056_0128_1_3"
CANDIDATE = {"id": ITEM, "label": ITEM, "detail": "Invented therapy · per hour", "price": "$193.99"}
OTHER = {"id": "15_617_0128_1_3", "label": "15_617_0128_1_3", "detail": "Invented therapist · per hour", "price": None}

Asked = list[dict[str, list[str]]]


@pytest.fixture
def visitor(fresh_page: Any, server: RunningServer, new_account: Callable[..., Account]) -> Any:
    add_session(fresh_page.context, server, new_account("manager"))
    return fresh_page


@pytest.fixture
def asked(visitor: Any) -> Asked:
    """What the form of a new invoice has asked for. Its suggestions wait until a test lets the time go on."""
    queries: Asked = []

    def suggest(route: Any) -> None:
        queries.append(parse_qs(urlsplit(route.request.url).query))
        candidates = [OTHER, CANDIDATE] if queries[-1]["q"] == ["therapy at home"] else [CANDIDATE]
        route.fulfill(json={"candidates": candidates})

    visitor.route("**/console/search/suggest?*", suggest)
    pause_clock(visitor)
    visitor.goto("/console/invoices/new")
    return queries


def type_and_wait(visitor: Any, text: str) -> None:
    """Type into the focused field, and wait for the suggestions."""
    visitor.keyboard.type(text)
    with visitor.expect_response("**/console/search/suggest?*"):
        visitor.clock.run_for(1000)
    visitor.get_by_role("option", name=ITEM).wait_for()


def test_a_suggested_item_fills_the_unit_price_if_it_is_empty(visitor: Any, asked: Asked) -> None:
    visitor.get_by_label("Invoice date").fill("4/11/2026")
    for number, typed_price, price in ((1, "", "$193.99"), (2, "90", "90")):
        line = visitor.get_by_role("group", name=f"Line {number}", exact=True)
        line.get_by_label("Unit price").fill(typed_price)
        line.get_by_label("Support item").focus()
        type_and_wait(visitor, "therapy")
        visitor.keyboard.press("ArrowDown")
        visitor.keyboard.press("Enter")
        assert line.get_by_label("Support item").input_value() == ITEM
        assert line.get_by_label("Unit price").input_value() == price
        visitor.keyboard.press("Alt+l")
    assert asked == [{"q": ["therapy"], "kind": ["support_item"], "on": ["4/11/2026"]}] * 2


def test_a_marked_suggestion_stays_marked_when_others_arrive(visitor: Any, asked: Asked) -> None:
    field = visitor.get_by_role("group", name="Line 1", exact=True).get_by_label("Support item")
    field.focus()
    type_and_wait(visitor, "therap")
    visitor.keyboard.press("ArrowDown")
    type_and_wait(visitor, "y at home")
    visitor.get_by_role("option", name=OTHER["id"]).wait_for()
    assert [each["q"] for each in asked] == [["therap"], ["therapy at home"]]
    visitor.keyboard.press("Enter")
    assert field.input_value() == ITEM


def test_nothing_is_suggested_after_a_choice(visitor: Any, asked: Asked) -> None:
    field = visitor.get_by_role("group", name="Line 1", exact=True).get_by_label("Support item")
    field.focus()
    type_and_wait(visitor, "therap")
    visitor.evaluate("() => { window.requests = []; window.fetch = async (url) => { window.requests.push(url); }; }")
    visitor.keyboard.press("y")
    visitor.keyboard.press("ArrowDown")
    visitor.keyboard.press("Enter")
    assert field.input_value() == ITEM
    visitor.clock.run_for(1000)
    assert [each for each in visitor.evaluate("window.requests") if "suggest" in each] == []


def test_suggestions_that_break_off_leave_the_form_as_it_is(visitor: Any, asked: Asked) -> None:
    visitor.unroute_all()
    visitor.route("**/console/search/suggest?*", lambda route: route.fulfill(content_type="application/json", body="{"))
    field = visitor.get_by_role("group", name="Line 1", exact=True).get_by_label("Support item")
    field.focus()
    visitor.keyboard.type("therapy")
    with visitor.expect_response("**/console/search/suggest?*") as response:
        visitor.clock.run_for(1000)
    response.value.finished()
    assert field.input_value() == "therapy"
    assert visitor.get_by_role("option", name=ITEM).count() == 0
