"""Imported amounts are confirmed together, with the rules of a single one."""

import re
from typing import Any

from uuid_utils.compat import uuid7

from support.console import Browser, main_text
from support.payments import PayingOffice

PAGE = "/console/payments/unconfirmed"


def import_ready(office: PayingOffice, number: str, *amounts: float) -> dict[str, Any]:
    """An invoice that was imported as ready for payment."""
    lines = [
        {"id": str(uuid7()), "total_price": each, "paid_amount": each, "claim_status": "payment_ready"}
        for each in amounts
    ]
    row = {
        "id": str(uuid7()), "invoice_number": number, "pm_provider_id": office.provider,
        "participant_id": office.participant, "line_items": lines,
    }  # fmt: skip
    office.import_rows("invoices", row)
    return row


def keys(page: str) -> list[str]:
    return re.findall(r'name="shown" value="([^"]+)"', page)


def events(office: PayingOffice, invoice: dict[str, Any]) -> int:
    """The number of changes of its lines."""
    statement = "select count(*) from events where plan_manager_id = $1 and resource_id = $2 and type = $3"
    values = (office.plan_manager_id, invoice["id"], "invoice.line_changed")
    return office.server.run(office.server.db.one(int, statement, *values))


def test_selected_amounts_and_those_of_the_page_are_confirmed(office: PayingOffice, payer: Browser) -> None:
    first, second = import_ready(office, "A1", 5, 6), import_ready(office, "A2", 7)
    new = payer.get("/console/payments/new").text
    assert f'href="{PAGE}">Confirm the amounts' in new
    page = payer.get(PAGE).text
    assert "A1 line 2 Robin Hale Amber Physio — $6.00" in main_text(page)
    assert len(keys(page)) == 3
    nothing = payer.submit(PAGE, {})
    assert (nothing.status_code, "Select the lines" in main_text(nothing.text)) == (422, True)
    [chosen] = [each for each in keys(page) if each.startswith(second["id"])]
    assert payer.submit(PAGE, {"line": chosen}).headers["location"] == PAGE
    text = main_text(payer.get(PAGE).text)
    assert ("1 amount confirmed." in text, "A2" in text) == (True, False)
    form = {"all": "true", "shown": keys(payer.get(PAGE).text)}
    assert payer.submit(PAGE, form).status_code == 303
    text = main_text(payer.get(PAGE).text)
    assert "2 amounts confirmed." in text
    assert "No imported amount waits for a confirmation." in text
    assert "$18.00 to 1 payee" in main_text(payer.get("/console/payments/new").text)
    assert (events(office, first), events(office, second)) == (2, 1)


def test_a_line_that_cannot_be_confirmed_keeps_no_other_back(office: PayingOffice, payer: Browser) -> None:
    import_ready(office, "A1", 5)
    other = import_ready(office, "A2", 7)
    form = {"all": "true", "shown": keys(payer.get(PAGE).text)}
    line = other["line_items"][0]["id"]
    assert payer.submit(f"/console/invoices/{other['id']}/lines/{line}/confirm-result").status_code == 303
    assert payer.submit(PAGE, form).status_code == 303
    text = main_text(payer.get(PAGE).text)
    assert "1 amount confirmed. 1 not confirmed: Line 1 has a claim, so its result is known." in text
