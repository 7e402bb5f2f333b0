"""The amounts of lines with tax: invoices, claims, budgets and statements have the same ones."""

from typing import Any

import pytest

from support.claims import SERVICE_DAY, Office, set_office
from support.client import Client
from support.server import RunningServer

Invoice = dict[str, Any]


@pytest.fixture
def office(server: RunningServer, api: Client) -> Office:
    office = Office(server, api)
    set_office(server, api, prices_include_gst=False)
    component = {"name": "Therapy", "kind": "stated", "categories": [15], "amount": 9000}
    plan = {"start_date": "2026-01-01", "end_date": "2026-12-31", "components": [component]}
    api.create(f"/participants/{office.participant}/plans", plan)
    return office


def taxed(office: Office, price: float, **values: Any) -> dict[str, Any]:
    return office.line(quantity=1, unit_price=None, total_price=price, gst_code="P1", **values)


def amounts(office: Office, invoice: Invoice) -> list[float]:
    """The amounts of the lines of the only invoice, which its statement and the budget have too."""
    found = {each["id"]: each["amount"] for each in office.read(invoice)["line_items"]}
    path = f"/participants/{office.participant}"
    statement = office.client.create(f"{path}/statements", {"month": f"{SERVICE_DAY:%Y-%m}"})
    assert {each["line_id"]: each["amount"] for each in statement["lines"]} == found
    [component] = office.client.get(f"{path}/plans", on="2026-11-20").json()["data"][0]["components"]
    total = round(sum(found.values()), 2)
    assert round(component["paid"] + component["pending"] + component["waiting"], 2) == total
    return [*found.values()]


def claimed(office: Office, batch: dict[str, Any]) -> list[float]:
    claims = office.client.get(f"/claim-batches/{batch['id']}/lines", limit=100).json()["data"]
    return [each["amount"] for each in claims]


@pytest.mark.parametrize("level", ["inform", "warn"])
def test_a_wrong_total_counts_whatever_the_level_of_its_warning_is(office: Office, level: Any) -> None:
    set_office(office.server, office.client, warning_levels={"check_total": level})
    lines = [taxed(office, 10) for _ in range(10)]
    right = office.invoice("1", *lines, tax=10.10, total=110.10)
    assert amounts(office, right) == [11.0] * 9 + [11.1]
    office.client.put(f"/invoices/{right['id']}", {"total": 111.10}).raise_for_status()
    assert amounts(office, right) == [11.0] * 10
    assert claimed(office, office.batch(right)) == [11.0] * 10


def test_a_total_that_an_import_corrects_counts_for_the_lines_that_it_leaves(office: Office) -> None:
    invoice = office.invoice("1", taxed(office, 10.03), taxed(office, 10.03), tax=2.01, total=22)
    assert amounts(office, invoice) == [11.03, 11.03]
    office.import_rows("invoices", {"id": invoice["id"], "total": 22.07})
    assert amounts(office, invoice) == [11.03, 11.04]
