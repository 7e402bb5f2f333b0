"""Claims and money of single lines in the console: results by hand, rests, imported amounts, reversals, recoveries."""

import asyncio
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from uuid_utils.compat import uuid7

from support.claims import Office
from support.console import Browser, main_text
from support.form_helpers import form_fields, require_linked_errors, submit_form
from support.importing import import_records
from support.locks import wait_for_locks
from support.results import SubmittedBatch
from support.server import RunningServer

TODAY = "15/1/2026"


def line_path(invoice: dict[str, Any], office: Office, index: int = 0) -> str:
    line = office.read(invoice)["line_items"][index]
    return f"/console/invoices/{invoice['id']}/lines/{line['id']}"


def status(office: Office, invoice: dict[str, Any]) -> str:
    return office.read(invoice)["line_items"][0]["claim_status"]


@pytest.fixture
def pending(office: Office) -> dict[str, Any]:
    """An invoice with a pending line of 290.99."""
    invoice = office.invoice("A1")
    SubmittedBatch(office, invoice)
    return invoice


def paid_out(office: Office, amount: float = 290.99) -> dict[str, Any]:
    """An invoice that was imported as paid."""
    row = office.values("P1", office.line(claim_status="paid", paid_amount=amount), id=str(uuid7()))
    report = office.server.run(import_records(office.server, office.plan_manager_id, "invoices", [row]))
    assert not report.errors, report.errors
    return row


def test_a_result_is_recorded_by_hand(office: Office, owner: Browser, pending: dict[str, Any]) -> None:
    path = line_path(pending, office)
    page = main_text(owner.get(f"{path}/claim").text)
    assert "Claimed, and not decided yet. Next: record the results of its batch" in page
    assert "Record result" in page
    form = {"outcome": "paid", "amount": "200", "date": TODAY, "reference": "900000123", "reason": "Price limit"}
    assert owner.submit(f"{path}/claim-result", form).headers["location"] == f"{path}/claim"
    assert status(office, pending) == "partially_ready"
    text = main_text(owner.get(f"{path}/claim").text)
    assert "A1 · 900000123" in text
    assert "Next: pay that part in a payment run. Afterwards, you can claim the rest." in text
    assert "Paid by the agency $200.00" in text
    assert "Price limit" in text
    assert owner.submit(f"{path}/claim-result", form).status_code == 409


def test_a_rejected_line_is_claimed_again(office: Office, owner: Browser, pending: dict[str, Any]) -> None:
    path = line_path(pending, office)
    owner.submit(f"{path}/claim-result", {"outcome": "rejected", "date": TODAY, "reason": "Wrong item"})
    page = owner.get(f"{path}/claim").text
    assert "Next: correct the line, or claim it again as it is." in main_text(page)
    assert f'href="/console/invoices/{pending["id"]}/edit"' in page
    assert owner.submit(f"{path}/retry").status_code == 303
    assert status(office, pending) == "new"
    assert "Claim again" not in owner.get(f"{path}/claim").text


def elsewhere_form(browser: Browser, invoice: dict[str, Any], **values: Any) -> tuple[str, dict[str, Any]]:
    """The path of the form, and its fields as they are shown, with other values."""
    path = f"/console/invoices/{invoice['id']}/claimed-elsewhere"
    return path, form_fields(browser, path) | values


def test_a_wrong_result_is_replaced(office: Office, owner: Browser, pending: dict[str, Any]) -> None:
    path = line_path(pending, office)
    assert "Replace the result" not in owner.get(f"{path}/claim").text
    form = {"outcome": "paid", "amount": "29.99", "date": "14/1/2026", "reference": "77"}
    assert owner.submit(f"{path}/claim-result", form).status_code == 303
    assert f'href="{path}/claim-result">Replace the result</a>' in owner.get(f"{path}/claim").text
    page = owner.get(f"{path}/claim-result").text
    assert "The result of this line is recorded: paid in part, $29.99. Replace it only if" in main_text(page)
    fields = form_fields(owner, f"{path}/claim-result")
    assert (fields["date"], fields["reference"]) == (["14 Jan 2026"], ["77"])
    late = form_fields(owner, f"{path}/claim-result") | {"outcome": "paid", "amount": "280"}
    assert submit_form(owner, f"{path}/claim-result", form | {"amount": "290.99"}).status_code == 303
    assert status(office, pending) == "payment_ready"
    text = main_text(owner.get(f"{path}/claim").text)
    assert "Paid by the agency $290.99 Paid out $0.00" in text
    response = owner.submit(f"{path}/claim-result", late)  # of a colleague who has seen the wrong result
    assert response.status_code == 409
    assert "Another result was recorded in the meantime: look at it" in main_text(response.text)
    assert "is recorded: paid, $290.99." in main_text(response.text)
    assert 'value="280"' in response.text


def test_of_two_replacements_at_once_the_second_has_not_seen_the_first(
    server: RunningServer, office: Office, owner: Browser, pending: dict[str, Any]
) -> None:
    path = line_path(pending, office) + "/claim-result"
    assert owner.submit(path, {"outcome": "paid", "amount": "29.99", "date": TODAY}).status_code == 303
    form = form_fields(owner, path) | {"outcome": "paid"}

    async def replace_twice() -> list[int]:
        async with server.db.transaction() as tx:
            await tx.execute("select from invoices where plan_manager_id = $1 for update", office.plan_manager_id)
            submitted = [
                asyncio.create_task(asyncio.to_thread(owner.submit, path, form | {"amount": each}))
                for each in ("80", "90")
            ]
            await wait_for_locks(tx, *submitted, count=2)
        return sorted([(await each).status_code for each in submitted])

    assert server.run(replace_twice()) == [303, 409]


def test_a_result_whose_money_has_moved_is_not_replaced(
    office: Office, owner: Browser, pending: dict[str, Any]
) -> None:
    path = line_path(pending, office)
    assert owner.submit(f"{path}/claim-result", {"outcome": "paid", "amount": "200", "date": TODAY}).status_code == 303
    form = form_fields(owner, f"{path}/claim-result") | {"outcome": "paid", "amount": "290.99"}
    assert submit_form(owner, f"{path}/reversal", {"amount": "50", "date": TODAY}).status_code == 303
    response = owner.submit(f"{path}/claim-result", form)
    message = "The result of line 1 can't be replaced: its money was paid out or adjusted"
    assert (response.status_code, message in main_text(response.text)) == (409, True)
    assert "Replace the result" not in owner.get(f"{path}/claim").text


@pytest.mark.parametrize(
    "values, name",
    [
        ({"outcome": ""}, "outcome"),
        ({"amount": "much"}, "amount"),
        ({"amount": ""}, "amount"),
        ({"amount": "291"}, "amount"),
        ({"date": "31 Feb 2026"}, "date"),
        ({"date": "1/1/2999"}, "date"),
        ({"reason": "x" * 10_001}, "reason"),
    ],
)
def test_an_invalid_result_names_its_field(
    office: Office, owner: Browser, pending: dict[str, Any], values: dict[str, str], name: str
) -> None:
    form = {"outcome": "paid", "amount": "200", "date": TODAY} | values
    response = owner.submit(f"{line_path(pending, office)}/claim-result", form)
    assert response.status_code == 422
    assert f'href="#{name}"' in response.text
    assert status(office, pending) == "pending"


def test_the_rest_of_a_line_is_claimed(office: Office, owner: Browser) -> None:
    row = office.values("R1", office.line(claim_status="partially_paid", paid_amount=100), id=str(uuid7()))
    report = office.server.run(import_records(office.server, office.plan_manager_id, "invoices", [row]))
    assert not report.errors, report.errors
    path = line_path(row, office)
    assert owner.submit(f"{path}/claim-rest").status_code == 303
    assert "The rest of this line goes into the next claim batch." in main_text(owner.get(f"{path}/claim").text)
    assert owner.submit(f"{path}/claim-rest").status_code == 409


def test_an_imported_amount_is_confirmed_once(office: Office, manager: Callable[..., Browser]) -> None:
    row = office.values("I1", office.line(claim_status="payment_ready", paid_amount=290.99), id=str(uuid7()))
    report = office.server.run(import_records(office.server, office.plan_manager_id, "invoices", [row]))
    assert not report.errors, report.errors
    path = line_path(row, office)
    claimer, payer = manager("make_claims"), manager("make_payments")
    assert "Confirm the amount" not in claimer.get(f"{path}/claim").text
    assert claimer.submit(f"{path}/confirm-result").status_code == 403
    assert "Confirm the amount" in payer.get(f"{path}/claim").text
    assert payer.submit(f"{path}/confirm-result").status_code == 303
    assert "Amount confirmed." in main_text(payer.get(f"{path}/claim").text)
    assert payer.submit(f"{path}/confirm-result").status_code == 409


def test_a_reversal_is_recovered_and_settled(office: Office, manager: Callable[..., Browser]) -> None:
    invoice = paid_out(office)
    path, browser = line_path(invoice, office), manager("make_claims", "make_payments")
    assert "There is nothing to recover." in main_text(browser.get("/console/recoveries").text)
    form = {"amount": "50", "date": TODAY, "reason": "Claimed twice"}
    assert submit_form(browser, f"{path}/reversal", form).headers["location"] == f"{path}/claim"
    page = browser.get("/console/recoveries").text
    assert "Amber Physio provider P1 15 Jan 2026 $50.00 $50.00 $50.00" in main_text(page)
    assert f'href="{path}/refund?kind=provider_refund&amp;amount=50.00"' in page
    assert 'value="50.00"' in browser.get(f"{path}/refund?kind=provider_refund&amount=50.00").text
    for kind in ("provider_refund", "repaid_to_agency"):
        assert submit_form(browser, f"{path}/refund", {"kind": kind, "amount": "50", "date": TODAY}).status_code == 303
    assert "There is nothing to recover." in main_text(browser.get("/console/recoveries").text)
    text = main_text(browser.get(f"{path}/claim").text)
    assert "Taken back by the agency Claimed twice 15 Jan 2026 $50.00" in text
    assert "Returned by the payee" in text


@pytest.mark.parametrize(
    "action, kind, words",
    [
        ("reversal", None, "taken back by the agency"),
        ("refund", "provider_refund", "returned by the payee"),
        ("refund", "repaid_to_agency", "returned to the agency"),
    ],
)
def test_a_double_click_records_an_adjustment_once(
    office: Office, owner: Browser, action: str, kind: str | None, words: str
) -> None:
    path = line_path(paid_out(office), office)
    values = {"amount": "50", "date": TODAY, "reason": "Claimed twice"} | ({"kind": kind} if kind else {})
    form = form_fields(owner, f"{path}/{action}") | values
    with ThreadPoolExecutor(2) as threads:
        saved, late = sorted(
            threads.map(lambda _: owner.submit(f"{path}/{action}", form), range(2)), key=lambda each: each.status_code
        )
    assert (saved.status_code, late.status_code) == (303, 409)
    message = f"Somebody has just recorded money for this line. It now has: $50.00 {words}. Record yours only if"
    assert message in main_text(late.text)
    assert ('value="50"' in late.text, 'value="Claimed twice"' in late.text) == (True, True)
    assert main_text(owner.get(f"{path}/claim").text).count("15 Jan 2026 $50.00") == 1
    second = submit_form(owner, f"{path}/{action}", values)  # it has happened twice
    assert second.status_code == 303
    assert main_text(owner.get(f"{path}/claim").text).count("15 Jan 2026 $50.00") == 2


def test_an_adjustment_of_an_unknown_line_is_not_found(office: Office, owner: Browser) -> None:
    invoice = office.invoice("A1")
    form = {"amount": "50", "date": TODAY}
    assert owner.submit(f"/console/invoices/{invoice['id']}/lines/{uuid7()}/reversal", form).status_code == 404
    assert owner.submit(f"/console/invoices/{uuid7()}/lines/{uuid7()}/reversal", form).status_code == 404


def test_an_invalid_adjustment_names_its_field(office: Office, owner: Browser) -> None:
    path = line_path(paid_out(office), office)
    for action, values, name in (
        ("reversal", {"amount": "300", "date": TODAY}, "amount"),
        ("reversal", {"amount": "", "date": TODAY}, "amount"),
        ("reversal", {"amount": "3", "date": "x"}, "date"),
        ("refund", {"amount": "3", "date": TODAY, "kind": ""}, "kind"),
        ("refund", {"amount": "3", "date": TODAY, "kind": "agency_reversal"}, "kind"),
    ):
        response = submit_form(owner, f"{path}/{action}", values)
        assert response.status_code == 422
        assert f'href="#{name}"' in response.text


def test_each_permission_records_its_part(office: Office, manager: Callable[..., Browser]) -> None:
    path = line_path(paid_out(office), office)
    claimer, payer, nobody = manager("make_claims"), manager("make_payments"), manager("override_blocks")
    statuses = {
        name: [each.get(f"{path}/{name}").status_code for each in (claimer, payer, nobody)]
        for name in ("claim", "claim-result", "reversal", "refund")
    }
    assert statuses == {
        "claim": [200, 200, 200],
        "claim-result": [200, 403, 403],
        "reversal": [200, 403, 403],
        "refund": [403, 200, 403],
    }
    assert [each.get("/console/recoveries").status_code for each in (claimer, payer, nobody)] == [403, 200, 403]
    assert "Record a reversal" not in nobody.get(f"{path}/claim").text


def test_an_invoice_is_recorded_as_claimed_elsewhere(office: Office, owner: Browser) -> None:
    """Its only line needs no choice."""
    invoice = office.invoice("A1")
    path, form = elsewhere_form(owner, invoice)
    page = owner.get(path).text
    assert "Line 1: Physiotherapy, 15 Jan 2026, $290.99" in main_text(page)
    assert 'type="hidden" name="line_ids"' in page
    assert 'href="#reference"' in owner.submit(path, form | {"reference": " "}).text
    assert owner.submit(path, form | {"reference": "PORTAL-17"}).status_code == 303
    assert "Recorded as claimed elsewhere: 1 line is pending." in owner.get(f"/console/invoices/{invoice['id']}").text
    assert status(office, invoice) == "pending"
    assert owner.submit(path, form | {"reference": "PORTAL-17"}).status_code == 409
    assert "No line of this invoice can be recorded as claimed elsewhere." in main_text(owner.get(path).text)


def test_the_lines_that_were_claimed_elsewhere_are_chosen(office: Office, owner: Browser) -> None:
    days = ("2026-01-12", "2026-01-13", "2026-01-14")
    invoice = office.invoice("A1", *(office.line(service_date_from=each, service_date_to=each) for each in days))
    first, second, third = (each["id"] for each in invoice["line_items"])
    path, form = elsewhere_form(owner, invoice, reference="PORTAL-17")
    assert form["line_ids"] == [first, second, third]
    without_lines = owner.submit(path, {"reference": "PORTAL-17"})
    assert without_lines.status_code == 422
    assert require_linked_errors(without_lines.text) == ["line_ids"]
    assert main_text(without_lines.text).count("Choose at least one line.") == 2  # in the summary, and at the field
    assert 'value="PORTAL-17"' in without_lines.text
    assert " checked" not in without_lines.text.partition("</main>")[0]
    kept = owner.submit(path, {"line_ids": [second]})
    assert require_linked_errors(kept.text) == ["reference"]
    assert re.findall(r'name="line_ids" value="([^"]+)" checked', kept.text) == [second]
    assert owner.submit(path, form | {"line_ids": [first, third]}).status_code == 303
    lines = office.read(invoice)["line_items"]
    assert [(each["claim_status"], each["claim_batch_ref"]) for each in lines] == [
        ("pending", "PORTAL-17"), ("new", None), ("pending", "PORTAL-17")
    ]  # fmt: skip
    assert form_fields(owner, path)["line_ids"] == [second]


def test_the_page_of_an_invoice_leads_to_claimed_elsewhere_while_a_line_can_be_claimed(
    office: Office, owner: Browser
) -> None:
    """Whatever the state of the invoice: here, other lines are claimed, paid or in a draft."""
    claimed = office.invoice("A1", office.line(), office.line(service_date_from="2026-01-14"))
    path, form = elsewhere_form(owner, claimed, reference="PORTAL-17")
    statuses = ("paid", "new")
    mixed = office.values(
        "P1", *(office.line(claim_status=each, id=str(uuid7())) for each in statuses), id=str(uuid7())
    )
    mixed["line_items"][0]["paid_amount"] = 290.99
    office.import_rows("invoices", mixed)
    without_price = office.invoice("N1", office.line(quantity=None, unit_price=None, total_price=0))
    drafted = office.invoice("D1")
    office.batch(drafted)

    def is_linked(invoice: dict[str, Any]) -> bool:
        page = owner.get(f"/console/invoices/{invoice['id']}").text
        return f'href="/console/invoices/{invoice["id"]}/claimed-elsewhere"' in page

    assert [is_linked(each) for each in (claimed, mixed, without_price, drafted)] == [True, True, False, False]
    owner.submit(path, form | {"line_ids": form["line_ids"][:1]})
    assert (office.read(claimed)["claim_status"], is_linked(claimed)) == ("pending", True)
    owner.submit(path, form | {"line_ids": form["line_ids"][1:]})
    assert not is_linked(claimed)


def test_a_line_of_an_invoice_that_was_imported_as_paid_is_not_claimed(office: Office, owner: Browser) -> None:
    row = office.values("P1", id=str(uuid7()), claim_status="paid")
    report = office.server.run(import_records(office.server, office.plan_manager_id, "invoices", [row]))
    assert not report.errors, report.errors
    expected = "Its invoice was imported as paid, so the line isn’t claimed."
    assert expected in main_text(owner.get(f"{line_path(row, office)}/claim").text)
    assert "There is nothing to claim" in main_text(owner.get("/console/claims/new").text)


def test_an_unknown_line_is_not_found(office: Office, owner: Browser) -> None:
    invoice = office.invoice("A1")
    for name in ("claim", "claim-result", "reversal", "refund"):
        assert owner.get(f"/console/invoices/{invoice['id']}/lines/{uuid7()}/{name}").status_code == 404


def test_the_page_of_an_invoice_leads_to_its_lines(office: Office, manager: Callable[..., Browser]) -> None:
    invoice = office.invoice("A1")
    link = f'href="{line_path(invoice, office)}/claim"'
    for permissions, is_shown in ((("make_claims",), True), (("make_payments",), True), (("override_blocks",), False)):
        assert (link in manager(*permissions).get(f"/console/invoices/{invoice['id']}").text) is is_shown
