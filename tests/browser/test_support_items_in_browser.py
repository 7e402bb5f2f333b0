"""Suggestions of support items in Chromium, for the first line and for one that was added.

The server of these tests has no catalogue: tests/console/invoices/test_item_suggestions.py compares the suggestions.
"""

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

ITEM = "15_056_0128_1_3"
CANDIDATE = {"id": ITEM, "label": ITEM, "detail": "Invented therapy · per hour", "price": "$193.99"}


@pytest.mark.parametrize("has_script", [True], indirect=True)
def test_a_suggested_item_fills_the_unit_price_if_it_is_empty(visitor: Any) -> None:
    asked: list[dict[str, list[str]]] = []

    def suggest(route: Any) -> None:
        asked.append(parse_qs(urlsplit(route.request.url).query))
        route.fulfill(json={"candidates": [CANDIDATE]})

    visitor.route("**/console/search/suggest?*", suggest)
    visitor.goto("/console/invoices/new")
    visitor.get_by_label("Invoice date").fill("4/11/2026")
    for number, typed_price, price in ((1, "", "$193.99"), (2, "90", "90")):
        line = visitor.get_by_role("group", name=f"Line {number}", exact=True)
        line.get_by_label("Unit price").fill(typed_price)
        line.get_by_label("Support item").focus()
        visitor.keyboard.type("therapy")
        line.get_by_role("option", name=ITEM).wait_for()
        visitor.keyboard.press("ArrowDown")
        visitor.keyboard.press("Enter")
        assert line.get_by_label("Support item").input_value() == ITEM
        assert line.get_by_label("Unit price").input_value() == price
        visitor.keyboard.press("Alt+l")
    assert asked[-1] == {"q": ["therapy"], "kind": ["support_item"], "on": ["4/11/2026"]}
