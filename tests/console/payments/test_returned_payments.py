"""The page of a payment, and its return by the bank."""

from support.console import Browser, main_text
from support.payments import PayingOffice

RETURN = {"date": "17/10/2026", "reference": "RTN-0412", "reason": "The account is closed"}


def paid_payment(office: PayingOffice) -> tuple[str, str]:
    """The page of a paid payment, and its invoice."""
    invoice = office.invoice("40.00", "60.50")
    run = office.run()
    office.act(run, "mark-paid").raise_for_status()
    [payment] = office.payments(run)
    return f"/console/payments/{run['id']}/payments/{payment['id']}", invoice


def test_a_payment_has_its_lines(office: PayingOffice, payer: Browser) -> None:
    page, invoice = paid_payment(office)
    text = main_text(payer.get(page).text)
    assert "$100.50 to Amber Physio Paid Reference P000001-0001" in text
    assert "Paid on 15 Oct 2026. No mail server was set" in text
    assert "2026/442 Robin Hale — Paid $40.00 2026/442 Robin Hale — Paid $60.50" in text
    assert f'href="/console/invoices/{invoice}"' in payer.get(page).text


def test_a_return_is_recorded_and_the_page_says_what_comes_next(office: PayingOffice, payer: Browser) -> None:
    page, invoice = paid_payment(office)
    assert payer.submit(f"{page}/return", RETURN).headers["location"] == page
    text = main_text(payer.get(page).text)
    assert "The bank returned this payment on 17 Oct 2026 with the reference RTN-0412: The account is closed" in text
    assert "the next payment run pays them once another person has approved the bank details" in text
    assert office.read(invoice)["claim_status"] == "payment_ready"
    run = page.partition("/payments/")[2].partition("/")[0]
    assert "1 returned" in main_text(payer.get(f"/console/payments/{run}").text)
    assert "The bank sent a payment back" in main_text(payer.get("/console/payments/new").text)
    response = payer.submit(f"{page}/return", RETURN)
    assert response.status_code == 409
    assert "The payment is returned already" in main_text(response.text)


def test_a_wrong_return_names_the_field(office: PayingOffice, payer: Browser) -> None:
    page, invoice = paid_payment(office)
    for name, text in (
        ("date", ""),
        ("date", "31/2/2026"),
        ("date", "14/10/2026"),
        ("reason", ""),
        ("reference", "x" * 256),
    ):
        response = payer.submit(f"{page}/return", RETURN | {name: text})
        assert response.status_code == 422
        assert f'id="{name}-error"' in response.text
        assert RETURN["reason"] in response.text or name == "reason"
    assert office.read(invoice)["claim_status"] == "paid"


def test_a_payment_of_a_draft_has_no_advice_and_no_return(office: PayingOffice, payer: Browser) -> None:
    office.invoice("40.00")
    run = office.run()
    [payment] = office.payments(run)
    page = f"/console/payments/{run['id']}/payments/{payment['id']}"
    assert "In a draft. Nothing is paid yet." in main_text(payer.get(page).text)
    assert "remittance-advice" not in payer.get(page).text
    assert payer.submit(f"{page}/return", RETURN).status_code == 409
