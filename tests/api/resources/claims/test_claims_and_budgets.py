"""The numbers of a budget with rests, partial payments and reversals."""

from typing import Any
from uuid import UUID

from uuid_utils.compat import uuid7

from support.claims import Office
from support.client import Client
from support.results import SubmittedBatch
from support.server import RunningServer


def test_numbers_follow_claims_and_reversals(server: RunningServer, api: Client) -> None:
    office = Office(server, api)
    plans = f"/participants/{office.participant}/plans"
    component = {"name": "Therapy", "kind": "stated", "categories": [15], "amount": 1000}
    api.create(plans, {"start_date": "2026-01-01", "end_date": "2026-12-31", "components": [component]})

    def numbers(day: str = "2026-11-20") -> tuple[Any, ...]:
        [found] = api.get(plans, on=day).json()["data"][0]["components"]
        assert round(1000 - found["paid"] - found["pending"] - found["waiting"], 2) == found["available"]
        return found["paid"], found["pending"], found["waiting"]

    def adjust(amount: float, day: str) -> None:
        body = {"line_id": batch.claims[0]["line_id"], "kind": "agency_reversal", "amount": amount, "date": day}
        api.create(f"/invoices/{batch.claims[0]['invoice_id']}/adjustments", body)

    invoice = office.invoice("A1")
    assert numbers() == (0, 0, 290.99)
    batch = SubmittedBatch(office, invoice)
    assert numbers() == (0, 290.99, 0)
    batch.apply(batch.paid(0, 200))
    assert numbers() == (200, 0, 0)
    statement = (
        "update invoice_lines set claim_status = 'partially_paid', has_payment = true where plan_manager_id = $1"
    )
    office.execute(statement + " and id = $2", office.plan_manager_id, UUID(batch.claims[0]["line_id"]))
    path = f"/invoices/{invoice['id']}/lines/{batch.claims[0]['line_id']}/claim-rest"
    api.create(path, None)
    assert numbers() == (200, 0, 90.99)
    rest = SubmittedBatch(office, invoice)
    assert numbers() == (200, 90.99, 0)
    adjust(50, "2026-10-01")
    assert (numbers(), numbers("2026-09-30")) == ((150, 90.99, 0), (200, 90.99, 0))
    rest.apply(rest.paid(0))
    assert rest.line(0)["claim_status"] == "partially_ready"
    assert numbers() == (240.99, 0, 0)
    assert numbers("2026-09-30") == (290.99, 0, 0)


def test_a_rest_that_waits_counts_for_the_other_lines_of_its_invoice(server: RunningServer, api: Client) -> None:
    office = Office(server, api)
    component = {"name": "Therapy", "kind": "stated", "categories": [15], "amount": 90}
    plan = {"start_date": "2026-01-01", "end_date": "2026-12-31", "components": [component]}
    api.create(f"/participants/{office.participant}/plans", plan)
    id_, part_paid = str(uuid7()), {"claim_status": "partially_paid", "paid_amount": 40}
    first = office.line(id=str(uuid7()), quantity=1, unit_price=100, total_price=100, **part_paid)
    second = office.line(id=str(uuid7()), quantity=1, unit_price=30, total_price=30)
    office.import_rows("invoices", office.values("A1", first, second, id=id_))

    def warned(description: str) -> list[tuple[Any, ...]]:
        lines = [{"id": first["id"]}, {"id": second["id"], "description": description}]
        api.put(f"/invoices/{id_}", {"line_items": lines}).raise_for_status()
        found = api.get(f"/invoices/{id_}", include="warnings").json()["warnings"]
        return [(each["line_id"], each["expected"], each["found"]) for each in found if each["code"] == "check_budget"]

    assert warned("Massage") == []
    api.create(f"/invoices/{id_}/lines/{first['id']}/claim-rest", None)
    assert warned("Stretching") == [(first["id"], 50, 60), (second["id"], -10, 30)]
