"""Lists grouped by month, status and other keys: sums, links to the rows of a group, files and views."""

import csv
import io
import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import date, datetime
from decimal import Decimal
from html import unescape
from typing import Any

import httpx
import openpyxl
import pytest
from uuid_utils.compat import uuid7

from support.client import Client
from support.console import Browser
from support.list_groups import read_groups

Row = dict[str, Any]
AMOUNTS = ("100.10", "-20.05", "0", "33.33", "1234567.89", "7.01", "18", "2.50")
DATES = ("2026-08-31", "2026-09-01", "2026-09-30", None, "2026-10-31", "2026-11-01", "2062-01-15", "2026-11-30")
STATUSES = ("new", "paid", "on_hold", "new", "paid", "rejected", "cancelled", "new")
KEYS = ("month", "state", "claim_status", "account_manager", "provider")


@pytest.fixture
def invoices(client: Client, import_rows: Callable[..., Any]) -> list[Row]:
    """Eight invoices, with the group of each by every key. One is deleted: it counts, and its amount doesn't."""
    managers = [str(uuid7()), str(uuid7())]
    names = [{"first_name": "Kim", "last_name": "Ray"}, {"first_name": "Zoë", "last_name": "=1+1"}]
    people = [{"id": each} | name for each, name in zip(managers, names, strict=True)]
    assert not import_rows(client, "account-managers", people).errors
    participants = [
        client.create("/participants", {"first_name": "A", "state": state, "account_manager_id": manager})["id"]
        for state, manager in (("NSW", managers[0]), ("VIC", managers[1]), (None, None))
    ]
    providers = [client.create("/providers", {"entity_name": name})["id"] for name in ("Amber", "=cmd|' /C calc'!A0")]
    groups = [("NSW", "Kim Ray"), ("VIC", "Zoë =1+1"), ("No state", "No account manager")]
    rows, found = list[Row](), list[Row]()
    for index, (amount, day, status) in enumerate(zip(AMOUNTS, DATES, STATUSES, strict=True)):
        person, provider = index % 3, index % 4
        row = {"id": str(uuid7()), "invoice_number": f"N{index}", "invoice_date": day, "total": amount}
        row |= {"claim_status": status, "participant_id": participants[person], "is_deleted": index == 7}
        row |= {"pm_provider_id": providers[provider]} if provider < 2 else {}
        rows.append(row)
        state, manager = groups[person]
        found.append(
            {
                "number": f"N{index}",
                "amount": Decimal(0) if index == 7 else Decimal(amount),
                "status": status,
                "month": f"{date.fromisoformat(day):%B %Y}" if day else "No invoice date",
                "state": state,
                "claim_status": status.replace("_", " ").capitalize(),
                "account_manager": manager,
                "provider": ["Amber", "=cmd|' /C calc'!A0", "No provider", "No provider"][provider],
            }
        )
    assert not import_rows(client, "invoices", rows).errors
    return found


def get(browser: Browser, path: str, **params: str) -> httpx.Response:
    return browser.get(path, params=params)


def expected(rows: Iterable[Row], key: str) -> dict[str, tuple[int, Decimal]]:
    """The number and the sum of each group."""
    groups = defaultdict[str, list[Decimal]](list)
    for each in rows:
        groups[each[key]].append(each["amount"])
    return {name: (len(amounts), sum(amounts, Decimal(0))) for name, amounts in groups.items()}


def test_each_key_has_the_numbers_and_the_sums_of_its_invoices(owner: Browser, invoices: list[Row]) -> None:
    for key in KEYS:
        table = read_groups(get(owner, "/console/invoices", group=key).text)
        total = table.pop("Total")
        assert {name: (each.count, each.sums[0]) for name, each in table.items()} == expected(invoices, key), key
        assert (total.count, total.sums[0]) == (8, sum(each["amount"] for each in invoices)), key


def test_groups_follow_the_filters_and_lead_to_their_invoices(owner: Browser, invoices: list[Row]) -> None:
    filters = {"from": "2026-09-15", "to": "2026-11-15", "deleted": "no"}
    matching = [each for each in invoices if each["number"] in ("N2", "N4", "N5")]
    for key in KEYS:
        table = read_groups(get(owner, "/console/invoices", group=key, **filters).text)
        assert table.pop("Total").count == 3
        assert {name: (each.count, each.sums[0]) for name, each in table.items()} == expected(matching, key), key
        for name, (count, _, link) in table.items():
            numbers = re.findall(r'list=[^"]*">(N\d)</a>', owner.get(link).text)
            assert sorted(numbers) == [each["number"] for each in matching if each[key] == name], (key, name)
            assert len(numbers) == count


def test_all_groups_without_filters_lead_to_their_invoices(owner: Browser, invoices: list[Row]) -> None:
    for key in KEYS:
        for name, (count, _, link) in read_groups(get(owner, "/console/invoices", group=key).text).items():
            if name in ("Total", "No invoice date"):
                assert not link
                continue
            numbers = re.findall(r'list=[^"]*">(N\d)</a>', owner.get(link).text)
            assert (len(numbers), sorted(numbers)) == (
                count,
                [each["number"] for each in invoices if each[key] == name],
            ), (key, name)


def test_a_group_of_a_filter_for_several_statuses_has_no_link(owner: Browser, invoices: list[Row]) -> None:
    table = read_groups(get(owner, "/console/invoices", group="claim_status", claim_status="unpaid").text)
    assert invoices
    assert {name: each.url for name, each in table.items()} == {"New": "", "On hold": "", "Total": ""}


def test_the_files_of_groups(owner: Browser, invoices: list[Row]) -> None:
    for key in KEYS:
        text = get(owner, "/console/invoices.csv", group=key).content.decode("utf-8-sig")
        head, *lines = csv.reader(io.StringIO(text, newline=""))
        book = openpyxl.load_workbook(io.BytesIO(get(owner, "/console/invoices.xlsx", group=key).content))
        heading, *rows = book["invoices"].iter_rows()
        assert [each.value for each in heading] == head
        assert head[1:] == ["Invoices", "Total"]
        assert {each.data_type for row in rows for each in row[1:]} == {"n"}
        found = {str(row[0].value): (row[1].value, round(Decimal(str(row[2].value)), 2)) for row in rows}
        if key == "month":
            months = {each["month"]: each["month"] for each in invoices}
            found = {
                f"{datetime.fromisoformat(name):%B %Y}" if name[0].isdigit() else name: value
                for name, value in found.items()
            }
            assert set(months) == set(found)
        assert found == expected(invoices, key), key
        assert [len(lines), "f" in {row[0].data_type for row in rows}] == [len(found), False]


def test_a_grouping_is_saved_with_a_view(owner: Browser, invoices: list[Row]) -> None:
    assert invoices
    page = get(owner, "/console/invoices", group="provider", deleted="no")
    query = re.search(r'name="query" value="([^"]+)"', page.text)
    assert query
    assert unescape(query[1]) == "deleted=no&group=provider"
    saved = {"list": "invoices", "query": unescape(query[1]), "name": "By provider"}
    assert owner.submit("/console/views", saved).is_redirect
    assert '<a href="/console/invoices?deleted=no&amp;group=provider" aria-current="page">By provider</a>' in (
        get(owner, "/console/invoices", group="provider", deleted="no").text
    )


def test_an_unknown_grouping_shows_the_rows(owner: Browser, invoices: list[Row]) -> None:
    assert invoices
    for group in ("nothing", "plan_manager_id", "1; drop table invoices"):
        page = get(owner, "/console/invoices", group=group)
        assert page.status_code == 200
        assert '<table class="rows list' in page.text


def test_more_groups_than_a_page_shows_are_added_up(
    owner: Browser, client: Client, import_rows: Callable[..., Any]
) -> None:
    providers = [{"id": str(uuid7()), "entity_name": f"P{index}"} for index in range(103)]
    assert not import_rows(client, "providers", providers).errors
    rows = [
        {"id": str(uuid7()), "pm_provider_id": each["id"], "total": f"{index}.10"}
        for index, each in enumerate(providers)
    ]
    assert not import_rows(client, "invoices", rows).errors
    table = read_groups(get(owner, "/console/invoices", group="provider").text)
    assert table["P102"][:2] == (1, [Decimal("102.10")])
    assert table["3 others"] == (3, [Decimal("3.30")], "")
    assert table["Total"][:2] == (103, [sum(Decimal(f"{index}.10") for index in range(103))])
    file = get(owner, "/console/invoices.csv", group="provider").content.decode("utf-8-sig")
    assert len(file.splitlines()) == 104
