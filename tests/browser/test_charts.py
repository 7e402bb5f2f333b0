"""Charts in Chromium: accessible in both themes, and legible on a phone."""

from decimal import Decimal
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from plankeeper.console.application import create_templates
from plankeeper.console.components.charts import (
    MONEY,
    Bar,
    Series,
    StackedBar,
    Unit,
    bar_chart,
    bar_list,
    stacked_bar_chart,
)
from plankeeper.console.shell.static_files import STATIC_DIR
from support.chromium import axe_violations

INVOICES = Unit("invoice", "invoices")
SERIES = (
    Series("Paid", "good"),
    Series("On hold", "warn"),
    Series("Rejected", "bad"),
    Series("In progress", "muted"),
    Series("Other", "accent"),
)
WEEKS = [
    StackedBar(
        f"{week} Nov",
        tuple((week * (part + 3)) % 11 for part in range(5)),
        ("/list",) * 5,
        "/list",
        f"Week from {week} Nov 2026",
    )
    for week in range(1, 13)
]
AGES = [
    Bar("0–7 days", Decimal("3100.50"), "/list"),
    Bar("8–14 days", Decimal(-200), "/list"),
    Bar("30+ days", Decimal(9500), "/list", tone="bad"),
]
PROVIDERS = [Bar(f"{'Long Provider Name ' * 4}{each}", Decimal(1000 - each * 100), "/list") for each in range(10)]
PAGE = """
{% from "components/charts.html" import bar_chart, bar_list %}
<!doctype html><html lang="en"><head><title>Charts</title><style>{{ css }}</style></head><body><main><h1>Charts</h1>
<div class="card">{{ bar_chart(stacked, "None") }}</div>
<div class="card">{{ bar_chart(plain, "None") }}</div>
<div class="card">{{ bar_chart(empty, "No invoices yet.") }}</div>
<div class="card">{{ bar_list(listed, "None") }}</div></main></body></html>
"""


@pytest.fixture
def charts(page: Any) -> Any:
    html = (
        create_templates(ZoneInfo("Australia/Sydney"))
        .env.from_string(PAGE)
        .render(
            css="".join((STATIC_DIR / name).read_text() for name in ("console.css", "charts.css")),
            stacked=stacked_bar_chart("Invoices received per week", SERIES, WEEKS, unit=INVOICES, head="Week"),
            plain=bar_chart("Unpaid invoices by age", AGES, unit=MONEY, head="Age"),
            empty=bar_chart("Nothing", [], unit=INVOICES, head="Day"),
            listed=bar_list("Spend by provider", PROVIDERS, unit=MONEY),
        )
    )
    page.set_content(html)
    return page


def test_charts_are_accessible_with_closed_and_open_tables(charts: Any) -> None:
    for is_open in (False, True):
        charts.evaluate("open => document.querySelectorAll('details').forEach(each => { each.open = open })", is_open)
        assert [each["id"] for each in axe_violations(charts)] == [], is_open


def test_charts_fit_a_phone_and_keep_the_size_of_their_text(charts: Any) -> None:
    charts.set_viewport_size({"width": 390, "height": 900})
    assert charts.evaluate("document.documentElement.scrollWidth") <= 390
    heights = charts.evaluate(
        "[...document.querySelectorAll('.plot text:not(.minor)')].map(each => each.getBoundingClientRect().height)"
    )
    assert min(heights) >= 12


def test_labels_below_the_bars_do_not_overlap(charts: Any) -> None:
    for width in (390, 1280):
        charts.set_viewport_size({"width": width, "height": 900})
        boxes = charts.evaluate(
            """[...document.querySelectorAll('.bars')].map(chart =>
                 [...chart.querySelectorAll('text:not(.value)')].map(each => each.getBoundingClientRect())
                   .filter(each => each.width).map(each => [each.left, each.right]))"""
        )
        for labels in boxes:
            assert all(left[1] < right[0] for left, right in pairwise(labels)), width


def test_every_value_of_the_table_is_a_link_for_the_keyboard(charts: Any) -> None:
    charts.locator("summary").first.focus()
    charts.keyboard.press("Enter")
    charts.keyboard.press("Tab")
    charts.keyboard.press("Tab")
    assert charts.evaluate("document.activeElement.closest('td') !== null")
