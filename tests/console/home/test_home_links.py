"""Each number of the home page leads to a list with as many rows, and each sum to a list with this sum."""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from html import unescape
from itertools import product
from typing import Any

import pytest
from uuid_utils.compat import uuid7

from support.client import Client
from support.console import Account, Browser
from support.server import RunningServer

LINE = {"service_item_number": "01_011_0107_1_1", "quantity": 1, "unit_price": 100, "total_price": 100}
STATUSES = ("new", "flagged", "payment_ready", "partially_paid", "on_hold", "paid", "rejected", "cancelled")
AGES = (0, 1, 7, 8, 14, 15, 30, 31, 90, 200)  # days: on both sides of each limit
TILE = re.compile(
    r'<a href="([^"]+)">\s*<span class="tile-label">[^<]+</span>\s*<strong>([0-9,]+)</strong>'
    r'(?:\s*<span class="soft">([^<· ]+))?'
)
WARNING = re.compile(r'<th scope="row"><a href="([^"]+)">[^<]+</a>.*?</th><td[^>]*>([0-9,]+)</td><td[^>]*>([^<]+)</td>')
CELL = re.compile(r'<td><a href="([^"]+)">([^<]+)</a></td>')
LISTED_BAR = re.compile(r'<a href="([^"]+)">[^<]+</a></span>\s*<span class="bar-value">([^<]+)<')
SUMMARY = re.compile(r'<p class="list-summary">([0-9,]+) \w+(?: · (\S+?))?</p>')


@pytest.fixture
def account(new_account: Callable[..., Account]) -> Account:
    return new_account("manager")


@pytest.fixture
def office(server: RunningServer, client: Client, account: Account, import_rows: Callable[..., Any]) -> None:
    """Participants of the account, of a colleague and of nobody, with invoices of all ages and statuses."""
    today = datetime.now(server.settings.time_zone).date()
    managers = [str(uuid7()) for _ in range(2)]
    emails = (account.email, f"{uuid7()}@example.com")
    rows = [{"id": each, "first_name": "Kim", "email": email} for each, email in zip(managers, emails, strict=True)]
    assert not import_rows(client, "account-managers", rows).errors
    participants = [
        client.create(
            "/participants",
            {
                "first_name": "Ann", "status": status, "account_manager_id": manager, "plan_start_date": "2020-01-01",
                "plan_end_date": str(today + timedelta(days=days)),
            },
        )["id"]
        for manager, days, status in (
            *product((*managers, None), (-400, -1, 0, 6, 7, 30, 31, 89, 120), ("Active",)),
            (None, 3, "Inactive"),
        )
    ]  # fmt: skip
    providers = [client.create("/providers", {"entity_name": each})["id"] for each in ("Osprey", "Plover")]
    create_invoices(client, import_rows, server, participants, providers, today)


def create_invoices(
    client: Client, import_rows: Callable[..., Any], server: RunningServer, participants: list[str],
    providers: list[str], today: date,
) -> None:  # fmt: skip
    rows: list[dict[str, Any]] = []
    for number, (age, status, is_deleted) in enumerate(product(AGES, STATUSES, (False, False, True))):
        received = datetime.combine(today - timedelta(days=age), time(12), server.settings.time_zone)
        rows.append(
            {
                "id": str(uuid7()), "invoice_number": None if number % 5 == 0 else f"INV-{number // 2}",
                "invoice_date": str(received.date()), "total": 100, "tax": 0, "subtotal": 100,
                "participant_id": participants[number % len(participants)], "pm_provider_id": providers[number % 2],
                "claim_status": status, "approval_status": ("pending", "approved")[number % 3 == 0],
                "is_deleted": is_deleted, "created_at": received.astimezone(UTC).isoformat(), "line_items": [LINE],
            }
        )  # fmt: skip
    report = import_rows(client, "invoices", rows)
    assert not report.errors, report.errors


def numbers_of(page: str) -> list[tuple[str, str | None, str | None]]:
    """The address of each link, with the number and the sum that stand beside it; null for what isn't shown."""
    found = [(url, count, money or None) for url, count, money in TILE.findall(page)]
    assert len(found) in (5, 6)
    found += WARNING.findall(page)
    for url, text in CELL.findall(page) + LISTED_BAR.findall(page):
        found.append((url, None, text) if text.startswith("$") else (url, text, None))
    return [(unescape(url), count, money) for url, count, money in found]


def summary_of(browser: Browser, url: str) -> tuple[str, str]:
    """The number of rows and their sum, as the list says."""
    response = browser.get(url)
    assert response.status_code == 200, url
    assert "aria-invalid" not in response.text, url
    found = SUMMARY.search(response.text)
    return (found[1], found[2] or "$0.00") if found else ("0", "$0.00")


@pytest.mark.parametrize("scope", ["me", "all"])
@pytest.mark.usefixtures("office")
def test_every_number_is_that_of_the_list(new_browser: Callable[..., Browser], account: Account, scope: str) -> None:
    browser = new_browser(account)
    page = browser.get("/console", params={"for": scope}).text
    numbers = numbers_of(page)
    assert len(numbers) > 80
    wrong: list[Any] = []
    for url, count, money in numbers:
        found = summary_of(browser, url)
        if (count or found[0], money or found[1]) != found:
            wrong.append((url, (count, money), found))
    assert not wrong


@pytest.mark.usefixtures("office")
def test_the_bars_lead_where_the_numbers_lead(new_browser: Callable[..., Browser], account: Account) -> None:
    page = new_browser(account).get("/console").text
    bars = {unescape(each) for each in re.findall(r'<a href="([^"]+)" tabindex="-1">', page)}
    assert len(bars) > 20
    assert bars <= {url for url, _, _ in numbers_of(page)}
