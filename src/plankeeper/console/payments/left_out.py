"""The lines that a payment run leaves out, by reason, with the records that they are about."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from plankeeper.console.bank_details.section import BANK_DETAILS_URL, payee_url
from plankeeper.console.shell.routing import PREFIX, PageRequest
from plankeeper.resources.bank_details.accounts import Payee
from plankeeper.resources.invoices import store as invoice_store
from plankeeper.resources.invoices.check_store import get_display_names
from plankeeper.resources.invoices.schemas import Invoice
from plankeeper.resources.payments.rules import SENTENCES
from plankeeper.resources.payments.schemas import UnpaidLine, UnpaidReason

MAX_LINES = 50  # of a reason
OF_PAYEES = ("no_bank_details", "bank_details_waiting", "bank_details_need_approval")


class LeftOutRecord(NamedTuple):
    """An invoice, or a payee whose bank details are the reason, with the number of its lines."""

    name: str
    url: str
    detail: str
    line_count: int


class LeftOutGroup(NamedTuple):
    """The lines with one reason. `more` is the number of those that no record stands for."""

    reason: UnpaidReason
    sentence: str
    line_count: int
    records: Sequence[LeftOutRecord]
    more: int
    link: tuple[str, str] | None


async def left_out_groups(request: PageRequest, lines: Sequence[UnpaidLine]) -> list[LeftOutGroup]:
    """The reasons with the most lines first. The invoices that the page names are in the access log."""
    by_reason = defaultdict[UnpaidReason, list[UnpaidLine]](list)
    for each in lines:
        by_reason[each.reason].append(each)
    shown = [each.invoice_id for found in by_reason.values() for each in found[:MAX_LINES]]
    place = (request.executor, request.plan_manager_id)
    invoices = {
        each.id: each for each in await invoice_store.get_many_without_lines(*place, list(dict.fromkeys(shown)))
    }
    request.record_list("invoice", list(invoices), {"page": "payments"})
    participants = [each.participant_id for each in invoices.values() if each.participant_id]
    providers = [each.pm_provider_id for each in invoices.values() if each.pm_provider_id]
    names = {each.id: each.name for each in await get_display_names(*place, participants, providers)}
    ordered = sorted(by_reason.items(), key=lambda each: -len(each[1]))
    return [_group(reason, found, invoices, names) for reason, found in ordered]


def _group(
    reason: UnpaidReason,
    lines: Sequence[UnpaidLine],
    invoices: Mapping[UUID, Invoice],
    names: Mapping[UUID, str | None],
) -> LeftOutGroup:
    counts = defaultdict[tuple[str, str, str], int](int)
    for each in lines[:MAX_LINES]:
        if invoice := invoices.get(each.invoice_id):
            counts[_record_of(reason, invoice, names)] += 1
    records = [LeftOutRecord(*key, count) for key, count in counts.items()]
    more = len(lines) - sum(each.line_count for each in records)
    link = ("Bank details that wait for approval", BANK_DETAILS_URL) if reason == "bank_details_waiting" else None
    return LeftOutGroup(reason, SENTENCES[reason], len(lines), records, more, link)


def _record_of(reason: UnpaidReason, invoice: Invoice, names: Mapping[UUID, str | None]) -> tuple[str, str, str]:
    """The name, the page and a detail of the record that a line is listed under."""
    payee = payee_of(invoice)
    name = (names.get(payee.id) or "No name") if payee else "No payee"
    if payee and reason in OF_PAYEES:
        return name, payee_url(payee), ""
    return f"Invoice {invoice.invoice_number or 'without number'}", f"{PREFIX}/invoices/{invoice.id}", name


def payee_of(invoice: Invoice) -> Payee | None:
    """Who is paid for an invoice, whether or not the record exists."""
    if invoice.is_reimbursement:
        return Payee("participant", invoice.participant_id) if invoice.participant_id else None
    return Payee("provider", invoice.pm_provider_id) if invoice.pm_provider_id else None
