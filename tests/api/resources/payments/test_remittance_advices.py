"""Remittance advices: who gets a mail, what it says, its PDF, and letters that no font has."""

from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from plankeeper.core.context import ReadContext
from plankeeper.resources.invoices.schemas import LineItem
from plankeeper.resources.payments.remittance_documents import UnprintableLetters, find_unprintable
from plankeeper.resources.payments.remittance_mails import describe_state
from support.mail import MailServer, ReceivedMail
from support.outbox import Outbox
from support.payments import PayingOffice


@pytest.fixture
def outbox(office: PayingOffice) -> Iterator[Outbox]:
    office.server.run(office.server.db.execute("delete from outgoing_mails"))
    with MailServer() as mail:
        yield Outbox(office.server, mail)


def mark_paid(office: PayingOffice, outbox: Outbox, run: dict[str, Any], paid_on: date | None = None) -> None:
    """As on a server with a mail server, which the server of the tests hasn't."""
    office.mark_paid_with(outbox.settings, run, paid_on)


def attachments(mail: ReceivedMail) -> list[tuple[str | None, str]]:
    return [(each.get_filename(), each.get_content_type()) for each in mail.message.iter_attachments()]


def test_a_provider_with_an_email_gets_a_mail_when_the_run_is_marked_as_paid(
    office: PayingOffice, outbox: Outbox
) -> None:
    mailed = office.provider_with("Mailed Physio", remittance_email="accounts@example.com")
    office.invoice("40.00", "60.50", number="M1", pm_provider_id=mailed)
    office.invoice("7.00", number="WITHOUT")
    office.invoice("5.00", number="R1", is_reimbursement=True)
    run = office.run()
    assert outbox.send_due() == 0
    mark_paid(office, outbox, run, date(2026, 10, 16))
    outbox.catch_up()
    assert outbox.send_due() == 1
    [mail] = outbox.mail.received
    [payment] = [each for each in office.payments(run) if each["payee"]["id"] == mailed]
    assert mail.recipients == ["accounts@example.com"]
    assert mail.message["subject"].startswith(f"Remittance advice {payment['reference']}: $100.50 from ")
    assert "has paid $100.50 to Mailed Physio on 16 Oct 2026, to the account that ends in" in mail.text
    assert payment["account_ending"] in mail.text
    assert "Invoice M1, Robin Hale: $100.50" in mail.text
    assert "claimed $40.00, paid $40.00." in mail.text
    assert "WITHOUT" not in mail.text
    assert "The attached document says the same." in mail.text
    assert attachments(mail) == [(f"remittance-advice-{payment['reference']}.pdf", "application/pdf")]


def test_without_a_mail_server_no_mail_is_queued(office: PayingOffice, outbox: Outbox) -> None:
    """It would be deleted unsent."""
    mailed = office.provider_with("Mailed Physio", remittance_email="accounts@example.com")
    office.invoice("40.00", pm_provider_id=mailed)
    office.act(office.run(), "mark-paid").raise_for_status()
    assert outbox.rows() == []


def test_a_line_without_a_total_is_claimed_at_its_quantity_times_its_unit_price(
    office: PayingOffice, outbox: Outbox
) -> None:
    mailed = office.provider_with("Mailed Physio", remittance_email="accounts@example.com")
    line = {"id": str(uuid7()), "quantity": 2, "unit_price": 50, "paid_amount": 60, "claim_status": "partially_ready"}
    office.invoice("60.00", number="M1", pm_provider_id=mailed, status="partially_ready", line_items=[line])
    mark_paid(office, outbox, office.run())
    outbox.catch_up()
    assert outbox.send_due() == 1
    assert "claimed $100.00, paid $60.00. The agency paid $40.00 less." in outbox.mail.received[0].text


def test_a_mail_about_letters_that_no_font_has_goes_out_without_its_pdf(office: PayingOffice, outbox: Outbox) -> None:
    mailed = office.provider_with("Mailed Physio", remittance_email="accounts@example.com")
    office.invoice("40.00", number="王1", pm_provider_id=mailed)
    office.invoice("1.00", number="Ü1")
    run = office.run()
    ctx = ReadContext(office.server.db, office.plan_manager_id, office.server.settings)
    found = office.server.run(find_unprintable(ctx, UUID(run["id"])))
    assert found == UnprintableLetters("王", ["Mailed Physio"])
    mark_paid(office, outbox, run)
    outbox.catch_up()
    assert outbox.send_due() == 1
    [mail] = outbox.mail.received
    assert "Invoice 王1, Robin Hale: $40.00" in mail.text
    assert "attached" not in mail.text
    assert attachments(mail) == []


def test_an_address_that_was_removed_in_the_meantime_gets_no_mail(office: PayingOffice, outbox: Outbox) -> None:
    mailed = office.provider_with("Mailed Physio", remittance_email="accounts@example.com")
    office.invoice("40.00", pm_provider_id=mailed)
    mark_paid(office, outbox, office.run())
    office.client.put(f"/providers/{mailed}", {"remittance_email": None}).raise_for_status()
    outbox.catch_up()
    outbox.send_due()
    assert outbox.mail.received == []


def test_a_run_without_other_letters_has_nothing_unprintable(office: PayingOffice) -> None:
    office.invoice("1.00", number="Ü1", pm_provider_id=office.provider_with("Café Blau"))
    ctx = ReadContext(office.server.db, office.plan_manager_id, office.server.settings)
    assert office.server.run(find_unprintable(ctx, UUID(office.run()["id"]))) is None


@pytest.mark.parametrize(
    "status, values, paid, expected",
    [
        ("paid", {"paid_amount": Decimal(40)}, Decimal(40), None),
        ("rejected", {"rejection_reason": "No funds."}, None, "Rejected by the agency: No funds."),
        ("rejected", {}, None, "Rejected by the agency: no reason was given."),
        ("pending", {}, None, "Waits for the agency."),
        ("pending", {"paid_amount": Decimal(10)}, None, "The rest waits for the agency."),
        ("new", {}, None, "Not claimed yet."),
        ("partially_paid", {"paid_amount": Decimal(30)}, Decimal(30), "The agency paid $10.00 less."),
        (
            "partially_paid",
            {"paid_amount": Decimal(30), "is_rest_waiting": True},
            Decimal(30),
            "The agency paid $10.00 less. The rest is claimed again.",
        ),
        ("paid", {"paid_amount": Decimal(40), "payment_ref": "P000001-0001"}, None,
         "Was paid with the reference P000001-0001."),
        ("payment_ready", {"paid_amount": Decimal(40)}, None, "Is paid separately."),
    ],
)  # fmt: skip
def test_a_line_says_what_is_waiting_short_or_rejected(
    line_of: LineItem, status: str, values: dict[str, object], paid: Decimal | None, expected: str | None
) -> None:
    line_of.claim_status = status  # type: ignore[assignment]
    for name, value in values.items():
        setattr(line_of, name, value)
    assert describe_state(line_of, paid) == expected


@pytest.fixture
def line_of() -> LineItem:
    """A line of $40 without anything else."""
    fields = dict.fromkeys(LineItem.__struct_fields__)
    return LineItem(**fields | {"amount": Decimal(40), "is_rest_waiting": False, "is_deleted": False})  # pyright: ignore[reportArgumentType]
