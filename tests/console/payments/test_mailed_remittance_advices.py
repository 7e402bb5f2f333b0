"""The pages of a payment run whose remittance advices are mailed: who gets a mail, and whose are printed."""

import re
from collections.abc import Iterator
from dataclasses import replace
from uuid import UUID

import pytest

from support.console import PASSWORD, Browser, create_account, main_text
from support.mail import PUBLIC_URL, public_browser
from support.outbox import MailingServer
from support.payments import PayingOffice
from support.server import RunningServer

ORIGIN = {"Origin": PUBLIC_URL}


@pytest.fixture
def server(mailing: MailingServer) -> RunningServer:
    return mailing.server


@pytest.fixture
def payer(server: RunningServer, plan_manager_id: UUID) -> Iterator[Browser]:
    account = server.run(create_account(server, plan_manager_id, "owner"))
    browser = public_browser(server.url)
    form = {"email": account.email, "password": PASSWORD}
    assert browser.submit("/console/sign-in", form, "/console/sign-in", headers=ORIGIN).status_code == 303
    yield browser
    browser.http.close()


def test_payees_without_an_email_are_listed_for_printing(office: PayingOffice, payer: Browser) -> None:
    office.invoice("40.00")
    office.invoice("3.00", number="B1", pm_provider_id=office.provider_with("Mailed", remittance_email="a@example.com"))
    office.invoice("5.00", is_reimbursement=True, number="R1")
    run = office.run()
    run_page = f"/console/payments/{run['id']}"
    page = f"{run_page}/remittance-advices"
    text = main_text(payer.get(run_page).text)
    assert "2 of 3 payees have no email for remittance advice." in text
    assert "The others get a mail." in text
    assert "The run isn’t marked as paid yet." in main_text(payer.get(page).text)
    office.act(run, "mark-paid").raise_for_status()
    assert "Print 2 remittance advices" in main_text(payer.get(run_page).text)
    text = main_text(payer.get(page).text)
    assert re.search(r"Amber Physio P000001-000\d \$40\.00 PDF", text)
    assert re.search(r"Robin Hale P000001-000\d \$5\.00 PDF", text)
    assert "Mailed" not in text
    assert f'href="{page}.pdf"' in payer.get(page).text
    assert f'href="{page}.pdf?payees=all"' in payer.get(page).text
    [path] = re.findall(r'href="([^"]+/remittance-advice)" aria-label="PDF for Amber Physio"', payer.get(page).text)
    pdf = payer.get(path)
    assert pdf.headers["content-type"] == "application/pdf"
    assert re.fullmatch(
        r'attachment; filename="remittance-advice-P000001-000\d\.pdf"', pdf.headers["content-disposition"]
    )
    assert pdf.content.startswith(b"%PDF")


def test_a_payee_with_an_email_gets_the_remittance_advice_by_mail(
    office: PayingOffice, payer: Browser, mailing: MailingServer
) -> None:
    office.invoice("40.00")
    mailed = office.provider_with("Mailed", remittance_email="paid@example.com")
    office.invoice("3.00", number="B1", pm_provider_id=mailed)
    run = office.run()
    page = f"/console/payments/{run['id']}"
    form = {"paid_on": "16/10/2026"}
    assert payer.submit(f"{page}/mark-paid", form, page, headers=ORIGIN).status_code == 303
    text = main_text(payer.get(page).text)
    assert "Payees with an email get their remittance advice by mail. Next: print 1 remittance advice." in text
    assert "No mail server" not in text
    texts = {
        each["payee"]["id"]: main_text(payer.get(f"{page}/payments/{each['id']}").text) for each in office.payments(run)
    }
    assert "Paid on 16 Oct 2026. The remittance advice goes out by mail." in texts[mailed]
    assert "No email for remittance advice: print the document." in texts[office.provider]
    assert "B1" in mailing.mail.wait_for("paid@example.com").text


def test_a_run_that_was_paid_without_a_mail_server_is_printed_after_one_is_set(
    office: PayingOffice, payer: Browser
) -> None:
    mailed = office.provider_with("Mailed", remittance_email="a@example.com")
    office.invoice("3.00", number="B1", pm_provider_id=mailed)
    run = office.run()
    page = f"/console/payments/{run['id']}"
    office.mark_paid_with(replace(office.server.settings, smtp_server=None), run)
    said = "No mail server was set, so no remittance advice was mailed."
    text = main_text(payer.get(page).text)
    assert f"{said} Print the remittance advices, and post them." in text
    assert "PLANKEEPER_SMTP_URL" not in text
    assert "Print 1 remittance advice" in text
    [payment] = office.payments(run)
    assert said in main_text(payer.get(f"{page}/payments/{payment['id']}").text)
    listed = payer.get(f"{page}/remittance-advices").text
    assert said in main_text(listed)
    assert re.search(r"Mailed P000001-0001 \$3\.00 PDF", main_text(listed))
