"""Ranges of days that begin with the first day of the calendar or end with the last one."""

import csv
import io
from collections.abc import Iterator
from datetime import date
from urllib.parse import quote

import pytest

from plankeeper.console.lists.definition import ListDefinition
from plankeeper.console.lists.filters import DateRangeFilter
from plankeeper.console.views.pages import LISTS
from support.console import Browser, main_text
from support.factories import SeededPlanManager
from support.sweeps import sweep

ENDPOINT = {"url": "https://example.com/hooks", "description": "For date ranges"}
FIRST, LAST = date.min.isoformat(), date.max.isoformat()


def date_ranges(definition: ListDefinition) -> Iterator[tuple[str, str]]:
    """The parameters of the first and the last day of each filter."""
    for each in definition.filters:
        if isinstance(each, DateRangeFilter):
            yield each.first_name, each.last_name


CASES = [(each.path, *names) for each in LISTS.values() for names in date_ranges(each)]
CASES.append(("/console/settings/webhooks/{endpoint_id}/deliveries", "from", "to"))


@pytest.fixture
def browser(filled_office: SeededPlanManager) -> Iterator[Browser]:
    opened = filled_office.browser()
    yield opened
    opened.http.close()


@sweep("path, first, last", CASES)
def test_the_first_and_the_last_day_of_the_calendar_are_open_ends(
    filled_office: SeededPlanManager, browser: Browser, path: str, first: str, last: str
) -> None:
    if "{endpoint_id}" in path:  # tests of webhook workers delete those of all plan managers
        path = path.format(endpoint_id=filled_office.client.create("/webhook-endpoints", ENDPOINT)["id"])
    for query in (f"{first}={FIRST}", f"{last}={LAST}", f"{first}={FIRST}&{last}={LAST}", f"{first}={LAST}"):
        page = browser.get(f"{path}?{query}")
        assert page.status_code == 200, query
        file = browser.get(f"{path}.csv?{query}")
        assert file.status_code == 200, query
        list(csv.reader(io.StringIO(file.text)))


def test_an_open_range_selects_every_invoice(filled_office: SeededPlanManager, browser: Browser) -> None:
    path = "/console/invoices.csv"
    both = browser.get(f"{path}?received_from={FIRST}&received_to={LAST}")
    assert both.text == browser.get(path).text
    shown = main_text(browser.get(f"/console/invoices?received_to={LAST}").text)
    assert "Received by 31 Dec 9999" in shown
    record = f"/console/invoices/{filled_office.ids['invoice_id']}?list={quote(f'received_to={LAST}')}"
    assert browser.get(record).status_code == 200
