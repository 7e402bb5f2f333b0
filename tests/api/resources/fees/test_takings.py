"""Takings: what the agency has paid is taken once, and the reconciliation closes."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import httpx

from plankeeper.privacy import person_export
from support.fees import FEE, FeeOffice
from support.list_parameters import check_list
from support.money_rules import HELD, RULES

TODAY = datetime.now(UTC).date()


def at_once(*requests: Callable[[], httpx.Response]) -> list[httpx.Response]:
    with ThreadPoolExecutor(len(requests)) as executor:
        return [each.result() for each in [executor.submit(request) for request in requests]]


def paid_fees(office: FeeOffice, count: int = 1, **values: Any) -> list[str]:
    """The ids of fees that the agency has paid."""
    for _ in range(count):
        office.managed()
    ids = [each["id"] for each in office.made()["fees"]]
    office.claim_and_pay(*ids, **values)
    return ids


def reconcile(office: FeeOffice) -> dict[str, Any]:
    """The figures until today; the rules of money hold, too."""

    async def find_broken() -> dict[str, list[str]]:
        found = {name: await office.server.db.rows(str, rule, office.plan_manager_id) for name, rule in RULES.items()}
        return {name: rows for name, rows in found.items() if rows}

    assert office.server.run(find_broken()) == {}
    days = {"from": "2020-01-01", "to": str(TODAY + timedelta(days=1))}
    found = office.client.get("/reconciliation", **days).json()
    held = office.server.run(office.server.db.one(Decimal, HELD, office.plan_manager_id, False))
    assert Decimal(str(found["closing"])) == held == sum(Decimal(str(each["amount"])) for each in found["lines"])
    return found


def test_fees_are_taken_with_one_reference_and_one_total(office: FeeOffice) -> None:
    ids = paid_fees(office, 2)
    assert (reconcile(office)["closing"], reconcile(office)["fees"]) == (2 * FEE, 0)
    response = office.take(taken_on=str(TODAY - timedelta(days=1)))
    assert response.status_code == 201, response.text
    taking = response.json()
    made = {name: taking[name] for name in ("number", "taken_on", "total", "lines", "left_out")}
    assert made == {
        "number": "F000001", "taken_on": str(TODAY - timedelta(days=1)), "total": 2 * FEE, "lines": 2, "left_out": [],
    }  # fmt: skip
    for invoice in map(office.read, ids):
        [line] = invoice["line_items"]
        found = (invoice["claim_status"], line["claim_status"], line["payment_ref"], line["has_payment"])
        assert found == ("paid", "paid", "F000001", True)
    figures = reconcile(office)
    assert (figures["received"], figures["fees"], figures["closing"]) == (2 * FEE, 2 * FEE, 0)
    stored = {name: value for name, value in taking.items() if name != "left_out"}
    assert office.client.get("/fee-takings").json()["data"] == [stored]
    assert office.client.get(f"/fee-takings/{taking['id']}").json() == stored
    lines = office.client.get(f"/fee-takings/{taking['id']}/lines").json()["data"]
    assert sorted(each["invoice_id"] for each in lines) == sorted(ids)
    assert [each["amount"] for each in lines] == [FEE, FEE]
    assert {each["taken"] for each in office.client.get("/fees").json()["data"]} == {FEE}
    check_list(office.client, "/fees")
    check_list(office.client, f"/fee-takings/{taking['id']}/lines")


def test_a_dry_run_takes_nothing(office: FeeOffice) -> None:
    [id_] = paid_fees(office)
    response = office.take(dry_run=True)
    assert response.status_code == 200
    found = response.json()
    assert (found["id"], found["number"], found["total"], found["lines"]) == (None, None, FEE, 1)
    assert office.client.get("/fee-takings").json()["data"] == []
    assert office.read(id_)["claim_status"] == "payment_ready"


def test_requests_at_the_same_time_take_each_fee_once(office: FeeOffice) -> None:
    ids = paid_fees(office, 6)
    for chosen in ([], ids):
        responses = at_once(*[lambda chosen=chosen: office.take(*chosen)] * 4)
        taken = [each.json()["total"] for each in responses if each.status_code == 201]
        assert taken == ([6 * FEE] if not chosen else [])
    assert reconcile(office)["fees"] == 6 * FEE


def test_nothing_to_take_is_an_error(office: FeeOffice) -> None:
    [id_] = paid_fees(office)
    office.take().raise_for_status()
    for response, field in ((office.take(), "all"), (office.take(id_), "invoice_ids")):
        assert response.status_code == 400
        assert [each["field"] for each in response.json()["errors"]] == [field]
    assert office.take(dry_run=True).json()["lines"] == 0


def test_only_own_fees_are_taken(office: FeeOffice) -> None:
    invoice = office.invoice("50.00")
    assert office.take(invoice).status_code == 400
    assert office.take(dry_run=True).json()["left_out"] == []
    numbers = ("51 824 753 556", "51-824-753-556")
    providers = [office.own_provider, *(office.provider_with(f"Harbour Plans {each}", abn=each) for each in numbers)]
    own = [office.invoice("20.00", pm_provider_id=each, number="FEE-OLD") for each in providers]
    taking = office.take().json()
    assert (taking["total"], [office.read(each)["claim_status"] for each in own]) == (60, ["paid", "paid", "paid"])
    assert office.read(invoice)["claim_status"] == "payment_ready"


def test_a_held_fee_is_left_out(office: FeeOffice) -> None:
    held, _ = paid_fees(office, 2)
    office.client.post(f"/invoices/{held}/hold", {"reason": "Wrong price"}).raise_for_status()
    taking = office.take().json()
    assert (taking["lines"], [each["reason"] for each in taking["left_out"]]) == (1, ["held"])
    assert office.read(held)["claim_status"] == "on_hold"


def test_fees_wait_for_receipts(office: FeeOffice) -> None:
    office.set(needs_receipts=True)
    paid_fees(office)
    assert [each["reason"] for each in office.take(dry_run=True).json()["left_out"]] == ["waiting_for_receipt"]
    [batch] = office.client.get("/claim-batches").json()["data"]
    office.client.create(f"/claim-batches/{batch['id']}/receipts", {"date": str(TODAY), "amount": FEE})
    assert office.take().json()["total"] == FEE


def test_the_rest_of_a_fee_is_taken_later(office: FeeOffice) -> None:
    [id_] = paid_fees(office, paid=100)
    assert office.take().json()["total"] == 100
    [line] = office.read(id_)["line_items"]
    assert line["claim_status"] == "partially_paid"
    office.client.post(f"/invoices/{id_}/lines/{line['id']}/claim-rest", {}).raise_for_status()
    office.claim_and_pay(id_)
    assert office.take().json()["total"] == 4.45
    figures = reconcile(office)
    assert (figures["fees"], figures["closing"]) == (FEE, 0)
    check_list(office.client, "/fee-takings")


def test_a_reversed_fee_is_to_be_recovered(office: FeeOffice) -> None:
    [id_] = paid_fees(office)
    office.take().raise_for_status()
    [line] = office.read(id_)["line_items"]
    body = {"line_id": line["id"], "date": str(TODAY), "amount": FEE}
    office.client.create(f"/invoices/{id_}/adjustments", body | {"kind": "agency_reversal"})
    [recovery] = office.client.get("/recoveries").json()["data"]
    assert (recovery["payee_name"], recovery["to_recover"], recovery["to_repay"]) == ("Harbour Plans", FEE, FEE)
    assert office.take().status_code == 400
    for kind in ("provider_refund", "repaid_to_agency"):
        office.client.create(f"/invoices/{id_}/adjustments", body | {"kind": kind})
    assert office.client.get("/recoveries").json()["data"] == []
    figures = reconcile(office)
    assert (figures["fees"], figures["refunded"], figures["repaid"], figures["closing"]) == (FEE, FEE, FEE, 0)


def test_a_day_in_the_future_is_an_error(office: FeeOffice) -> None:
    paid_fees(office)
    [error] = office.take(taken_on="2099-01-01").json()["errors"]
    assert (error["field"], error["code"]) == ("taken_on", "too_large")


def test_either_invoices_or_all_are_taken(office: FeeOffice) -> None:
    for body in ({}, {"all": True, "invoice_ids": [office.own_provider]}):
        [error] = office.client.post("/fee-takings", body).json()["errors"]
        assert (error["field"], error["code"]) == ("invoice_ids", "inconsistent")
    [error] = office.take(office.own_provider).json()["errors"]
    assert (error["field"], error["code"]) == ("invoice_ids[0]", "not_found")


def test_the_export_of_a_person_has_what_was_taken(office: FeeOffice) -> None:
    [invoice] = paid_fees(office)
    assert office.take().status_code == 201
    participant = UUID(office.read(invoice)["participant_id"])
    work = person_export.export_person(office.server.db, office.plan_manager_id, participant)
    found = json.loads(person_export.to_document(office.server.run(work)))
    [line] = found["fee_taking_lines"]
    assert (line["invoice_id"], line["amount"]) == (invoice, FEE)
