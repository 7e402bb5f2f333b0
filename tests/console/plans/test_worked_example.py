"""The worked example of the documentation: its sums by hand, the API and the console have the same numbers."""

import re
from datetime import date, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest

from plankeeper.core.dates import parse_date
from support.client import Client
from support.console import Browser
from support.import_samples import Import
from support.pages import section, table_rows, text_of

PAGE = "docs/plans-worked-example.md"
NUMBERS = ("released", "paid", "pending", "waiting", "available")
DAYS = {"First": "31 Mar 2024", "Second": "31 Aug 2024", "Third": "28 Feb 2025"}
SPENT = {"amount": 150, "as_of": "2024-03-01", "source": "Former office"}


def amount(text: str) -> Decimal:
    """A result: what follows the last equals sign."""
    return Decimal(text.rpartition("= ")[2].replace(",", ""))


def months(start: date, count: int, each: str) -> list[dict[str, Any]]:
    """The calendar months from a first day of one, as funding periods."""
    starts = [
        date(start.year + (start.month - 1 + n) // 12, (start.month - 1 + n) % 12 + 1, 1) for n in range(count + 1)
    ]
    return [
        {
            "start_date": first.isoformat(),
            "end_date": (after - timedelta(days=1)).isoformat(),
            "amount": float(amount(each)),
        }
        for first, after in pairwise(starts)
    ]


@pytest.fixture
def plans(client: Client, import_rows: Import) -> str:
    """The path of the plans of a participant with all that the page lists."""
    participant = client.create("/participants", {"last_name": "Example"})["id"]
    path = f"/participants/{participant}/plans"
    dates = {name: (parse_date(start), parse_date(end)) for name, start, end in table_rows(section(PAGE, "The plans"))}
    components: dict[str, list[dict[str, Any]]] = {name: [] for name in dates}
    for plan, name, kind, categories, count, each, total in table_rows(section(PAGE, "The components")):
        values = {"name": name, "kind": kind, "categories": [int(category) for category in categories.split(", ")]}
        values |= {"amount": float(amount(total)), "periods": months(dates[plan][0], int(count), each)}
        components[plan].append(values | ({"spent_elsewhere": SPENT} if (plan, name) == ("First", "Therapy") else {}))
    for name, (start, end) in dates.items():
        period = {"start_date": start.isoformat(), "end_date": end.isoformat(), "external_id": name}
        client.create(path, period | {"components": components[name]})
    rows = [invoice_of(participant, cells) for cells in table_rows(section(PAGE, "The lines"))]
    assert len(rows) == 40
    assert not import_rows(client, "invoices", rows).errors
    return path


def invoice_of(participant: str, cells: list[str]) -> dict[str, Any]:
    number, service, item, state, total, paid, _ = cells
    status, _, rest = state.partition(", ")
    line = {
        "service_date_from": parse_date(service).isoformat(),
        "service_item_number": item.strip("`"),
        "claim_status": status,
        "total_price": total,
        "paid_amount": paid or None,
    }
    row = {"invoice_number": number, "invoice_date": "2026-01-01", "participant_id": participant}
    return row | {"line_items": [line], "wont_claim": rest == "won’t claim"}


def shown_numbers(client: Client, path: str, **query: str) -> dict[tuple[str, str], list[Decimal]]:
    """The numbers of each component by plan and name."""
    return {
        (plan["external_id"], each["name"]): [Decimal(str(each[name])) for name in NUMBERS]
        for plan in client.get(path, **query).json()["data"]
        for each in plan["components"]
    }


def numbers_of_day(plan: str) -> dict[tuple[str, str], list[Decimal]]:
    """The numbers of a plan's components on its day, as the page computes them."""
    text = section(PAGE, f"The {plan.lower()} plan on {DAYS[plan]}")
    names = re.findall(r"^\| Number \| (.+?) \|", text, re.MULTILINE)
    results = [amount(result) for _, result, _ in table_rows(text)]
    return {(plan, name): results[5 * index : 5 * index + 5] for index, name in enumerate(names)}


def final_numbers() -> dict[tuple[str, str], list[Decimal]]:
    rows = table_rows(section(PAGE, "After the last day"))
    return {(plan, name): [amount(each) for each in results] for plan, name, *results in rows}


def test_the_sums_of_the_page_are_right() -> None:
    sums = re.findall(r"([0-9,.]+(?: [+-] [0-9,.]+)+) = (-?[0-9,.]+)", text_of(PAGE))
    assert len(sums) == text_of(PAGE).count(" = ") > 20
    for terms, result in sums:
        added = sum(Decimal(each) for each in terms.replace(",", "").replace("- ", "-").replace("+ ", "").split())
        assert added == amount(result), terms


def test_the_api_and_the_console_have_the_numbers_of_the_page(client: Client, owner: Browser, plans: str) -> None:
    for plan, day in DAYS.items():
        expected = numbers_of_day(plan)
        shown = shown_numbers(client, plans, on=parse_date(day).isoformat())
        assert {each: shown[each] for each in shown if each[0] == plan} == expected
        stored = next(each for each in client.get(plans).json()["data"] if each["external_id"] == plan)
        page = owner.get(f"/console{plans}?charts={stored['id']}").text
        for released, *used, _ in expected.values():
            cells = "".join(f"<td>${each:,.2f}</td>" for each in (released, sum(used)))
            assert f'<th scope="row">{day}</th>{cells}' in page
    final = final_numbers()
    assert shown_numbers(client, plans) == final
    page = owner.get(f"/console{plans}").text
    for released, paid, pending, waiting, available in final.values():
        assert f"${paid + pending + waiting:,.2f} of ${released:,.2f}, ${available:,.2f} available" in page
        assert f"Paid ${paid:,.2f}, pending ${pending:,.2f}, waiting ${waiting:,.2f}, released ${released:,.2f}" in page
