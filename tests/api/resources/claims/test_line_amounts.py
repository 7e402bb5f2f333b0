"""The amounts of lines with tax: invoices, claims, budgets and statements have the same ones."""

from datetime import date
from decimal import Decimal
from random import Random
from typing import Any

import pytest
from msgspec import Struct
from uuid_utils.compat import uuid7

from plankeeper.core.formatting import CENT, to_cents
from support.claims import SERVICE_DAY, Office, set_office
from support.client import Client
from support.results import SubmittedBatch
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


def test_a_claimed_line_keeps_its_amount_when_another_one_is_split(office: Office) -> None:
    """Two lines of 10.03 with a tax of 1.00 each, in an invoice with 2.01."""
    days = taxed(office, 10.03, service_date_from="2026-01-14")
    invoice = office.invoice("1", days, taxed(office, 10.03), tax=2.01, total=22.07)
    assert amounts(office, invoice) == [11.03, 11.04]
    batch = SubmittedBatch(office, invoice)
    batch.apply(batch.rejected(0))
    first = invoice["line_items"][0]["id"]
    body = {"date": "2026-01-15", "quantities": [0.5, 0.5]}
    office.client.create(f"/invoices/{invoice['id']}/lines/{first}/split", body)
    assert amounts(office, invoice) == [5.52, 11.04, 5.51]
    assert claimed(office, office.batch(invoice)) == [5.52, 5.51]
    [claim] = [each for each in batch.read_claims() if each["line_id"] != first]
    assert claim["amount"] == 11.04


def test_an_import_keeps_the_amount_of_a_claimed_line_if_it_is_possible(office: Office) -> None:
    parts = [taxed(office, 5.02), taxed(office, 10.03, claim_status="pending"), taxed(office, 5.01)]

    def imported(amount: float, **values: Any) -> list[float]:
        lines = [parts[0], parts[1] | {"amount": amount}, parts[2]]
        row = office.values(f"A{amount}", *lines, tax=2.01, total=22.07, id=str(uuid7())) | values
        office.import_rows("invoices", row)
        return [each["amount"] for each in office.read(row)["line_items"]]

    assert imported(11.04) == [5.52, 11.04, 5.51]
    assert imported(11.01) == [5.52, 11.01, 5.54]
    assert imported(11.07) == imported(11.039) == imported(20) == [5.52, 11.03, 5.52]
    again, ids = str(uuid7()), [str(uuid7()) for _ in parts]
    parts = [each | {"id": id_} for each, id_ in zip(parts, ids, strict=True)]
    assert imported(11.04, id=again) == imported(11.02, id=again) == [5.52, 11.04, 5.51]


def test_an_import_that_deletes_other_lines_keeps_the_amount_of_a_claimed_one(office: Office) -> None:
    """Its three cents are the difference of three lines."""
    invoice = office.invoice("1", *(taxed(office, 10.03) for _ in range(3)), tax=3.03, total=33.12)
    assert amounts(office, invoice) == [11.03, 11.03, 11.06]
    last = invoice["line_items"][2]
    claim = {"reference": "PORTAL-1", "line_ids": [last["id"]]}
    office.client.create(f"/invoices/{invoice['id']}/claimed-elsewhere", claim)
    line = taxed(office, 10.03, id=last["id"], claim_status="pending", claim_batch_ref="PORTAL-1")
    line |= {"created_at": last["created_at"]}
    office.import_rows("invoices", {"id": invoice["id"], "line_items": [line]})
    assert amounts(office, invoice) == [11.06]


class _Claim(Struct):
    line_id: str
    amount: Decimal


class Walk:
    """Random claims, results and splits of the lines of an invoice."""

    def __init__(self, office: Office, seed: int) -> None:
        self.office, self.random, self.splits_beside_claims = office, Random(seed), 0
        lines = [self._line() for _ in range(self.random.randint(2, 4))]
        tax = sum((to_cents(Decimal(str(each["total_price"])) / 10) for each in lines), Decimal(0))
        tax += self.random.randint(-len(lines), len(lines)) * CENT
        subtotal = Decimal(str(office.values("", *lines)["subtotal"]))
        self.total = float(subtotal + tax)
        self.invoice = office.invoice("1", *lines, tax=float(tax), total=self.total)

    def _line(self) -> dict[str, Any]:
        price = self.random.randint(100, 9000) / 100
        dates = {"service_date_from": "2026-01-02", "service_date_to": "2026-01-30"}
        return taxed(self.office, price, **dates) | {"quantity": self.random.choice((1, 2.5, 3))}

    def lines(self) -> list[dict[str, Any]]:
        return self.office.read(self.invoice)["line_items"]

    def claims(self) -> dict[str, float]:
        """The amounts of claims that are open or paid, by line."""
        statement = """
            select line_id::text, amount from claims where plan_manager_id = $1 and state in ('submitted', 'paid')
        """
        server = self.office.server
        found = server.run(server.db.rows(_Claim, statement, self.office.plan_manager_id))
        return {each.line_id: float(each.amount) for each in found}

    def step(self) -> None:
        line = self.random.choice(self.lines())
        path, status = f"/invoices/{self.invoice['id']}", line["claim_status"]
        if status == "pending" and self.random.random() < 0.4:
            outcome = self.random.choice(("paid", *["rejected"] * 4, "cancelled"))
            amount = {"amount": self.claims()[line["id"]]} if outcome == "paid" else {}
            self._post(f"{path}/lines/{line['id']}/claim-result", {"outcome": outcome, "reason": "None"} | amount)
        elif status == "new" and self.random.random() < 0.5:
            self._post(f"{path}/claimed-elsewhere", {"reference": "E1", "line_ids": [line["id"]]})
        elif status in ("new", "rejected") and line["service_date_from"] < line["service_date_to"]:
            part = round(line["quantity"] * self.random.randint(30, 70) / 100, 2)
            first, last = (date.fromisoformat(line[f"service_date_{each}"]) for each in ("from", "to"))
            middle = last - (last - first) // 2
            body = {"date": middle.isoformat(), "quantities": [part, round(line["quantity"] - part, 2)]}
            self._post(f"{path}/lines/{line['id']}/split", body)
            self.splits_beside_claims += bool(self.claims())

    def _post(self, path: str, body: dict[str, Any]) -> None:
        response = self.office.client.post(path, body)
        assert response.is_success, response.text


@pytest.mark.parametrize("seed", range(4))
def test_amounts_add_up_to_the_total_and_those_of_claims_never_change(office: Office, seed: int) -> None:
    walk = Walk(office, seed)
    for _ in range(30):
        walk.step()
        assert round(sum(amounts(office, walk.invoice)), 2) == walk.total
        shown = {each["id"]: each["amount"] for each in walk.lines()}
        assert walk.claims().items() <= shown.items()
    assert walk.splits_beside_claims
