"""The reconciliation in the console: the figures of some days, and the lines whose money is held."""

from support.console import Browser, main_text
from support.payments import PayingOffice

PAGE = "/console/payments/reconciliation"
OCTOBER = {"from": "1/10/2026", "to": "31/10/2026"}


def test_the_figures_and_lines_of_a_month(office: PayingOffice, payer: Browser) -> None:
    office.invoice("40.00", number="PAID")
    run = office.run()
    office.act(run, "mark-paid").raise_for_status()
    held = office.invoice("60.55", number="HELD")
    page = payer.get(PAGE, params=OCTOBER).text
    text = main_text(page)
    assert "Reconciliation 1 Oct 2026 – 31 Oct 2026" in text
    assert (
        "Held before 1 Oct 2026 $0.00 Received from the agency + $100.55 Paid out − $40.00 Returned by the bank $0.00"
        " Refunded by payees $0.00 Repaid to the agency $0.00 Own fees taken $0.00"
        " Held at the end of 31 Oct 2026 $60.55"
    ) in text
    assert "Whose money it is 1 line" in text
    assert "Invoice HELD Amber Physio Robin Hale $60.55" in text
    assert f'href="/console/invoices/{held}"' in page
    assert 'href="/console/payments/reconciliation.csv?from=2026-10-01&amp;to=2026-10-31"' in page


def test_the_file_is_that_of_the_api_with_names(office: PayingOffice, payer: Browser) -> None:
    office.invoice("60.55", number="HELD")
    file = payer.get(f"{PAGE}.csv", params=OCTOBER)
    assert file.headers["content-disposition"] == 'attachment; filename="reconciliation-2026-10-01-2026-10-31.csv"'
    days = {"from": "2026-10-01", "to": "2026-10-31"}
    assert "closing,2026-10-31,,,,60.55,,," in file.text
    assert ",60.55,Invoice HELD,Amber Physio,Robin Hale" in file.text
    assert office.client.get("/reconciliation", **days).json()["closing"] == 60.55


def test_the_default_is_the_current_month(office: PayingOffice, payer: Browser) -> None:
    assert office
    response = payer.get(PAGE)
    assert response.status_code == 200
    assert "The office holds nobody’s money" in main_text(response.text)


def test_wrong_days_are_named(office: PayingOffice, payer: Browser) -> None:
    assert office
    for name, days in (("from", {"from": "31/2/2026"}), ("to", {"from": "2/10/2026", "to": "1/10/2026"})):
        response = payer.get(PAGE, params=days)
        assert response.status_code == 422
        assert f'id="{name}-error"' in response.text
        assert payer.get(f"{PAGE}.csv", params=days).status_code in (400, 422)
