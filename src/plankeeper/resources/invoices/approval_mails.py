"""The mail with the link to approve an invoice, as text and as HTML without images and scripts."""

from datetime import date, datetime, timedelta
from decimal import Decimal
from html import escape
from typing import NamedTuple
from uuid import UUID

from plankeeper.access.tokens import hash_token, new_token
from plankeeper.core.fields import unset_to_none
from plankeeper.core.formatting import format_date, format_money, single_line
from plankeeper.core.settings import Settings
from plankeeper.database.client import Executor
from plankeeper.mail.messages import AddressedText, Text, console_url, format_time, short_name
from plankeeper.mail.store import MailWriters
from plankeeper.resources.invoices import approval_store, store
from plankeeper.resources.invoices.approval import join_token
from plankeeper.resources.invoices.approval_requests import ApprovalMail
from plankeeper.resources.invoices.approval_schemas import LinkRecipient
from plankeeper.resources.invoices.schemas import Invoice, InvoiceLineRow, LineItem
from plankeeper.resources.providers import store as provider_store

LINK_LIFETIME = timedelta(hours=72)
MAX_LINES = 20  # in a mail; the page has all
NO_PROVIDER = "a provider"


class ApprovalText(NamedTuple):
    """What a mail says about an invoice: names are single lines."""

    url: str
    office: str
    provider: str
    participant: str
    invoice: Invoice
    expires_at: str
    is_reminder: bool


async def _write(db: Executor, settings: Settings, content: ApprovalMail, at: datetime) -> AddressedText | None:
    """Another attempt creates another token, which replaces the one before."""
    plan_manager_id, invoice_id = content.plan_manager_id, content.invoice_id
    invoice = await store.get(db, plan_manager_id, invoice_id)
    if invoice is None or invoice.participant_id is None:
        return None
    secret, expires_at = new_token(), at + LINK_LIFETIME
    link = (plan_manager_id, invoice_id, content.link_id)
    recipient = await approval_store.send_link(db, *link, hash_token(secret), at, expires_at)
    if recipient is None:
        return None
    name = await approval_store.get_name(db, plan_manager_id, invoice.participant_id, None)
    url = f"{console_url(settings)}/approvals/{join_token(plan_manager_id, secret)}"
    provider = await _provider_name(db, plan_manager_id, invoice.pm_provider_id)
    expires = format_time(expires_at, settings.time_zone)
    text = _text(recipient, url, provider, name, invoice, expires)
    return AddressedText(recipient.email, approval_text(text))


def _text(
    recipient: LinkRecipient, url: str, provider: str, participant: str | None, invoice: Invoice, expires: str
) -> ApprovalText:
    office, own_name = short_name(recipient.plan_manager_name), short_name(participant or "the participant")
    return ApprovalText(url, office, short_name(provider), own_name, invoice, expires, recipient.is_reminder)


async def _provider_name(db: Executor, plan_manager_id: UUID, provider_id: UUID | None) -> str:
    found = await provider_store.get_many(db, plan_manager_id, [provider_id]) if provider_id else []
    return (found[0].entity_name if found else None) or NO_PROVIDER


WRITERS: MailWriters = {ApprovalMail: _write}


def describe_amount(amount: Decimal | None) -> str:
    return "an unknown amount" if amount is None else format_money(amount)


def describe_days(first: date | None, last: date | None) -> str:
    """`3 Nov 2026`, `3 Nov 2026 to 5 Nov 2026`, or `no date`."""
    if first and last and first != last:
        return f"{format_date(first)} to {format_date(last)}"
    day = first or last
    return format_date(day) if day else "no date"


def visible_lines(invoice: Invoice) -> list[LineItem]:
    """The lines that are billed."""
    lines = unset_to_none(invoice.line_items) or []
    return [each for each in lines if not each.is_deleted and each.claim_status != "cancelled"]


def describe_service(line: LineItem | InvoiceLineRow) -> str:
    """What a line bills, in one line of text."""
    return single_line(line.description or line.service_item_number or "A service", 100)


def describe_line(line: LineItem) -> str:
    """`Domestic help, 3 Nov 2026: $120.00`."""
    days = describe_days(line.service_date_from, line.service_date_to)
    return f"{describe_service(line)}, {days}: {describe_amount(line.total_price)}"


def approval_text(text: ApprovalText) -> Text:
    """The mail."""
    invoice, total = text.invoice, describe_amount(text.invoice.total)
    number = f" (invoice {single_line(invoice.invoice_number, 50)})" if invoice.invoice_number else ""
    bills = f"{text.provider} bills {total} for services to {text.participant}{number}."
    lines = [describe_line(each) for each in visible_lines(invoice)]
    more = len(lines) - MAX_LINES
    lines = [*lines[:MAX_LINES], *([f"and {more} more, which the page shows"] if more > 0 else [])]
    reminder = "We have asked you before, and have no answer yet. Links in earlier mails no longer work.\n\n"
    doubt = f"If something is wrong, reject the invoice and say why. If you are unsure, ask {text.office}: use the"
    doubt += " phone number or the address that you know, not one from a mail."
    service = "\n".join(f"- {each}" for each in lines) or "- The invoice lists no services."
    body = f"""\
{reminder if text.is_reminder else ""}{bills}

{service}

{text.office} pays it from the plan only if you agree. To see the invoice, and to approve or reject it,
open this link:

{text.url}

The link works once, until {text.expires_at}. It is for you only: don't pass it on.
Opening the link decides nothing. You don't need a password.

{doubt}

{text.office}
"""
    subject = f"{'Reminder: please' if text.is_reminder else 'Please'} check an invoice of {text.provider} for {total}"
    return Text(subject, body, _html(text, bills, lines, reminder if text.is_reminder else "", doubt))


def _html(text: ApprovalText, bills: str, lines: list[str], reminder: str, doubt: str) -> str:
    items = "".join(f"<li>{escape(each)}</li>" for each in lines) or "<li>The invoice lists no services.</li>"
    first = f"<p>{escape(reminder.strip())}</p>\n" if reminder else ""
    return f"""\
<!doctype html>
<html lang="en-AU">
<head><meta charset="utf-8"><meta name="color-scheme" content="light dark"><title>Check an invoice</title></head>
<body style="font-family: sans-serif; font-size: 16px; line-height: 1.5">
{first}<p><strong>{escape(bills)}</strong></p>
<ul>{items}</ul>
<p>{escape(text.office)} pays it from the plan only if you agree.</p>
<p><a href="{escape(text.url)}">See the invoice, and approve or reject it</a></p>
<p>The link works once, until {escape(text.expires_at)}. It is for you only: don’t pass it on.
Opening the link decides nothing. You don’t need a password.</p>
<p>{escape(doubt)}</p>
<p>{escape(text.office)}</p>
</body>
</html>
"""
