"""The list of payment runs, and a new run: what it would pay and leave out, and making it."""

import re
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from support.console import Browser, main_text
from support.payments import PayingOffice

NEW, LIST = "/console/payments/new", "/console/payments"
DAY = "2026-10-15"


def make_form(page: str) -> dict[str, str]:
    """The hidden fields of the form that makes the run."""
    [form] = re.findall(r'<form method="post" action="/console/payments">(.*?)</form>', page, re.DOTALL)
    fields = dict(re.findall(r'name="(\w+)" value="([^"]*)"', form))
    del fields["csrf"]
    return fields


def preview(browser: Browser, **values: str) -> Any:
    return browser.get(NEW, params={"process_date": DAY} | values)


def make(browser: Browser, **values: str) -> str:
    """The path of a new run."""
    response = browser.submit(LIST, make_form(preview(browser, **values).text))
    assert response.status_code == 303, response.text
    return response.headers["location"]


def test_the_empty_list_says_what_to_do(office: PayingOffice, payer: Browser) -> None:
    assert office
    text = main_text(payer.get(LIST).text)
    assert "There are no payment runs yet. When the agency has paid claims, make a run" in text
    assert text.endswith("Make a payment run")
    assert "Nothing can be paid. A line is ready when the agency has paid its claim." in main_text(preview(payer).text)


def test_a_run_is_previewed_made_and_listed(office: PayingOffice, payer: Browser) -> None:
    office.invoice("40.00", "60.50")
    office.invoice("9.50", pm_provider_id=office.provider_with("Café Blau Pty Ltd", "Café Blau"), number="B1")
    office.invoice("5.00", is_reimbursement=True, number="R1")
    page = preview(payer).text
    text = main_text(page)
    assert "$115.00 to 3 payees" in text
    assert "Café Blau Pty Ltd In the bank’s file: Cafe Blau" in text
    assert "“Café Blau” is “Cafe Blau” in the file." in text
    assert re.search(r"Amber Physio … \d{3} 2 lines \$100\.50", text)
    assert re.search(r"Robin Hale … \d{3} 1 line \$5\.00", text)
    assert "Nothing that is ready to be paid is left out." in text
    path = make(payer)
    text = main_text(payer.get(path).text)
    assert "Payment run P000001 · $115.00 Draft 3 payments, one for each payee Process date 15 Oct 2026" in text
    assert "P000001-0001" in text
    listed = main_text(payer.get(LIST).text)
    assert re.search(r"P000001 Draft 15 Oct 2026 3 \$115\.00 Robin Hale", listed)
    assert "P000001" not in main_text(payer.get(f"{LIST}?state=paid").text)
    assert "P000001,Draft,2026-10-15,3,115.00" in payer.get(f"{LIST}.csv").text


def test_a_run_by_invoice_has_a_payment_for_each(office: PayingOffice, payer: Browser) -> None:
    office.invoice("1.00", number="A1")
    office.invoice("2.00", number="A2")
    assert "$3.00 to 1 payee" in main_text(preview(payer).text)
    assert "$3.00 to 2 payments" in main_text(preview(payer, group_by="invoice").text)
    assert "2 payments, one for each invoice" in main_text(payer.get(make(payer, group_by="invoice")).text)


def test_left_out_lines_have_their_reason_and_a_link(office: PayingOffice, payer: Browser) -> None:
    office.invoice("7.00")
    held = office.invoice("8.00", number="HELD")
    office.client.post(f"/invoices/{held}/hold", {"reason": "A question"}).raise_for_status()
    poor = office.client.create("/providers", {"entity_name": "No Account Pty Ltd"})["id"]
    office.invoice("1.00", "2.00", number="POOR", pm_provider_id=poor)
    waiting = office.provider_with("Waiting Pty Ltd")
    office.propose(waiting)
    office.invoice("3.00", number="WAITS", pm_provider_id=waiting)
    page = preview(payer).text
    text = main_text(page)
    assert "$7.00 to 1 payee" in text
    assert "Left out 4 lines" in text
    assert "The payee has no bank details. 2 lines · $3.00 No Account Pty Ltd 2 lines $3.00" in text
    assert re.search(r"The invoice is on hold. 1 line · \$8.00 .* HELD line 1 Robin Hale Amber Physio \$8.00", text)
    assert "A change of the payee's bank details waits for approval. 1 line" in text
    text = main_text(preview(payer, reason="held").text)
    assert ("Show all groups" in text, "HELD line 1" in text, "No Account" in text) == (True, True, False)
    for path in (f"providers/{poor}", f"providers/{waiting}", f"invoices/{held}", "bank-details"):
        assert f'href="/console/{path}"' in page
    run = payer.get(make(payer)).text
    assert "Left out 4 lines" in main_text(run)


def test_the_lines_of_each_payment_are_listed(office: PayingOffice, payer: Browser) -> None:
    office.invoice("40.00", "60.50", number="A1")
    office.invoice("2.00", number="A2")
    other = office.provider_with("Blue Nursing")
    office.invoice("9.50", number="B1", pm_provider_id=other)
    lines = f"{NEW}/lines"
    text = main_text(payer.get(lines, params={"process_date": DAY, "group_by": "payee"}).text)
    assert "A1 line 1 Robin Hale — Amber Physio $40.00" in text
    assert "B1 line 1 Robin Hale — Blue Nursing $9.50" in text
    links = re.findall(rf'href="({lines}[^"]*payment=[^"]*)"', preview(payer).text)
    text = main_text(payer.get(links[0].replace("&amp;", "&")).text)
    assert ("Lines that are paid to Amber Physio $102.50." in text, "B1" in text) == (True, False)
    links = re.findall(rf'href="({lines}[^"]*payment=[^"]*)"', preview(payer, group_by="invoice").text)
    assert len(links) == 3
    text = main_text(payer.get(links[1].replace("&amp;", "&")).text)
    assert ("A2 line 1" in text, "A1" in text) == (True, False)
    assert "No line can be paid here now." in main_text(payer.get(lines, params={"process_date": "x"}).text)


def test_pages_of_payments_and_of_lines_that_are_left_out(office: PayingOffice, payer: Browser) -> None:
    office.invoices([(f"A{number}", ("1.00",)) for number in range(52)])
    office.set(needs_receipts=False)
    ids = office.invoices([(f"H{number}", ("2.00",)) for number in range(53)])
    office.execute(
        "update invoices set held_at = now() where plan_manager_id = $1 and id = any ($2)",
        office.plan_manager_id,
        [UUID(each) for each in ids],
    )
    text = main_text(preview(payer, group_by="invoice").text)
    assert ("1–50 of 52" in text, "53 lines · $106.00" in text, "Show all 53" in text) == (True, True, True)
    assert "51–52 of 52" in main_text(preview(payer, group_by="invoice", page="2").text)
    text = main_text(preview(payer, reason="held", page="2").text)
    assert ("51–53 of 53" in text, "Who is paid" in text) == (True, False)


def test_missing_settings_are_named(office: PayingOffice, payer: Browser, owner: Browser) -> None:
    office.set(bank_bsb=None, remitter=None)
    text = main_text(preview(payer).text)
    assert "The bank’s file needs settings that are missing: BSB, Remitter." in text
    assert "An owner can set them in Settings, Claims and payments." in text
    assert 'href="/console/settings/claims-and-payments"' in preview(owner).text


def test_a_run_that_has_changed_since_is_shown_again(office: PayingOffice, payer: Browser) -> None:
    first = office.invoice("7.00", number="A1")
    form = make_form(preview(payer).text)
    office.invoice("8.00", number="A2")
    response = payer.submit(LIST, form)
    assert response.status_code == 409
    assert "What can be paid has changed in the meantime." in main_text(response.text)
    assert "$15.00 to 1 payee" in main_text(response.text)
    office.run()
    response = payer.submit(LIST, make_form(response.text))
    assert response.status_code == 409
    assert "Nothing can be paid." in main_text(response.text)
    assert office.read(first)["line_items"][0]["open_payment_run"] == "P000001"


@pytest.mark.parametrize("name, text", [("process_date", "31 Feb 2026"), ("group_by", "colour")])
def test_a_wrong_value_is_named_beside_its_field(office: PayingOffice, payer: Browser, name: str, text: str) -> None:
    office.invoice("7.00")
    form = make_form(preview(payer).text)
    for response in (preview(payer, **{name: text}), payer.submit(LIST, form | {name: text})):
        assert response.status_code == 422
        assert f'id="{name}-error"' in response.text


def test_only_accounts_with_the_permission_see_payments(
    office: PayingOffice, manager: Callable[..., Browser], payer: Browser, owner: Browser
) -> None:
    office.invoice("7.00")
    path, other = make(payer), manager("make_claims", "approve_bank_details", "override_blocks")
    for page in (LIST, f"{LIST}.csv", NEW, path, f"{path}/remittance-advices", f"{LIST}/reconciliation"):
        assert (payer.get(page).status_code, owner.get(page).status_code) == (200, 200), page
        assert other.get(page).status_code == 403, page
    for form in (LIST, f"{path}/file", f"{path}/mark-paid", f"{path}/cancel"):
        assert other.submit(form, {}).status_code == 403, form
    link = '<a href="/console/payments">Payments</a>'
    assert [link in each.get("/console").text for each in (owner, payer, other)] == [True, True, False]
