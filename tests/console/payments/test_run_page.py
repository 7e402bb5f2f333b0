"""The page of a payment run: the bank's file, its check, marking as paid, cancelling, and advices to print."""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from html import unescape
from uuid import UUID

import pytest
from pypdfium2 import PdfDocument

from plankeeper.console.payments import run as run_pages
from plankeeper.resources.payments import remittance_documents
from support.console import Account, Browser, main_text
from support.mail import MailServer
from support.payments import PayingOffice


def page_of(run: dict[str, str]) -> str:
    return f"/console/payments/{run['id']}"


def test_the_file_is_downloaded_and_the_run_marked_as_paid(office: PayingOffice, payer: Browser) -> None:
    invoice = office.invoice("40.00", "60.50")
    run = office.run()
    page = page_of(run)
    assert "Draft, checked just now: nothing has changed since it was made." in main_text(payer.get(page).text)
    file = payer.submit(f"{page}/file")
    assert file.headers["content-type"] == "text/plain; charset=us-ascii"
    assert file.headers["content-disposition"] == 'attachment; filename="P000001.aba"'
    assert file.text == office.download(run).text
    text = main_text(payer.get(page).text)
    assert re.search(r"File downloaded .* by Robin Hale\. Next: upload it to your bank", text)
    assert "No mail server is set, so no remittance advice is mailed. You can print them afterwards." in text
    done = payer.submit(f"{page}/mark-paid", {"paid_on": "16/10/2026"})
    assert done.headers["location"] == page
    text = main_text(payer.get(page).text)
    assert "Payment run P000001 · $100.50 Paid" in text
    assert "The bank paid on 16 Oct 2026." in text
    assert "Payment run marked as paid" in text
    assert f'href="/console/invoices/{invoice}"' in payer.get(page).text
    assert office.read(invoice)["claim_status"] == "paid"


def test_a_run_that_is_out_of_date_says_what_has_changed(office: PayingOffice, payer: Browser) -> None:
    held, other = office.invoice("40.00"), office.provider_with("Other Pty Ltd")
    office.invoice("2.00", number="OTHER", pm_provider_id=other)
    run = office.run()
    office.client.post(f"/invoices/{held}/hold", {"reason": "A question"}).raise_for_status()
    office.propose(other)
    page = payer.get(page_of(run)).text
    text = main_text(page)
    assert "Out of date. Next: cancel the run, and make another one." in text
    assert "Invoice 2026/442 is on hold." in text
    assert "Other Pty Ltd : A change of the payee's bank details waits for approval." in text
    assert f'<a href="/console/invoices/{held}">' in page
    assert f'<a href="/console/providers/{other}">' in page
    for action, form in (("file", {}), ("mark-paid", {"paid_on": "16/10/2026"})):
        response = payer.submit(f"{page_of(run)}/{action}", form)
        assert response.status_code == 409
        assert "The run is out of date, so nothing was done." in main_text(response.text)
        assert str(held) not in main_text(response.text)
    assert payer.submit(f"{page_of(run)}/cancel", {}).status_code == 303
    assert "Its lines are free for another run." in main_text(payer.get(page_of(run)).text)


def test_a_downloaded_run_is_cancelled_with_a_confirmation_and_a_reason(office: PayingOffice, payer: Browser) -> None:
    office.invoice("40.00")
    run = office.run()
    page = page_of(run)
    assert "not_sent_to_bank" not in payer.get(page).text
    assert payer.submit(f"{page}/file").status_code == 200
    assert 'name="not_sent_to_bank"' in payer.get(page).text
    for form, field in (
        ({"reason": "The wrong day"}, "not_sent_to_bank"),
        ({"not_sent_to_bank": "true"}, "reason"),
        ({"not_sent_to_bank": "true", "reason": "x" * 10_001}, "reason"),
    ):
        response = payer.submit(f"{page}/cancel", form)
        assert response.status_code == 422
        assert f'id="{field}-error"' in response.text
    assert payer.submit(f"{page}/cancel", {"not_sent_to_bank": "true", "reason": "The wrong day"}).status_code == 303
    assert "by Robin Hale: The wrong day ." in main_text(payer.get(page).text)
    response = payer.submit(f"{page}/mark-paid", {"paid_on": "16/10/2026"})
    assert response.status_code == 409
    assert "is cancelled, so it can't be marked as paid" in main_text(response.text)


def test_a_wrong_day_of_payment_is_named(office: PayingOffice, payer: Browser) -> None:
    office.invoice("40.00")
    run = office.run()
    for text in ("", "31/2/2026"):
        response = payer.submit(f"{page_of(run)}/mark-paid", {"paid_on": text})
        assert response.status_code == 422
        assert 'id="paid_on-error"' in response.text


def test_the_page_says_who_else_may_mark_the_run_as_paid(
    office: PayingOffice, payer: Browser, owner: Browser, new_account: Callable[..., Account]
) -> None:
    assert new_account("viewer")
    office.set(needs_second_person=True)
    office.invoice("40.00")
    form = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', payer.get("/console/payments/new").text))
    page = payer.submit("/console/payments", form).headers["location"]
    text = main_text(payer.get(page).text)
    assert "so another person marks it as paid: Robin Hale." in text
    assert f'action="{page}/mark-paid"' not in payer.get(page).text
    assert payer.submit(f"{page}/mark-paid", {"paid_on": "16/10/2026"}).status_code == 403
    assert owner.submit(f"{page}/mark-paid", {"paid_on": "16/10/2026"}).status_code == 303


def test_without_a_mail_server_all_remittance_advices_are_printed(office: PayingOffice, payer: Browser) -> None:
    """Nothing is mailed, and the pages of the run and of the payment say so."""
    office.invoice("40.00")
    office.invoice("3.00", number="B1", pm_provider_id=office.provider_with("Blue", remittance_email="a@example.com"))
    run = office.run()
    page = page_of(run)
    payer.submit(f"{page}/mark-paid", {"paid_on": "16/10/2026"})
    text = main_text(payer.get(page).text)
    said = "No mail server was set, so no remittance advice was mailed."
    assert f"Payment run P000001 is marked as paid. {said} Next: print 2 remittance advices." in text
    assert f"{said} Print the remittance advices, and post them." in text
    assert "Print 2 remittance advices" in text
    list_url = f"{page}/remittance-advices"
    for payment in office.payments(run):
        shown = payer.get(f"{page}/payments/{payment['id']}").text
        assert f"Paid on 16 Oct 2026. {said} Print remittance advices" in main_text(shown)
        assert f'href="{list_url}"' in shown
    listed = payer.get(list_url).text
    assert "No mail server was set, so no remittance advice was mailed. The bank paid" in main_text(listed)
    assert re.search(r"Amber Physio P000001-000\d \$40\.00 PDF", main_text(listed))
    assert re.search(r"Blue P000001-000\d \$3\.00 PDF", main_text(listed))
    assert re.findall(r'href="([^"]+\.pdf[^"]*)"', listed) == [f"{list_url}.pdf?payees=all"]


def test_a_run_that_was_paid_with_a_mail_server_says_so_after_it_is_removed(
    office: PayingOffice, payer: Browser
) -> None:
    mailed = office.provider_with("Blue", remittance_email="a@example.com")
    office.invoice("3.00", number="B1", pm_provider_id=mailed)
    run = office.run()
    page = page_of(run)
    with MailServer() as mail:
        office.mark_paid_with(replace(office.server.settings, smtp_server=mail.server()), run)
    office.execute("delete from outgoing_mails")
    text = main_text(payer.get(page).text)
    assert "No mail server" not in text
    assert "Print remittance advices" in text
    [payment] = office.payments(run)
    shown = main_text(payer.get(f"{page}/payments/{payment['id']}").text)
    assert "The remittance advice goes out by mail." in shown
    listed = main_text(payer.get(f"{page}/remittance-advices").text)
    assert "Every payee of this run has an email for remittance advice." in listed


def test_remittance_advices_are_one_file(office: PayingOffice, payer: Browser, monkeypatch: pytest.MonkeyPatch) -> None:
    office.invoice("1.00", number="A1")
    place = {"address": "1 High St", "city": "Perth", "state": "WA", "postcode": "6000"}
    office.invoice("2.00", number="A2", pm_provider_id=office.provider_with("Blue Nursing", **place))
    mailed = office.provider_with("Mailed Physio", remittance_email="a@example.com")
    office.invoice("3.00", number="B1", pm_provider_id=mailed)
    run = office.run()
    file = f"{page_of(run)}/remittance-advices.pdf"
    assert payer.get(file).status_code == 404
    office.act(run, "mark-paid")
    response = payer.get(file)
    assert response.headers["content-type"] == "application/pdf"
    assert 'filename="remittance-advices-P000001-1.pdf"' in response.headers["content-disposition"]
    text = " ".join(pdf_texts(response.content))
    assert ("Amber Physio" in text, "Blue Nursing" in text, "Mailed Physio" in text) == (True, True, False)
    assert len(pdf_texts(response.content)) == 3
    assert "Perth WA 6000" in pdf_texts(response.content)[1]
    assert "Mailed Physio" in " ".join(pdf_texts(payer.get(f"{file}?payees=all").content))
    monkeypatch.setattr(remittance_documents, "PART_SIZE", 1)
    assert "Blue Nursing" in pdf_texts(payer.get(f"{file}?part=2").content)[0]
    assert {payer.get(f"{file}?part={each}").status_code for each in ("3", "0", "x")} == {404}


def pdf_texts(content: bytes) -> list[str]:
    """The texts of the pages."""
    return [page.get_textpage().get_text_range() for page in PdfDocument(content)]


def test_remittance_advices_to_print_are_paged(
    office: PayingOffice, payer: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_pages, "PAGE_SIZE", 2)
    office.invoices([(f"I{number}", ["1.00"]) for number in range(5)])
    run = office.run(group_by="invoice")
    found, path = list[str](), f"{page_of(run)}/remittance-advices"
    while path:
        page = payer.get(path).text
        found += re.findall(r">(I[0-9])</a>", page)
        path = unescape(next(iter(re.findall(r'href="([^"]+)" rel="next"', page)), ""))
    assert found == [f"I{number}" for number in range(5)]


def test_letters_that_cannot_be_printed_are_said_before_the_run_is_marked_as_paid(
    office: PayingOffice, payer: Browser
) -> None:
    office.invoice("40.00", number="Rechnung Ü1")
    office.invoice("3.00", number="王1", pm_provider_id=office.provider_with("Wang Physio"))
    run = office.run()
    text = main_text(payer.get(page_of(run)).text)
    assert "no font has the letters 王 (U+738B) : Wang Physio." in text
    office.act(run, "mark-paid").raise_for_status()
    [payment] = [each for each in office.payments(run) if each["payee"]["name"] == "Wang Physio"]
    path = f"{page_of(run)}/payments/{payment['id']}"
    response = payer.get(f"{path}/remittance-advice")
    assert response.status_code == 409
    assert "There is no PDF, because no font has the letters 王 (U+738B)" in main_text(response.text)


def test_payments_are_paged(office: PayingOffice, payer: Browser) -> None:
    office.invoices([(f"N{number:03}", ["1.00"]) for number in range(60)])
    page = page_of(office.run(group_by="invoice"))
    first = payer.get(page).text
    assert ("N000" in first, "N059" in first) == (True, False)
    [following] = re.findall(r'href="([^"]+after=[^"#]+)#payments" rel="next"', first)
    assert "N059" in payer.get(following).text


def test_another_plan_managers_run_is_not_found(
    office: PayingOffice, new_plan_manager: Callable[[], UUID], new_account: Callable[..., Account],
    new_browser: Callable[..., Browser],
) -> None:  # fmt: skip
    office.invoice("40.00")
    run = office.run()
    other = new_browser(new_account("owner", new_plan_manager()))
    [payment] = office.payments(run)
    page = page_of(run)
    for path in (page, f"{page}/remittance-advices", f"{page}/payments/{payment['id']}"):
        assert other.get(path).status_code == 404
    assert other.submit(f"{page}/cancel", {}).status_code == 404
    assert other.submit(f"{page}/file").status_code == 404
    assert office.read(office.payments(run)[0]["lines"][0]["invoice_id"])["claim_status"] == "payment_ready"
    assert date.fromisoformat(run["process_date"])
