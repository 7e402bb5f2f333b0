"""Why an invoice that the agency has paid for isn't paid yet, on its page."""

from collections.abc import Callable

from support.console import Browser, main_text
from support.payments import PayingOffice


def hint(browser: Browser, invoice: str) -> str:
    """What follows the question, up to the actions."""
    text = main_text(browser.get(f"/console/invoices/{invoice}").text)
    return text.partition("Why isn’t this paid? ")[2][:110]


def test_the_page_of_an_invoice_says_why_it_is_not_paid(office: PayingOffice, payer: Browser) -> None:
    invoice = office.invoice("40.00")
    assert hint(payer, invoice).startswith("The next payment run pays it. Make a payment run")
    poor = office.client.create("/providers", {"entity_name": "No Account Pty Ltd"})["id"]
    other = office.invoice("1.00", number="POOR", pm_provider_id=poor)
    assert hint(payer, other).startswith("The payee has no bank details. Open the provider")
    assert f'<a href="/console/providers/{poor}">Open the provider</a>' in payer.get(f"/console/invoices/{other}").text
    run = office.run(invoice)
    assert hint(payer, invoice).startswith("The line is in a payment run that is a draft. Payment runs")
    office.act(run, "mark-paid").raise_for_status()
    assert hint(payer, invoice) == ""


def test_only_people_who_make_payments_see_it(office: PayingOffice, manager: Callable[..., Browser]) -> None:
    invoice = office.invoice("40.00")
    assert hint(manager("make_claims"), invoice) == ""
