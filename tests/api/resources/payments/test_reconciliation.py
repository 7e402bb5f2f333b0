"""The reconciliation: what the office holds is what came in less what went out, for any two days."""

import io
import itertools
from datetime import date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any
from uuid import uuid4

import openpyxl
import pytest

from support.payments import PayingOffice

FIRST = date(2026, 10, 1)
MOVEMENTS = ("received", "paid_out", "returned", "refunded", "repaid", "fees")
OUTGOING = {"paid_out", "repaid", "fees"}
NOTHING = dict.fromkeys(("opening", *MOVEMENTS, "closing"), 0)


def reconcile(office: PayingOffice, first: date | str, last: date | str) -> dict[str, Any]:
    response = office.client.get("/reconciliation", **{"from": str(first), "to": str(last)})
    assert response.status_code == 200, response.text
    found = response.json()
    moved = sum(-Decimal(str(found[each])) if each in OUTGOING else Decimal(str(found[each])) for each in MOVEMENTS)
    assert Decimal(str(found["closing"])) == Decimal(str(found["opening"])) + moved
    assert sum(Decimal(str(each["amount"])) for each in found["lines"]) == Decimal(str(found["closing"]))
    return found


def sums(found: dict[str, Any]) -> dict[str, Any]:
    return {name: found[name] for name in NOTHING}


def add_adjustment(office: PayingOffice, kind: str, amount: str, day: str) -> None:
    statement = """
        insert into adjustments (plan_manager_id, id, invoice_id, line_id, kind, amount, date, created_at)
        select $1, gen_random_uuid(), invoice_id, line_id, $2, $3, $4, '2026-10-02'
        from claims where plan_manager_id = $1 limit 1
    """
    office.execute(statement, office.plan_manager_id, kind, Decimal(amount), date.fromisoformat(day))


def test_money_comes_in_and_goes_out(office: PayingOffice) -> None:
    assert sums(reconcile(office, "2026-09-01", "2026-10-31")) == NOTHING
    invoice = office.invoice("100.00")
    [line] = office.line_ids(invoice)
    run = office.run(invoice)
    office.act(run, "mark-paid", paid_on="2026-10-15").raise_for_status()
    held = {"invoice_id": invoice, "line_id": line, "claim_batch_id": None}
    before = reconcile(office, "2026-10-01", "2026-10-14")
    assert sums(before) == NOTHING | {"received": 100, "closing": 100}
    assert before["lines"] == [held | {"amount": 100}]
    assert sums(reconcile(office, "2026-10-02", "2026-10-15")) == NOTHING | {"opening": 100, "paid_out": 100}
    [payment] = office.payments(run)
    body = {"date": "2026-10-17", "reason": "Closed"}
    office.client.post(f"/payment-runs/{run['id']}/payments/{payment['id']}/returned", body).raise_for_status()
    add_adjustment(office, "agency_reversal", "60.00", "2026-10-18")
    add_adjustment(office, "repaid_to_agency", "60.00", "2026-10-19")
    add_adjustment(office, "provider_refund", "5.00", "2026-10-20")
    after = reconcile(office, "2026-10-15", "2026-10-31")
    expected = {"opening": 100, "paid_out": 100, "returned": 100, "refunded": 5, "repaid": 60, "closing": 45}
    assert sums(after) == NOTHING | expected
    assert after["lines"] == [held | {"amount": 45}]
    assert reconcile(office, "2026-10-01", "2026-10-14") == before


def test_with_receipts_money_is_received_when_it_arrives(office: PayingOffice) -> None:
    invoice = office.invoice("30.00", "20.00")
    first, second = office.line_ids(invoice)
    batch = str(uuid4())
    statement = """
        insert into claim_batches (plan_manager_id, id, number, state, total, lines, created_at)
        values ($1, $2::text::uuid, 'B000001', 'processed', 50, 2, '2026-10-01')
    """
    office.execute(statement, office.plan_manager_id, batch)
    for position, line in enumerate((first, second), 1):
        statement = """
            update claims set batch_id = $2::text::uuid, source = 'batch', position = $3, reference = line_id::text
            where plan_manager_id = $1 and line_id = $4::text::uuid
        """
        office.execute(statement, office.plan_manager_id, batch, position, line)
    for day, amount in (("2026-10-03", "40.00"), ("2026-10-05", "15.00")):
        statement = """
            insert into claim_receipts (plan_manager_id, id, batch_id, date, amount, created_at)
            values ($1, gen_random_uuid(), $2::text::uuid, $3, $4, '2026-10-02')
        """
        office.execute(statement, office.plan_manager_id, batch, date.fromisoformat(day), Decimal(amount))
    assert sums(reconcile(office, "2026-10-01", "2026-10-31")) == NOTHING | {"received": 50, "closing": 50}
    office.set(needs_receipts=True)
    assert sums(reconcile(office, "2026-10-01", "2026-10-02")) == NOTHING
    partly = reconcile(office, "2026-10-01", "2026-10-04")
    assert sums(partly) == NOTHING | {"received": 40, "closing": 40}
    assert {each["line_id"]: each["amount"] for each in partly["lines"]} == {first: 30, second: 10}
    whole = reconcile(office, "2026-10-04", "2026-10-31")
    assert sums(whole) == NOTHING | {"opening": 40, "received": 15, "closing": 55}
    amounts = {each["line_id"] or each["claim_batch_id"]: each["amount"] for each in whole["lines"]}
    assert amounts == {first: 30, second: 20, batch: 5}


def test_the_file_has_the_same_figures(office: PayingOffice) -> None:
    invoice = office.invoice("100.00")
    [line] = office.line_ids(invoice)
    path = "/reconciliation?from=2026-10-01&to=2026-10-31"
    response = office.client.request("GET", path, headers={"Accept": "text/csv"})
    assert response.headers["content-type"] == "text/csv"
    disposition = 'attachment; filename="reconciliation-2026-10-01-2026-10-31.csv"'
    assert response.headers["content-disposition"] == disposition
    rows = response.text.split("\r\n")
    assert rows[:3] == [
        "kind,date,invoice_id,line_id,claim_batch_id,amount",
        "opening,2026-10-01,,,,0.00",
        "received,2026-10-31,,,,100.00",
    ]
    assert rows[-3:] == ["closing,2026-10-31,,,,100.00", f"held,2026-10-31,{invoice},{line},,100.00", ""]
    for accept in ("application/json", "*/*", "text/csv;q=0, application/json", "application/json, text/csv;q=0.5"):
        response = office.client.request("GET", path, headers={"Accept": accept})
        assert response.json()["closing"] == 100


def test_the_file_is_also_a_workbook(office: PayingOffice) -> None:
    invoice = office.invoice("100.00")
    [line] = office.line_ids(invoice)
    media_type = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    path = "/reconciliation?from=2026-10-01&to=2026-10-31"
    response = office.client.request("GET", path, headers={"Accept": media_type})
    assert response.headers["content-type"] == media_type
    disposition = 'attachment; filename="reconciliation-2026-10-01-2026-10-31.xlsx"'
    assert response.headers["content-disposition"] == disposition
    rows = [*openpyxl.load_workbook(io.BytesIO(response.content))["Reconciliation"].iter_rows(values_only=True)]
    first, last = datetime(2026, 10, 1), datetime(2026, 10, 31)  # noqa: DTZ001 - a cell has no zone
    assert rows[1:3] == [("opening", first, None, None, None, 0), ("received", last, None, None, None, 100)]
    assert rows[-1] == ("held", last, invoice, line, None, 100)


def test_the_days_have_defaults_and_an_order(office: PayingOffice) -> None:
    assert office.client.get("/reconciliation", to="2026-11-17").json()["from"] == "2026-11-01"
    today = office.client.get("/reconciliation").json()
    assert today["from"] == today["to"][:8] + "01"
    response = office.client.get("/reconciliation", **{"from": "2026-10-02", "to": "2026-10-01"})
    assert (response.status_code, [each["field"] for each in response.json()["errors"]]) == (400, ["to"])


@pytest.mark.parametrize("seed", range(3))
def test_each_day_begins_with_what_the_day_before_has_left(office: PayingOffice, seed: int) -> None:
    random = Random(seed)
    invoices = office.invoices([(f"INV-{number}", ["30.00", "7.50"]) for number in range(6)])
    statement = "update claims set result_date = $2 where plan_manager_id = $1 and invoice_id = $3::text::uuid"
    for id_ in invoices:
        office.execute(statement, office.plan_manager_id, FIRST + timedelta(random.randrange(20)), id_)
    for id_ in random.sample(invoices, 4):
        run = office.run(id_)
        paid_on = random.randrange(20)
        office.act(run, "mark-paid", paid_on=str(FIRST + timedelta(paid_on))).raise_for_status()
        if random.random() < 0.5:
            [payment] = office.payments(run)
            body = {"date": str(FIRST + timedelta(random.randrange(paid_on, 20))), "reason": "Closed"}
            path = f"/payment-runs/{run['id']}/payments/{payment['id']}/returned"
            office.client.post(path, body).raise_for_status()
            office.set_account("provider", office.provider, "Amber Physio")
    for kind in ("provider_refund", "repaid_to_agency"):
        add_adjustment(office, kind, "1.25", str(FIRST + timedelta(random.randrange(20))))
    days = [FIRST + timedelta(number) for number in range(21)]
    daily = [reconcile(office, day, day) for day in days]
    for yesterday, today in itertools.pairwise(daily):
        assert today["opening"] == yesterday["closing"]
    whole = reconcile(office, days[0], days[-1])
    for name in MOVEMENTS:
        assert Decimal(str(whole[name])) == sum(Decimal(str(each[name])) for each in daily)
    assert (whole["closing"], whole["lines"]) == (daily[-1]["closing"], daily[-1]["lines"])
