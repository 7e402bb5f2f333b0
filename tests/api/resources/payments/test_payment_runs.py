"""Payment runs over HTTP: what they pay, what they leave out, their file, and their end."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest

from support.client import Client
from support.payments import PROCESS_DATE, PayingOffice
from support.webhooks import wait_for_events

RETURN = {"date": "2026-10-17", "reference": "RTN-1", "reason": "Closed account"}


def statuses(invoice: dict[str, Any]) -> list[str]:
    return [invoice["claim_status"], *(each["claim_status"] for each in invoice["line_items"])]


def money(invoice: dict[str, Any]) -> list[tuple[str | None, bool, str | None]]:
    return [(each["open_payment_run"], each["has_payment"], each["payment_ref"]) for each in invoice["line_items"]]


def reasons(run: dict[str, Any]) -> dict[str, str]:
    return {each["invoice_id"]: each["reason"] for each in run["left_out"]}


def test_a_run_pays_what_the_agency_has_paid(office: PayingOffice) -> None:
    first, second = office.invoice("233.17", "40.50"), office.invoice("10.00", number="INV-77")
    lines = office.line_ids(first)
    today = datetime.now(UTC).date()
    monday = str(today + timedelta(days=7 - today.weekday()))  # neither past nor on a weekend: without warnings
    run = office.run(process_date=monday)
    expected = {
        "number": "P000001", "state": "draft", "process_date": monday, "group_by": "payee", "total": 283.67,
        "payments": 1, "returned": 0, "warnings": [], "left_out": [], "left_out_count": 0, "created_by": "test",
        "downloaded_at": None, "downloaded_by": None, "paid_on": None, "paid_at": None, "paid_by": None,
        "cancelled_at": None, "cancelled_by": None, "cancel_reason": None,
    }  # fmt: skip
    assert {name: run[name] for name in expected} == expected
    assert set(run) == set(expected) | {"id", "created_at", "updated_at"}
    [payment] = office.payments(run)
    assert payment["payee"] == {"kind": "provider", "id": office.provider, "name": "Amber Physio"}
    assert (payment["amount"], payment["state"], payment["reference"]) == (283.67, "draft", "P000001-0001")
    paid = {(each["invoice_id"], each["line_id"], each["amount"]) for each in payment["lines"]}
    assert paid == {(first, lines[0], 233.17), (first, lines[1], 40.5), (second, office.line_ids(second)[0], 10)}
    assert money(office.read(first)) == [("P000001", True, None)] * 2
    assert statuses(office.read(first)) == ["payment_ready"] * 3
    assert office.client.get(f"/payment-runs/{run['id']}").json() == run
    listed = {name: value for name, value in run.items() if name not in ("warnings", "left_out")}
    assert office.client.get("/payment-runs", state="draft").json()["data"] == [listed]
    assert office.client.get("/payment-runs", state="paid").json()["data"] == []


def test_lines_of_two_invoices_that_have_the_same_id_are_both_paid(office: PayingOffice) -> None:
    line_id, amounts = str(uuid4()), {"I1": "1.00", "I2": "2.00"}
    invoices = {number: str(uuid4()) for number in amounts}
    lines = {"id": line_id, "claim_status": "payment_ready"}
    office.import_rows("invoices", *(
        {
            "id": invoices[number], "invoice_number": number, "pm_provider_id": office.provider,
            "participant_id": office.participant, "claim_status": "payment_ready",
            "line_items": [lines | {"total_price": float(amount)}],
        }
        for number, amount in amounts.items()
    ))  # fmt: skip
    office.insert_claims([(invoices[number], line_id, Decimal(amount)) for number, amount in amounts.items()])
    run = office.run()
    assert (run["total"], run["left_out"]) == (3, [])
    assert office.act(run, "mark-paid").json()["state"] == "paid"


def test_a_run_by_invoice_has_a_payment_for_each(office: PayingOffice) -> None:
    first, second = office.invoice("1.00", "2.00", number="2026/442"), office.invoice("3.00", number="A…")
    run = office.run(first, second, group_by="invoice")
    assert (run["payments"], run["group_by"]) == (2, "invoice")
    paid = {(each["reference"], each["amount"]) for each in office.payments(run)}
    assert paid == {("2026/442", 3), ("A...", 3)}
    office.set(group_payments_by="invoice")
    assert office.post(office.invoice("1.00"), dry_run=True).json()["group_by"] == "invoice"


def test_a_reimbursement_is_paid_to_the_participant(office: PayingOffice) -> None:
    run = office.run(office.invoice("25.00", is_reimbursement=True))
    [payment] = office.payments(run)
    assert payment["payee"] == {"kind": "participant", "id": office.participant, "name": "Robin Hale"}


def test_a_dry_run_stores_nothing(office: PayingOffice) -> None:
    invoice = office.invoice("5.00")
    response = office.post(invoice, dry_run=True)
    assert (response.status_code, "location" in response.headers) == (200, False)
    run = response.json()
    assert (run["id"], run["number"], run["payments"], run["total"]) == (None, None, 1, 5)
    assert office.client.get("/payment-runs").json()["data"] == []
    assert money(office.read(invoice)) == [(None, False, None)]
    empty = office.post(office.invoice(number="empty"), dry_run=True).json()
    assert (empty["payments"], empty["total"], empty["left_out"]) == (0, 0, [])


def test_a_run_without_a_payment_is_an_error(office: PayingOffice) -> None:
    held = office.invoice("5.00")
    office.client.post(f"/invoices/{held}/hold", {"reason": "Wait"}).raise_for_status()
    response = office.post()
    assert response.status_code == 400
    expected = "has no line that can be paid. Lines are left out for these reasons: held (1)"
    assert [(each["field"], each["message"]) for each in response.json()["errors"]] == [("all", expected)]
    office.client.post(f"/invoices/{held}/release", {}).raise_for_status()
    assert office.run()["number"] == "P000001"


@pytest.mark.parametrize(
    "body, field, code",
    [
        ({}, "invoice_ids", "inconsistent"),
        ({"all": True, "invoice_ids": [str(uuid4())]}, "invoice_ids", "inconsistent"),
        ({"invoice_ids": [str(uuid4())]}, "invoice_ids[0]", "not_found"),
        ({"invoice_ids": []}, "invoice_ids", "too_short"),
    ],
)
def test_a_run_names_invoices_or_all(office: PayingOffice, body: dict[str, Any], field: str, code: str) -> None:
    response = office.client.post("/payment-runs", {"process_date": PROCESS_DATE} | body)
    assert response.status_code == 400
    assert [(each["field"], each["code"]) for each in response.json()["errors"]] == [(field, code)]


def test_the_invoice_of_another_plan_manager_is_not_found(office: PayingOffice, other: Client) -> None:
    invoice = other.create("/invoices", {"invoice_number": "A"})["id"]
    response = office.post(office.invoice("1.00"), invoice)
    assert [(each["field"], each["code"]) for each in response.json()["errors"]] == [("invoice_ids[1]", "not_found")]


def test_missing_settings_are_named(office: PayingOffice) -> None:
    invoice = office.invoice("5.00")
    office.set(remitter=None, bank_bsb=None)
    office.set_own_account(None)
    response = office.post(invoice, dry_run=True)
    assert response.status_code == 400
    assert [each["field"] for each in response.json()["errors"]] == ["bank_bsb", "bank_account", "remitter"]
    assert "/console/settings/claims-and-payments" in response.json()["detail"]


def test_lines_are_left_out_with_a_reason(office: PayingOffice) -> None:
    deceased = office.participant_with("Kim", "Late", deceased_on="2026-11-01")
    no_details, waiting = str(uuid4()), office.provider_with("Waiting")
    office.import_rows("providers", {"id": no_details, "entity_name": "New"})
    own = office.provider_with("Harbour", abn="11 123 456 780")
    office.set(abn="11123456780")
    office.propose(waiting)
    invoices = {
        "not_ready": office.invoice("1.00", status="paid"),
        "held": office.invoice("1.00"),
        "own_fee": office.invoice("1.00", pm_provider_id=own),
        "payee_missing": office.invoice("1.00", pm_provider_id=str(uuid4())),
        "estate": office.invoice("1.00", participant_id=deceased, is_reimbursement=True),
        "no_bank_details": office.invoice("1.00", pm_provider_id=no_details),
        "bank_details_waiting": office.invoice("1.00", pm_provider_id=waiting),
    }
    office.client.post(f"/invoices/{invoices['held']}/hold", {"reason": "Wait"}).raise_for_status()
    line = {"id": str(uuid4()), "total_price": 1, "paid_amount": 1, "claim_status": "payment_ready"}
    imported = {"id": str(uuid4()), "pm_provider_id": office.provider, "line_items": [line]}
    office.import_rows("invoices", imported | {"claim_status": "payment_ready"})
    invoices["no_result"] = imported["id"]
    in_run = office.invoice("1.00")
    office.run(in_run)
    invoices["in_payment_run"] = in_run
    response = office.post(*invoices.values(), office.invoice("2.00"), dry_run=True).json()
    assert reasons(response) == {id_: reason for reason, id_ in invoices.items()}
    assert (response["payments"], response["left_out_count"]) == (1, len(invoices))
    # With `all`, lines that aren't ready, or are in a draft, aren't mentioned.
    assert set(reasons(office.post(dry_run=True).json()).values()) == set(invoices) - {"not_ready", "in_payment_run"}


def test_a_line_whose_money_has_not_arrived_waits_if_the_office_wants_so(office: PayingOffice) -> None:
    invoice = office.invoice("30.00")
    batch = str(uuid4())
    statement = """
        insert into claim_batches (plan_manager_id, id, number, state, total, lines, created_at)
        values ($1, $2::text::uuid, 'B000001', 'processed', 30, 1, '2026-10-01')
    """
    office.execute(statement, office.plan_manager_id, batch)
    statement = "update claims set batch_id = $2::text::uuid, source = 'batch', position = 1 where plan_manager_id = $1"
    office.execute(statement, office.plan_manager_id, batch)
    assert office.post(dry_run=True).json()["payments"] == 1
    office.set(needs_receipts=True)
    assert reasons(office.post(dry_run=True).json()) == {invoice: "waiting_for_receipt"}
    statement = """
        insert into claim_receipts (plan_manager_id, id, batch_id, date, amount, created_at)
        values ($1, gen_random_uuid(), $2::text::uuid, '2026-10-02', 30, '2026-10-02')
    """
    office.execute(statement, office.plan_manager_id, batch)
    assert office.post(dry_run=True).json()["payments"] == 1


def test_a_full_file_leaves_the_rest_for_the_next_run(office: PayingOffice) -> None:
    invoices = sorted(office.invoice("1.00", number=each) for each in "123")
    office.set(max_payments_in_file=3, has_balancing_record=True)
    run = office.run(*invoices, group_by="invoice")
    assert (run["payments"], reasons(run)) == (2, {invoices[2]: "batch_full"})
    following = office.run(group_by="invoice")
    assert (following["number"], following["payments"], following["left_out"]) == ("P000002", 1, [])


def test_the_preview_says_what_differs_in_the_file(office: PayingOffice) -> None:
    cafe = office.provider_with("Café", account_name="A very long name of an account, " * 2)
    office.set(direct_entry_user_name="Büro")
    run = office.post(office.invoice("1.00", pm_provider_id=cafe), dry_run=True, process_date="2026-11-21").json()
    codes = ["process_date_past", "process_date_weekend", "text_changed", "text_changed"]
    assert [each["code"] for each in run["warnings"]] == codes
    assert run["warnings"][2]["message"] == "“Büro” is “Buro” in the file."


def test_the_file_is_always_the_same(office: PayingOffice) -> None:
    run = office.run(office.invoice("233.17"))
    response = office.download(run)
    assert response.headers["content-type"] == "text/plain; charset=us-ascii"
    assert response.headers["content-disposition"] == 'attachment; filename="P000001.aba"'
    header, credit, total, end = response.content.decode("ascii").split("\r\n")
    assert (header[:23], header[74:80], end) == ("0" + " " * 17 + "01BQL", "151026", "")
    assert (credit[20:30], credit[30:42], credit[80:96]) == ("0000023317", "Amber Physio", "999-002 87654321")
    assert total[20:50] == "000002331700000233170000000000"
    office.set(direct_entry_user_name="Another name", has_balancing_record=True)
    office.set_own_account("111")
    office.set_account("provider", office.provider, "Another name")
    office.import_rows("providers", {"id": office.provider, "entity_name": "Another name"})
    assert office.download(run).content == response.content
    office.act(run, "mark-paid").raise_for_status()
    assert office.download(run).content == response.content


def test_the_first_download_is_recorded(office: PayingOffice) -> None:
    run = office.run(office.invoice("1.00"))
    office.download(run).raise_for_status()
    first = office.client.get(f"/payment-runs/{run['id']}").json()
    assert (first["downloaded_by"], first["downloaded_at"] is not None) == ("test", True)
    office.download(run).raise_for_status()
    assert office.client.get(f"/payment-runs/{run['id']}").json() == first
    events = wait_for_events(office.client, "payment_run.*", 2)
    assert [each["type"] for each in events] == ["payment_run.created", "payment_run.downloaded"]
    assert "87654321" not in str(events)


@pytest.mark.parametrize("action", ["download", "mark-paid"])
@pytest.mark.parametrize("change", ["held", "proposed", "approved", "reversed", "deceased"])
def test_a_run_that_is_outdated_is_neither_downloaded_nor_paid(office: PayingOffice, action: str, change: str) -> None:
    invoice = office.invoice("30.00", is_reimbursement=change == "deceased")
    run = office.run(invoice)
    if change == "held":
        office.client.post(f"/invoices/{invoice}/hold", {"reason": "Wait"}).raise_for_status()
    elif change == "proposed":
        office.propose(office.provider)
    elif change == "approved":
        office.set_account("provider", office.provider, "Somebody Else")
    elif change == "deceased":
        office.import_rows("participants", {"id": office.participant, "deceased_on": "2026-11-01"})
    else:
        statement = """
            insert into adjustments (plan_manager_id, id, invoice_id, line_id, kind, amount, date, created_at)
            select $1, gen_random_uuid(), invoice_id, line_id, 'agency_reversal', 5, '2026-10-02', '2026-10-02'
            from claims where plan_manager_id = $1
        """
        office.execute(statement, office.plan_manager_id)
    response = office.download(run) if action == "download" else office.act(run, action)
    assert (response.status_code, response.json()["error"]) == (409, "run_outdated")
    named = office.provider if change in ("proposed", "approved") else invoice
    assert named in response.json()["detail"]
    assert office.client.get(f"/payment-runs/{run['id']}").json()["downloaded_at"] is None
    assert office.act(run, "cancel").json()["state"] == "cancelled"


def test_after_a_download_a_run_is_paid_without_another_check(office: PayingOffice) -> None:
    invoice = office.invoice("30.00")
    run = office.run(invoice)
    office.download(run).raise_for_status()
    office.client.post(f"/invoices/{invoice}/hold", {"reason": "Too late"}).raise_for_status()
    paid = office.act(run, "mark-paid", paid_on="2026-10-16").json()
    assert (paid["state"], paid["paid_on"], paid["paid_by"]) == ("paid", "2026-10-16", "test")


def test_a_paid_run_moves_its_lines(office: PayingOffice) -> None:
    invoice, other = office.invoice("30.00", "5.00"), office.invoice("20.00", status="partially_ready")
    run = office.run()
    paid = office.act(run, "mark-paid").json()
    assert (paid["state"], paid["paid_on"], paid["left_out"]) == ("paid", PROCESS_DATE, [])
    assert statuses(office.read(invoice)) == ["paid"] * 3
    assert statuses(office.read(other)) == ["partially_paid"] * 2
    assert money(office.read(invoice)) == [(None, True, "P000001-0001")] * 2
    assert [each["state"] for each in office.payments(run)] == ["paid"]
    again = office.act(run, "mark-paid")
    assert (again.status_code, again.json()["error"]) == (409, "invalid_transition")
    assert again.json()["detail"] == "The payment run is paid, so it can't be marked as paid."
    assert office.act(run, "cancel").json()["error"] == "invalid_transition"
    assert office.post(dry_run=True).json()["payments"] == 0


def test_the_bank_has_not_paid_or_returned_in_the_future(office: PayingOffice) -> None:
    tomorrow = str(datetime.now(UTC).date() + timedelta(days=2))  # in all time zones
    run = office.run(office.invoice("30.00"), process_date=tomorrow)
    for body, code in (({}, "required"), ({"paid_on": tomorrow}, "too_large")):
        response = office.act(run, "mark-paid", **body)
        assert response.status_code == 400
        assert [(each["field"], each["code"]) for each in response.json()["errors"]] == [("paid_on", code)]
    office.act(run, "mark-paid", paid_on="2026-10-15").raise_for_status()
    [payment] = office.payments(run)
    path = f"/payment-runs/{run['id']}/payments/{payment['id']}/returned"
    response = office.client.post(path, RETURN | {"date": tomorrow})
    assert response.status_code == 400
    assert [(each["field"], each["code"]) for each in response.json()["errors"]] == [("date", "too_large")]


def test_a_cancelled_run_frees_its_lines(office: PayingOffice) -> None:
    invoice = office.invoice("30.00")
    run = office.run(invoice)
    cancelled = office.act(run, "cancel").json()
    assert (cancelled["state"], cancelled["cancelled_by"], cancelled["cancel_reason"]) == ("cancelled", "test", None)
    assert money(office.read(invoice)) == [(None, False, None)]
    assert [each["state"] for each in office.payments(run)] == ["cancelled"]
    assert office.download(run).json()["error"] == "invalid_transition"
    assert office.run(invoice)["number"] == "P000002"


def test_after_a_download_a_cancellation_needs_a_reason(office: PayingOffice) -> None:
    run = office.run(office.invoice("30.00"))
    office.download(run).raise_for_status()
    response = office.act(run, "cancel", reason="Wrong date")
    assert (response.status_code, [each["field"] for each in response.json()["errors"]]) == (400, ["not_sent_to_bank"])
    assert office.act(run, "cancel", not_sent_to_bank=False, reason="Wrong").status_code == 400
    assert [each["field"] for each in office.act(run, "cancel").json()["errors"]] == ["not_sent_to_bank", "reason"]
    cancelled = office.act(run, "cancel", not_sent_to_bank=True, reason="Wrong date").json()
    assert (cancelled["state"], cancelled["cancel_reason"]) == ("cancelled", "Wrong date")


def test_a_returned_payment_is_due_again_once_the_details_are_approved(office: PayingOffice) -> None:
    invoice = office.invoice("30.00")
    run = office.run(invoice)
    [payment] = office.payments(run)
    path = f"/payment-runs/{run['id']}/payments/{payment['id']}/returned"
    assert office.client.post(path, RETURN).json()["error"] == "invalid_transition"
    office.act(run, "mark-paid").raise_for_status()
    early = office.client.post(path, RETURN | {"date": "2026-10-14"})
    assert (early.status_code, early.json()["errors"][0]) == (400, {
        "field": "date", "message": "must not be before 15 Oct 2026, the day on which the bank has paid",
        "code": "too_small", "in": "body",
    })  # fmt: skip
    returned = office.client.post(path, RETURN).json()
    expected = {
        "state": "returned", "returned_on": "2026-10-17", "return_reference": "RTN-1",
        "return_reason": "Closed account", "returned_by": "test", "amount": 30,
    }  # fmt: skip
    assert {name: returned[name] for name in expected} == expected
    assert statuses(office.read(invoice)) == ["payment_ready"] * 2
    assert money(office.read(invoice)) == [(None, False, None)]
    assert office.client.get(f"/payment-runs/{run['id']}").json()["returned"] == 1
    again = office.client.post(path, RETURN)
    assert (again.status_code, again.json()["error"]) == (409, "invalid_transition")
    assert set(reasons(office.post(dry_run=True).json()).values()) == {"bank_details_need_approval"}
    office.set_account("provider", office.provider, "Amber Physio")
    assert office.run()["total"] == 30
    types = [each["type"] for each in wait_for_events(office.client, "payment_run.*", 4)]
    assert types == [f"payment_run.{each}" for each in ("created", "paid", "payment_returned", "created")]


def test_the_rest_of_a_line_is_paid_in_another_run(office: PayingOffice) -> None:
    invoice = office.invoice("20.00", status="partially_ready")
    first = office.run(invoice)
    office.act(first, "mark-paid").raise_for_status()
    [line] = office.line_ids(invoice)
    statement = "update invoice_lines set claim_status = 'payment_ready', paid_amount = 30 where plan_manager_id = $1"
    office.insert_claims([(invoice, line, Decimal("10.00"))])
    office.execute(statement, office.plan_manager_id)
    second = office.run(invoice)
    assert second["total"] == 10
    office.act(second, "cancel").raise_for_status()
    assert money(office.read(invoice)) == [(None, True, "P000001-0001")]
    third = office.run(invoice)
    office.act(third, "mark-paid").raise_for_status()
    assert money(office.read(invoice)) == [(None, True, "P000003-0001")]
    [payment] = office.payments(third)
    office.client.post(f"/payment-runs/{third['id']}/payments/{payment['id']}/returned", RETURN).raise_for_status()
    assert money(office.read(invoice)) == [(None, True, "P000001-0001")]


def test_unknown_runs_and_payments_are_not_found(office: PayingOffice) -> None:
    run = office.run(office.invoice("1.00"))
    for path in ("", "/payments", "/file"):
        assert office.client.get(f"/payment-runs/{uuid4()}{path}").status_code == 404
    for path in ("mark-paid", "cancel", f"payments/{uuid4()}/returned"):
        body = RETURN if path.endswith("returned") else {}
        assert office.client.post(f"/payment-runs/{uuid4()}/{path}", body).status_code == 404
    assert office.client.post(f"/payment-runs/{run['id']}/payments/{uuid4()}/returned", RETURN).status_code == 404


def test_another_scope_is_not_enough(office: PayingOffice, new_client: Callable[..., Client]) -> None:
    client = new_client(office.plan_manager_id, scopes=("read", "write", "claims"))
    assert client.get("/payment-runs").json()["error"] == "insufficient_scope"
