"""The lines that a payment run leaves out, by reason, with the records that they are about."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple
from uuid import UUID

from plankeeper.console.bank_details.section import BANK_DETAILS_URL, payee_url
from plankeeper.console.claims.claim_rows import line_url
from plankeeper.console.claims.paging import PagePart, select_part
from plankeeper.console.components.pagination import with_query
from plankeeper.console.shell.routing import PREFIX, PageRequest
from plankeeper.resources.bank_details.accounts import Payee
from plankeeper.resources.invoices import store as invoice_store
from plankeeper.resources.invoices.changes import to_line_rows
from plankeeper.resources.invoices.check_store import get_display_names
from plankeeper.resources.invoices.schemas import Invoice, InvoiceLineRow
from plankeeper.resources.payments.rules import SENTENCES
from plankeeper.resources.payments.schemas import UnpaidLine, UnpaidReason

MAX_LINES = 50  # of a reason
OF_APPROVAL = ("bank_details_waiting", "bank_details_need_approval")
OF_PAYEES = ("no_bank_details", *OF_APPROVAL)


class LeftOutRecord(NamedTuple):
    """An invoice, a line, or a payee whose bank details are the reason, with the number of its lines.

    `amount` is what the agency has paid for them.
    """

    name: str
    url: str
    detail: str
    line_count: int
    amount: Decimal


class LeftOutGroup(NamedTuple):
    """The lines with one reason. `more` is the number of those that no record stands for.

    `url` is the page with all of them, and `part` what such a page shows.
    """

    reason: UnpaidReason
    sentence: str
    line_count: int
    records: Sequence[LeftOutRecord]
    more: int
    link: tuple[str, str] | None
    url: str
    part: PagePart | None


class _Shown(NamedTuple):
    """The lines with one reason that a page shows, and how many there are."""

    lines: Sequence[UnpaidLine]
    total: int
    url: str
    part: PagePart | None


async def left_out_groups(
    request: PageRequest, lines: Sequence[UnpaidLine], page_url: str, params: Mapping[str, str]
) -> list[LeftOutGroup]:
    """The reasons with the most lines first, or the one that the address of the page names.

    The invoices that the page names are in the access log.
    """
    by_reason = defaultdict[UnpaidReason, list[UnpaidLine]](list)
    for each in lines:
        by_reason[each.reason].append(each)
    shown: dict[UnpaidReason, _Shown] = {
        reason: _select(request, reason, found, page_url, params) for reason, found in by_reason.items()
    }
    chosen: dict[UnpaidReason, _Shown] = {reason: each for reason, each in shown.items() if each.part}
    shown = chosen or shown
    ids = list(dict.fromkeys(each.invoice_id for found in shown.values() for each in found.lines))
    place = (request.executor, request.plan_manager_id)
    invoices = {each.id: each for each in await invoice_store.get_many(*place, ids)}
    request.record_list("invoice", list(invoices), {"page": "payments"})
    participants = [each.participant_id for each in invoices.values() if each.participant_id]
    providers = [each.pm_provider_id for each in invoices.values() if each.pm_provider_id]
    names = {each.id: each.name for each in await get_display_names(*place, participants, providers)}
    ordered = sorted(shown.items(), key=lambda each: -each[1].total)
    return [_group(reason, found, invoices, names) for reason, found in ordered]


def _select(
    request: PageRequest, reason: UnpaidReason, lines: Sequence[UnpaidLine], page_url: str, params: Mapping[str, str]
) -> _Shown:
    own = {**params, "reason": reason}
    url = with_query(page_url, own)
    if request.query.text("reason") != reason:
        return _Shown(lines[:MAX_LINES], len(lines), url, None)
    part = select_part(request, len(lines), page_url, own)
    return _Shown(lines[part.first : part.end], len(lines), url, part)


def _group(
    reason: UnpaidReason,
    shown: _Shown,
    invoices: Mapping[UUID, Invoice],
    names: Mapping[UUID, str | None],
) -> LeftOutGroup:
    amounts = defaultdict[tuple[str, str, str], list[Decimal]](list)
    for each in shown.lines:
        if invoice := invoices.get(each.invoice_id):
            line = next((line for line in to_line_rows(invoice) if line.id == each.line_id), None)
            amounts[_record_of(reason, invoice, line, names)].append((line and line.paid_amount) or Decimal(0))
    records = [LeftOutRecord(*key, len(found), sum(found, Decimal(0))) for key, found in amounts.items()]
    more = 0 if shown.part else shown.total - sum(each.line_count for each in records)
    link = ("Bank details that wait for approval", BANK_DETAILS_URL) if reason in OF_APPROVAL else None
    return LeftOutGroup(reason, SENTENCES[reason], shown.total, records, more, link, shown.url, shown.part)


def _record_of(
    reason: UnpaidReason, invoice: Invoice, line: InvoiceLineRow | None, names: Mapping[UUID, str | None]
) -> tuple[str, str, str]:
    """The name, the page and a detail of the record that a line is listed under."""
    payee = payee_of(invoice)
    name = (names.get(payee.id) or "No name") if payee else "No payee"
    if payee and reason in OF_PAYEES:
        return name, payee_url(payee), ""
    if line and reason == "no_result":  # each is confirmed on a page of its own
        number = invoice.invoice_number or "without number"
        return f"Invoice {number}, line {line.position + 1}", line_url(invoice.id, line.id), name
    return f"Invoice {invoice.invoice_number or 'without number'}", f"{PREFIX}/invoices/{invoice.id}", name


def payee_of(invoice: Invoice) -> Payee | None:
    """Who is paid for an invoice, whether or not the record exists."""
    if invoice.is_reimbursement:
        return Payee("participant", invoice.participant_id) if invoice.participant_id else None
    return Payee("provider", invoice.pm_provider_id) if invoice.pm_provider_id else None
