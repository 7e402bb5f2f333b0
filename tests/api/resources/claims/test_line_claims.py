"""Results by hand, claims that were made elsewhere, rests, receipts, adjustments and recoveries over the API."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from support.claims import Office, set_office
from support.client import Client
from support.importing import import_records
from support.list_parameters import check_list
from support.results import SubmittedBatch
from support.server import RunningServer
from support.webhooks import wait_for_events


@pytest.fixture
def office(server: RunningServer, api: Client) -> Office:
    return Office(server, api)


@pytest.fixture
def batch(office: Office) -> SubmittedBatch:
    """A batch with two claims of 290.99, of one invoice."""
    return SubmittedBatch(office, office.invoice("A1", office.line(), office.line(service_date_from="2026-01-14")))


def act(batch: SubmittedBatch, index: int, action: str, **body: Any) -> Any:
    claim = batch.claims[index]
    return batch.client.post(f"/invoices/{claim['invoice_id']}/lines/{claim['line_id']}/{action}", body)


def adjust(batch: SubmittedBatch, kind: str, amount: float, day: str = "2026-11-01", **more: Any) -> Any:
    claim = batch.claims[0]
    body = {"line_id": claim["line_id"], "kind": kind, "amount": amount, "date": day} | more
    return batch.client.post(f"/invoices/{claim['invoice_id']}/adjustments", body)


def error_of(response: Any) -> tuple[int, str]:
    body = response.json()
    return response.status_code, body["errors"][0]["field"] if "errors" in body else body["error"]


INSERT_PAYMENT = """
    with run as (
        insert into payment_runs (plan_manager_id, id, number, state, process_date, group_by, header, account,
            total, payment_count, created_at, created_by)
        values (
            $1, gen_random_uuid(), 'P000001', 'paid', '2026-10-01', 'payee', '{}', '', $3::float8, 1, now(), 'Robin'
        )
        returning id
    ), payment as (
        insert into payments (plan_manager_id, id, run_id, position, payee_kind, payee_id, payee_name, account,
            account_ending, account_title, reference, amount, state, created_at, updated_at)
        select $1, gen_random_uuid(), id, 1, 'provider', gen_random_uuid(), 'X', '', '1', 'X', 'R', $3::float8, 'paid',
            now(), now()
        from run
        returning id
    )
    insert into payment_lines (plan_manager_id, payment_id, claim_id, invoice_id, line_id, amount, is_open)
    select $1, payment.id, claims.id, invoice_id, line_id, $3::float8, true
    from payment, claims where plan_manager_id = $1 and claims.id = $2
"""


def insert_payment(batch: SubmittedBatch, amount: float) -> None:
    """A payment of the first claim, of a run that is paid."""
    claim, place = batch.claims[0], batch.office.plan_manager_id
    batch.office.execute(INSERT_PAYMENT, place, UUID(claim["id"]), amount)
    statement = "update invoice_lines set has_payment = true where plan_manager_id = $1 and id = $2"
    batch.office.execute(statement, place, UUID(claim["line_id"]))


def pay_out(batch: SubmittedBatch) -> None:
    """Pay out the first line, as a payment run does."""
    claim = batch.claims[0]
    insert_payment(batch, claim["amount"])
    statement = "update invoice_lines set claim_status = 'paid' where plan_manager_id = $1 and id = $2"
    batch.office.execute(statement, batch.office.plan_manager_id, UUID(claim["line_id"]))


def test_results_are_recorded_by_hand(batch: SubmittedBatch) -> None:
    for body, field in (
        ({"outcome": "paid"}, "amount"),
        ({"outcome": "paid", "amount": 291}, "amount"),
        ({"outcome": "paid", "amount": 0}, "amount"),
        ({"outcome": "rejected", "amount": 5}, "amount"),
        ({"outcome": "paid", "amount": 5, "date": "2999-01-01"}, "date"),
    ):
        assert error_of(act(batch, 0, "claim-result", **body)) == (400, field)
    paid = act(batch, 0, "claim-result", outcome="paid", amount=290.99, reference="77", date="2026-11-02").json()
    assert [each["claim_status"] for each in paid["line_items"]] == ["payment_ready", "pending"]
    assert (paid["line_items"][0]["claim_number"], batch.state()) == ("77", "part_processed")
    claim = batch.read_claims()[0]
    assert (claim["state"], claim["paid"], claim["result_date"]) == ("paid", 290.99, "2026-11-02")
    assert error_of(act(batch, 0, "claim-result", outcome="rejected")) == (409, "invalid_transition")
    reason = "Not in the plan. " * 500
    act(batch, 1, "claim-result", outcome="rejected", reason=reason)
    assert (batch.line(1)["rejection_reason"], batch.state()) == (reason, "processed")


@pytest.mark.parametrize("needs_receipts", [False, True])
def test_a_wrong_result_is_replaced_and_its_money_counted_once(batch: SubmittedBatch, *, needs_receipts: bool) -> None:
    day = "2026-11-02"
    set_office(batch.office.server, batch.client, needs_receipts=needs_receipts)
    batch.client.create(f"/claim-batches/{batch.id}/receipts", {"date": day, "amount": 290.99})
    result = {"outcome": "paid", "date": day}
    act(batch, 0, "claim-result", **result, amount=29.99, reason="Price limit").raise_for_status()
    act(batch, 1, "claim-result", outcome="rejected", date=day, reason="Twice").raise_for_status()
    right = act(batch, 0, "claim-result", **result, amount=290.99, replaces_result=True).json()["line_items"][0]
    assert (right["claim_status"], right["paid_amount"]) == ("payment_ready", 290.99)
    assert (right["open_claim_batch"], right["claim_batch_ref"], batch.state()) == (None, batch.number, "processed")
    claim = batch.read_claims()[0]
    assert (claim["state"], claim["paid"], claim["reason"], claim["result_date"]) == ("paid", 290.99, None, day)
    found = batch.client.get("/reconciliation", **{"from": day, "to": day}).json()
    assert (found["received"], found["closing"]) == (290.99, 290.99)
    assert [(each["line_id"], each["amount"]) for each in found["lines"]] == [(right["id"], 290.99)]
    changes = [
        (each["previous"]["line_items"][0]["paid_amount"], each["data"]["line_items"][0]["paid_amount"])
        for each in wait_for_events(batch.client, "invoice.line_changed", 6)[-2:]
    ]
    assert changes == [(29.99, None), (None, 290.99)]


@pytest.mark.parametrize(
    "first, second, status",
    [
        ({"outcome": "rejected", "reason": "C11"}, {"outcome": "paid", "amount": 200}, "partially_ready"),
        ({"outcome": "paid", "amount": 200}, {"outcome": "rejected", "reason": "C11"}, "rejected"),
        ({"outcome": "paid", "amount": 290.99}, {"outcome": "cancelled"}, "new"),
    ],
)
def test_a_result_is_replaced_by_any_other(
    batch: SubmittedBatch, first: dict[str, Any], second: dict[str, Any], status: str
) -> None:
    act(batch, 0, "claim-result", **first).raise_for_status()
    line = act(batch, 0, "claim-result", **second, replaces_result=True).json()["line_items"][0]
    assert (line["claim_status"], line["rejection_reason"]) == (status, second.get("reason"))
    assert line["paid_amount"] == second.get("amount", None if status == "new" else 0)


def test_the_number_of_a_wrong_result_is_replaced(batch: SubmittedBatch) -> None:
    act(batch, 0, "claim-result", outcome="rejected", reference="71").raise_for_status()
    act(batch, 0, "retry").raise_for_status()
    again = SubmittedBatch(batch.office, *batch.invoices)
    result = {"outcome": "paid", "amount": 290.99}
    act(again, 0, "claim-result", **result, reference="99").raise_for_status()
    for number, expected in ((None, ("71", None)), ("72", ("72", "72")), (None, ("71", None))):
        body = result | {"replaces_result": True} | ({"reference": number} if number else {})
        act(again, 0, "claim-result", **body).raise_for_status()
        assert (again.line(0)["claim_number"], again.read_claims()[0]["agency_number"]) == expected


def test_a_result_from_which_something_has_followed_is_not_replaced(batch: SubmittedBatch) -> None:
    def replace(index: int = 0) -> tuple[int, str]:
        return error_of(act(batch, index, "claim-result", outcome="paid", amount=5, replaces_result=True))

    assert replace() == (409, "invalid_transition")  # there is none
    batch.apply(batch.paid(0, 200), batch.rejected(1))
    place = batch.office.plan_manager_id
    statement = "update invoice_lines set open_payment_run = $2 where plan_manager_id = $1"
    batch.office.execute(statement, place, "P000001")
    assert replace() == (409, "invoice_locked")
    batch.office.execute(statement, place, None)
    insert_payment(batch, 200)
    assert replace() == (409, "invalid_transition")
    batch.office.execute("update payment_lines set is_open = false where plan_manager_id = $1", place)
    adjust(batch, "agency_reversal", 10).raise_for_status()
    assert replace() == (409, "invalid_transition")
    act(batch, 1, "retry").raise_for_status()
    assert replace(1) == (409, "invalid_transition")
    assert [each["paid"] for each in batch.read_claims()] == [200, 0]


def test_a_rejection_of_a_line_that_was_corrected_is_not_replaced(batch: SubmittedBatch, office: Office) -> None:
    batch.apply(batch.rejected(0), batch.rejected(1))
    path = f"/invoices/{batch.claims[0]['invoice_id']}"
    other = {"pm_provider_id": office.provider_with(entity_name="Birch Care", abn="53004085616")}
    changed = office.client.put(path, other).json()
    assert [each["claim_status"] for each in changed["line_items"]] == ["new", "new"]
    response = act(batch, 0, "claim-result", outcome="paid", amount=5, replaces_result=True)
    assert error_of(response) == (409, "invalid_transition")


def test_a_rejection_of_a_line_with_another_amount_is_not_replaced(office: Office) -> None:
    line = office.line(gst_code="P1", total_price=100, quantity=1, unit_price=100)
    set_office(office.server, office.client, prices_include_gst=False)
    batch = SubmittedBatch(office, office.invoice("A1", line, tax=10, total=110))
    batch.apply(batch.rejected(0))
    path = f"/invoices/{batch.claims[0]['invoice_id']}"
    office.client.put(path, {"tax": 10.01, "total": 110.01}).raise_for_status()
    assert (batch.line(0)["claim_status"], batch.line(0)["amount"]) == ("rejected", 110.01)
    response = act(batch, 0, "claim-result", outcome="paid", amount=110, replaces_result=True)
    assert error_of(response) == (409, "invalid_transition")


def test_the_wrong_result_of_a_rest_is_replaced(batch: SubmittedBatch) -> None:
    batch.apply(batch.paid(0, 200), batch.paid(1))
    insert_payment(batch, 200)
    statement = "update invoice_lines set claim_status = 'partially_paid' where plan_manager_id = $1 and id = $2"
    batch.office.execute(statement, batch.office.plan_manager_id, UUID(batch.claims[0]["line_id"]))
    act(batch, 0, "claim-rest").raise_for_status()
    rest = SubmittedBatch(batch.office, *batch.invoices)
    rest.apply(rest.rejected(0))
    assert rest.line(0)["claim_status"] == "partially_paid"
    line = act(rest, 0, "claim-result", outcome="paid", amount=90.99, replaces_result=True).json()["line_items"][0]
    assert (line["claim_status"], line["paid_amount"], rest.state()) == ("payment_ready", 290.99, "processed")


def test_a_claim_is_cancelled_in_the_portal_and_its_late_result_holds_the_invoice(batch: SubmittedBatch) -> None:
    act(batch, 0, "claim-result", outcome="cancelled", reason="Wrong item")
    line = batch.line(0)
    assert (line["claim_status"], line["open_claim_batch"], line["claim_batch_ref"]) == ("new", None, None)
    assert batch.state() == "submitted"
    result = batch.apply(batch.paid(0), batch.paid(1))
    assert (result["state"], result["paid"]) == ("processed", 1)
    assert (
        "was cancelled, but the agency has paid $290.99. Its invoice is on hold." in result["unmatched"][0]["message"]
    )
    assert batch.office.read(batch.invoices[0])["held_at"] is not None
    assert batch.line(1)["claim_status"] == "payment_ready"


def test_a_batch_whose_claims_have_all_ended_is_processed(batch: SubmittedBatch) -> None:
    for index in (0, 1):
        act(batch, index, "claim-result", outcome="cancelled")
    assert batch.state() == "processed"


def test_lines_are_claimed_elsewhere_and_get_a_result(office: Office) -> None:
    invoice = office.invoice("E1", office.line(), office.line(service_date_from="2026-01-14"))
    path = f"/invoices/{invoice['id']}"
    assert error_of(
        office.client.post(f"{path}/claimed-elsewhere", {"reference": "P", "line_ids": [str(uuid7())]})
    ) == (
        400,
        "line_ids[0]",
    )
    claimed = office.client.post(f"{path}/claimed-elsewhere", {"reference": "PORTAL-1"}).json()
    assert [(each["claim_status"], each["claim_batch_ref"]) for each in claimed["line_items"]] == [
        ("pending", "PORTAL-1")
    ] * 2
    assert error_of(office.client.post(f"{path}/claimed-elsewhere", {"reference": "P"})) == (409, "invalid_transition")
    line = f"{path}/lines/{claimed['line_items'][0]['id']}"
    paid = office.client.post(f"{line}/claim-result", {"outcome": "paid", "amount": 290.99}).json()
    assert paid["line_items"][0]["claim_status"] == "payment_ready"
    types = [each["type"] for each in wait_for_events(office.client, "invoice.*", 3)]
    assert types == ["invoice.created", "invoice.claimed_elsewhere", "invoice.line_changed"]


def test_the_rest_of_a_line_is_claimed_again(batch: SubmittedBatch) -> None:
    batch.apply(batch.paid(0, 200), batch.paid(1))
    assert error_of(act(batch, 0, "claim-rest")) == (409, "invalid_transition")
    batch.office.execute(
        "update invoice_lines set claim_status = 'partially_paid', has_payment = true"
        " where plan_manager_id = $1 and id = $2",
        batch.office.plan_manager_id,
        UUID(batch.claims[0]["line_id"]),
    )
    rest = act(batch, 0, "claim-rest").json()["line_items"][0]
    assert (rest["claim_status"], rest["is_rest_waiting"]) == ("partially_paid", True)
    again = SubmittedBatch(batch.office, *batch.invoices)
    assert [(each["amount"], each["is_rest"]) for each in again.claims] == [(90.99, True)]
    act(again, 0, "claim-result", outcome="cancelled")
    assert (again.line(0)["claim_status"], again.line(0)["is_rest_waiting"]) == ("partially_paid", True)
    third = SubmittedBatch(batch.office, *batch.invoices)
    third.apply(third.paid(0))
    assert (third.line(0)["claim_status"], third.line(0)["paid_amount"]) == ("payment_ready", 290.99)


def test_a_line_imported_as_pending_gets_a_result(office: Office) -> None:
    line_id, invoice_id = str(uuid7()), str(uuid7())
    row = office.values("I1", office.line(id=line_id, claim_status="pending"), id=invoice_id, claim_status="pending")
    assert not office.server.run(import_records(office.server, office.plan_manager_id, "invoices", [row])).errors
    path = f"/invoices/{invoice_id}/lines/{line_id}/claim-result"
    paid = office.client.post(path, {"outcome": "paid", "amount": 200}).json()
    assert (paid["line_items"][0]["claim_status"], paid["line_items"][0]["paid_amount"]) == ("partially_ready", 200)


def test_receipts_of_a_batch(batch: SubmittedBatch) -> None:
    path = f"/claim-batches/{batch.id}/receipts"
    first = batch.client.create(path, {"date": "2026-11-02", "amount": 500.5, "reference": "NDIA 1"})
    second = batch.client.create(path, {"date": "2026-11-03", "amount": -0.5})
    assert batch.client.get(path).json()["data"] == [first, second]
    check_list(batch.client, path)
    assert (first["amount"], first["reference"], first["created_by"]) == (500.5, "NDIA 1", "test")
    for body in ({"date": "2026-11-02", "amount": 0}, {"date": "2026-11-02", "amount": -501}):
        assert error_of(batch.client.post(path, body)) == (400, "amount")
    assert error_of(batch.client.post(path, {"date": "2999-11-02", "amount": 1})) == (400, "date")
    draft = batch.office.batch(batch.office.invoice("D1"))
    body = {"date": "2026-11-02", "amount": 1}
    assert error_of(batch.client.post(f"/claim-batches/{draft['id']}/receipts", body)) == (409, "invalid_transition")
    [event, _] = [each for each in wait_for_events(batch.client, "claim_batch.*", 5) if "receipt" in each["type"]]
    assert event["data"]["receipt"] == first


def test_receipts_of_a_cancelled_batch_are_corrected(batch: SubmittedBatch) -> None:
    path, day = f"/claim-batches/{batch.id}/receipts", "2026-11-02"
    set_office(batch.office.server, batch.client, needs_receipts=True)
    batch.client.create(path, {"date": day, "amount": 500})
    batch.client.post(f"/claim-batches/{batch.id}/cancel", {"uploaded": False, "reason": "Wrong"}).raise_for_status()
    assert error_of(batch.client.post(path, {"date": day, "amount": 1})) == (409, "invalid_transition")
    assert error_of(batch.client.post(path, {"date": day, "amount": -501})) == (400, "amount")
    correction = batch.client.create(path, {"date": day, "amount": -500, "reference": "Of another batch"})
    assert batch.client.get(path).json()["data"][1] == correction
    closing = batch.client.get("/reconciliation", **{"from": day, "to": day}).json()["closing"]
    assert closing == 0


def test_a_reversal_lowers_what_the_agency_has_paid(batch: SubmittedBatch) -> None:
    assert error_of(adjust(batch, "agency_reversal", 10)) == (400, "amount")
    batch.apply(batch.paid(0))
    assert error_of(adjust(batch, "agency_reversal", 291)) == (400, "amount")
    assert error_of(adjust(batch, "agency_reversal", 10, "2999-01-01")) == (400, "date")
    part = adjust(batch, "agency_reversal", 90.99, reason="Too much").json()
    assert (batch.line(0)["claim_status"], batch.line(0)["paid_amount"]) == ("partially_ready", 200)
    adjust(batch, "agency_reversal", 200)
    line = batch.line(0)
    assert (line["claim_status"], line["paid_amount"]) == ("rejected", 0)
    assert line["rejection_reason"] == "The agency has reversed its payment."
    data = batch.client.get(f"/invoices/{batch.claims[0]['invoice_id']}/adjustments").json()["data"]
    assert (data[0], len(data)) == (part, 2)
    check_list(batch.client, f"/invoices/{batch.claims[0]['invoice_id']}/adjustments")
    adjusted = [each for each in wait_for_events(batch.client, "invoice.*", 6) if each["type"] == "invoice.adjusted"]
    assert adjusted[0]["data"]["adjustment"] == part
    assert batch.client.get("/recoveries").json()["data"] == []


def test_a_line_in_a_draft_run_cannot_be_reversed(batch: SubmittedBatch) -> None:
    batch.apply(batch.paid(0))
    statement = "update invoice_lines set open_payment_run = 'P000001' where plan_manager_id = $1 and id = $2"
    batch.office.execute(statement, batch.office.plan_manager_id, UUID(batch.claims[0]["line_id"]))
    assert error_of(adjust(batch, "agency_reversal", 10)) == (409, "invoice_locked")


def test_money_that_was_paid_out_is_recovered(batch: SubmittedBatch) -> None:
    batch.apply(batch.paid(0))
    assert error_of(adjust(batch, "provider_refund", 10)) == (400, "amount")
    pay_out(batch)
    adjust(batch, "agency_reversal", 90.99, "2026-10-05")
    assert (batch.line(0)["claim_status"], batch.line(0)["paid_amount"]) == ("paid", 200)
    [found] = batch.client.get("/recoveries").json()["data"]
    assert (found["payee_name"], found["since"]) == ("Amber Physio", "2026-10-05")
    assert (found["to_recover"], found["to_repay"]) == (90.99, 90.99)
    adjust(batch, "provider_refund", 90.99)
    [found] = batch.client.get("/recoveries").json()["data"]
    assert (found["to_recover"], found["refunded"], found["to_repay"]) == (0, 90.99, 90.99)
    adjust(batch, "repaid_to_agency", 90.99)
    assert batch.client.get("/recoveries").json()["pagination"]["total"] == 0


def test_a_reversal_of_the_whole_rest_leaves_nothing_due(batch: SubmittedBatch) -> None:
    """The payee has the first part, so the line is partially paid and its rest can be claimed again."""
    batch.apply(batch.paid(0))
    claim, place = batch.claims[0], batch.office.plan_manager_id
    batch.office.execute(
        "update claims set paid = 200, state = 'partially_paid' where plan_manager_id = $1 and id = $2",
        place, UUID(claim["id"]),
    )  # fmt: skip
    insert = """
        insert into claims (plan_manager_id, id, invoice_id, line_id, source, reference, is_rest, amount, state, paid,
            result_date, created_at, updated_at)
        select $1, gen_random_uuid(), invoice_id, line_id, 'elsewhere', 'R2', true, 90.99, 'paid', 90.99, result_date,
            created_at, updated_at
        from claims where plan_manager_id = $1 and id = $2
    """
    batch.office.execute(insert, place, UUID(claim["id"]))
    insert_payment(batch, 200)
    assert batch.line(0)["claim_status"] == "payment_ready"
    adjust(batch, "agency_reversal", 40).raise_for_status()
    assert batch.line(0)["claim_status"] == "partially_ready"  # 50.99 are due
    adjust(batch, "agency_reversal", 50.99).raise_for_status()
    assert (batch.line(0)["claim_status"], batch.line(0)["paid_amount"]) == ("partially_paid", 200)
    assert batch.client.get("/recoveries").json()["data"] == []  # nothing of it was paid out
    adjust(batch, "agency_reversal", 30).raise_for_status()
    [found] = batch.client.get("/recoveries").json()["data"]
    assert (found["reversed"], found["to_recover"], found["to_repay"]) == (120.99, 30, 30)
    act(batch, 0, "claim-rest").raise_for_status()
    rest = SubmittedBatch(batch.office, batch.invoices[0])
    assert rest.claims[0]["amount"] == 120.99
    rest.apply(rest.paid(0))  # the agency pays it again, and still gets back what it took
    [found] = batch.client.get("/recoveries").json()["data"]
    assert (found["to_recover"], found["to_repay"]) == (0, 30)
    adjust(batch, "repaid_to_agency", 30).raise_for_status()
    assert batch.client.get("/recoveries").json()["data"] == []


def test_money_of_an_imported_line_is_recovered_while_its_rest_is_pending(office: Office) -> None:
    """The line was imported as paid in part, so its payee has the part."""
    line = office.line(id=str(uuid7()), claim_status="partially_paid", paid_amount=100)
    row = office.values("A9", line, id=str(uuid7()), claim_status="partially_paid")
    assert not office.server.run(import_records(office.server, office.plan_manager_id, "invoices", [row])).errors
    place = f"/invoices/{row['id']}"
    office.client.post(f"{place}/lines/{line['id']}/claim-rest", {}).raise_for_status()
    batch = SubmittedBatch(office, {"id": row["id"]})
    invoice = office.client.get(place).json()
    assert (invoice["claim_status"], invoice["line_items"][0]["claim_status"]) == ("partially_paid", "pending")
    adjust(batch, "agency_reversal", 40).raise_for_status()
    [found] = office.client.get("/recoveries").json()["data"]
    assert (found["to_recover"], found["to_repay"]) == (40, 40)
    batch.apply(batch.rejected(0))
    assert office.client.get(place).json()["line_items"][0]["claim_status"] == "partially_paid"
    [found] = office.client.get("/recoveries").json()["data"]
    assert (found["to_recover"], found["to_repay"]) == (40, 40)


def test_each_kind_of_adjustment_requires_its_scope(batch: SubmittedBatch, new_client: Any) -> None:
    batch.apply(batch.paid(0))
    pay_out(batch)
    place = batch.office.plan_manager_id
    kinds = {"claims": "agency_reversal", "payments": "provider_refund"}
    for scope, kind in kinds.items():
        client = new_client(place, scopes=(scope,))
        for other in kinds.values():
            body = {"line_id": batch.claims[0]["line_id"], "kind": other, "amount": 1, "date": "2026-11-01"}
            response = client.post(f"/invoices/{batch.claims[0]['invoice_id']}/adjustments", body)
            assert response.status_code == (201 if other == kind else 403)


def test_two_answers_at_once_are_one(batch: SubmittedBatch) -> None:
    with ThreadPoolExecutor(4) as pool:
        found = [*pool.map(lambda amount: act(batch, 0, "claim-result", outcome="paid", amount=amount), (10, 20, 30))]
    assert sorted(each.status_code for each in found) == [200, 409, 409]
    assert batch.line(0)["paid_amount"] == batch.read_claims()[0]["paid"]
