"""Where an invoice stands, in two sentences: why it is there and since when, and what comes next."""

from collections.abc import Callable, Sequence
from datetime import date, datetime
from typing import NamedTuple
from zoneinfo import ZoneInfo

from plankeeper.core.fields import unset_to_none
from plankeeper.core.formatting import format_date
from plankeeper.resources.invoices.schemas import ClaimStatus, Invoice
from plankeeper.resources.office_settings.service_standard import UNCLAIMED, ServiceStandard

MAX_TITLES = 3  # of warnings that the sentence names


class InvoiceStatus(NamedTuple):
    """`now`: `Held since 3 Nov by Alex: price above limit.` `next`: `Next: release it.` Both are whole sentences."""

    now: str
    next: str


def describe_status(
    invoice: Invoice, warnings: Sequence[str], today: date, zone: ZoneInfo, decided_by: str = ""
) -> InvoiceStatus:
    """The sentences about an invoice with its lines.

    `warnings` are the titles of those that count, and `decided_by` is the name of who has rejected the approval.
    """

    def day(value: datetime) -> str:
        return _day(value.astimezone(zone).date(), today)

    if invoice.is_deleted:
        return InvoiceStatus("Deleted.", "It is neither claimed nor paid.")
    if invoice.claim_status in ("cancelled", "on_hold"):
        describe = _cancelled if invoice.claim_status == "cancelled" else _held
        return describe(invoice, warnings, day)
    if invoice.wont_claim and invoice.claim_status in ("new", "flagged", "rejected"):
        now = f"Won’t be claimed{_reason(invoice.closing_reason)}"
        return InvoiceStatus(now, "Next: nothing, unless you reopen it.")
    if invoice.claim_status in ("new", "flagged"):
        return _waiting(invoice, warnings, day, decided_by)
    return _in_progress(invoice)


def describe_standard(invoice: Invoice, standard: ServiceStandard, today: date, zone: ZoneInfo) -> str:
    """When an invoice is expected to be claimed and paid, and whether it is late; empty if it is closed."""
    is_closed = invoice.is_deleted or invoice.wont_claim or invoice.claim_status in ("paid", "cancelled")
    if is_closed:
        return ""
    received = invoice.received_at.astimezone(zone).date()
    claim_by, pay_by = standard.claim_by(received), standard.pay_by(received)
    if is_late(invoice, standard, today, zone):
        return f"Late: by the service standard, it should have been claimed by {_day(claim_by, today)}."
    if invoice.claim_status in UNCLAIMED:
        return f"Expected to be claimed by {_day(claim_by, today)}, and paid by {_day(pay_by, today)}."
    start = "Expected" if pay_by >= today else "Was expected"
    return f"{start} to be paid by {_day(pay_by, today)}."


def is_late(invoice: Invoice, standard: ServiceStandard, today: date, zone: ZoneInfo) -> bool:
    """Whether an invoice isn't claimed yet, although the service standard says so."""
    is_open = not (invoice.is_deleted or invoice.wont_claim) and invoice.claim_status in UNCLAIMED
    return is_open and invoice.received_at.astimezone(zone).date() < standard.first_in_time(today)


def _cancelled(invoice: Invoice, _warnings: Sequence[str], day: Callable[[datetime], str]) -> InvoiceStatus:
    since = f" since {day(invoice.cancelled_at)}" if invoice.cancelled_at else ""
    now = f"Cancelled{since}{_reason(invoice.closing_reason)}"
    return InvoiceStatus(now, "Next: nothing, unless you reopen it.")


def _held(invoice: Invoice, warnings: Sequence[str], day: Callable[[datetime], str]) -> InvoiceStatus:
    since = f" since {day(invoice.held_at)}" if invoice.held_at else ""
    by = f" by {invoice.held_by}" if invoice.held_by else ""
    now = f"Held{since}{by}{_reason(invoice.hold_reason)}"
    if warnings:
        return InvoiceStatus(now, f"Next: settle {_count(warnings)} ({_titles(warnings)}), then release it.")
    return InvoiceStatus(now, "Next: release it.")


def _waiting(
    invoice: Invoice, warnings: Sequence[str], day: Callable[[datetime], str], decided_by: str
) -> InvoiceStatus:
    """An invoice that isn't claimed yet: what keeps it from being claimed, the first of several reasons."""
    received = f"Received {day(invoice.received_at)}"
    if invoice.claim_status == "flagged":
        received += ", and left out of the last claim"
    if invoice.approval_status == "rejected":
        rejected = _rejected(invoice, day, decided_by)
        also = f" It also has {_count(warnings)}: {_titles(warnings)}." if warnings else ""
        return InvoiceStatus(f"{received}, and {rejected}{also}", "Next: correct it and ask again, or cancel it.")
    if warnings:
        now = f"{received}, with {_count(warnings)}: {_titles(warnings)}."
        return InvoiceStatus(now, "Next: correct the invoice, or ignore the warning with a reason.")
    if invoice.approval_status == "pending":
        return InvoiceStatus(
            f"{received}, and waiting for approval.", "Next: the participant or a nominee approves it."
        )
    return InvoiceStatus(f"{received}. Nothing is left to check.", "Next: claim it.")


def _rejected(invoice: Invoice, day: Callable[[datetime], str], decided_by: str) -> str:
    """`rejected by Ann Lee on 3 Nov: too expensive.`; `not approved.` for an imported state."""
    if invoice.approval_decided_at is None:
        return "not approved."
    by = f" by {decided_by}" if decided_by else ""
    return f"rejected{by} on {day(invoice.approval_decided_at)}{_reason(invoice.approval_reason)}"


def _in_progress(invoice: Invoice) -> InvoiceStatus:
    payee = "the participant" if invoice.payee == "participant" else "the provider"
    rejections = (each.rejection_reason for each in unset_to_none(invoice.line_items) or [] if not each.is_deleted)
    rejection = next((each for each in rejections if each), None)
    sentences: dict[ClaimStatus, tuple[str, str]] = {
        "pending": ("Claimed, and not decided yet.", "Next: the agency’s decision."),
        "rejected": (
            f"The agency has rejected it{_reason(rejection)}",
            "Next: correct the lines, or claim them again.",
        ),
        "payment_ready": ("The agency has paid for it.", f"Next: pay {payee}."),
        "partially_ready": (
            "The agency has paid for a part of it.",
            f"Next: pay {payee} that part, and follow up the rest.",
        ),
        "partially_paid": ("A part of it is paid.", "Next: follow up the rest."),
        "paid": ("Paid.", "Nothing is left to do."),
    }
    return InvoiceStatus(*sentences[invoice.claim_status])


def _reason(text: str | None) -> str:
    """The end of a sentence, with a reason if there is one."""
    if not (text or "").strip():
        return "."
    line = " ".join(str(text).split())
    return f": {line}" if line.endswith((".", "!", "?")) else f": {line}."


def _count(warnings: Sequence[str]) -> str:
    return "1 open warning" if len(warnings) == 1 else f"{len(warnings)} open warnings"


def _titles(warnings: Sequence[str]) -> str:
    more = f" and {len(warnings) - MAX_TITLES} more" if len(warnings) > MAX_TITLES else ""
    return ", ".join(warnings[:MAX_TITLES]) + more


def _day(value: date, today: date) -> str:
    """`3 Nov`, with the year unless it is this year."""
    return format_date(value).removesuffix(f" {today.year}")
