"""Where an invoice stands, in two sentences: why it is there and since when, and what comes next."""

from collections.abc import Callable, Sequence
from datetime import date, datetime
from typing import NamedTuple
from zoneinfo import ZoneInfo

from plankeeper.core.fields import unset_to_none
from plankeeper.core.formatting import format_date
from plankeeper.resources.invoices.changes import to_line_rows, to_line_state
from plankeeper.resources.invoices.schemas import ClaimStatus, Invoice
from plankeeper.resources.invoices.states import waiting_line_status
from plankeeper.resources.office_settings.service_standard import UNCLAIMED, ServiceStandard

MAX_TITLES = 3  # of warnings and rejections that the sentence names
MAX_LINES = 5  # that one sentence names


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
    waiting = waiting_line_status(invoice.claim_status, map(to_line_state, to_line_rows(invoice)))
    if waiting == "rejected":
        return _with_rejected_lines(invoice, warnings, day, decided_by)
    if invoice.claim_status in ("new", "flagged"):
        return _waiting(invoice, warnings, day, decided_by, is_flagged=invoice.claim_status == "flagged")
    status = _in_progress(invoice)
    if waiting == "flagged" or (waiting and (warnings or invoice.approval_status in ("pending", "rejected"))):
        rest = _waiting(invoice, warnings, day, decided_by, is_flagged=waiting == "flagged")
        status = InvoiceStatus(f"{status.now} {_unclaimed_lines(invoice)} {rest.now}", rest.next)
    return status


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
    if _numbers(invoice, ("rejected",)):
        now += f" {_rejections(invoice)}"
    if warnings:
        return InvoiceStatus(now, f"Next: settle {_count(warnings)} ({_titles(warnings)}), then release it.")
    return InvoiceStatus(now, "Next: release it.")


def _waiting(
    invoice: Invoice,
    warnings: Sequence[str],
    day: Callable[[datetime], str],
    decided_by: str,
    *,
    is_flagged: bool,
) -> InvoiceStatus:
    """An invoice that isn't claimed yet: what keeps it from being claimed, the first of several reasons."""
    received = f"Received {day(invoice.received_at)}"
    if is_flagged:
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


def _with_rejected_lines(
    invoice: Invoice, warnings: Sequence[str], day: Callable[[datetime], str], decided_by: str
) -> InvoiceStatus:
    """An invoice with lines that the agency has rejected, beside others in any state."""
    is_partly_claimed = invoice.claim_status not in ("rejected", "new", "flagged")
    now = [*([_in_progress(invoice).now] if is_partly_claimed else []), _rejections(invoice)]
    if invoice.approval_status == "rejected":
        now.append(f"It was {_rejected(invoice, day, decided_by)}")
    elif invoice.approval_status == "pending":
        now.append("It also waits for approval.")
    if warnings:
        now.append(f"It also has {_count(warnings)}: {_titles(warnings)}.")
    numbers = _numbers(invoice, ("rejected",))
    it = "them" if len(numbers) > 1 else "it"
    return InvoiceStatus(
        " ".join(now), f"Next: correct {_lines(numbers) if numbers else it}, claim {it} again, or cancel {it}."
    )


def _rejections(invoice: Invoice) -> str:
    """The rejected lines with the agency's words, a sentence for each reason: `The agency has rejected line 3: C11.`"""
    lines = [each for each in enumerate(unset_to_none(invoice.line_items) or [], 1) if not each[1].is_deleted]
    by_reason = dict[str | None, list[int]]()
    for number, line in lines:
        if line.claim_status == "rejected":
            by_reason.setdefault(line.rejection_reason, []).append(number)
    if not by_reason:  # only the invoice was imported so
        rejection = next((each.rejection_reason for _, each in lines if each.rejection_reason), None)
        return f"The agency has rejected it{_reason(rejection)}"
    sentences = [f"The agency has rejected {_lines(numbers)}{_reason(why)}" for why, numbers in by_reason.items()]
    more = len(sentences) - MAX_TITLES
    return " ".join([*sentences[:MAX_TITLES], *(["Other lines are rejected for other reasons."] if more > 0 else [])])


def _unclaimed_lines(invoice: Invoice) -> str:
    """The lines that aren't claimed yet, beside others that are: `Line 2 isn’t claimed yet.`"""
    numbers = _numbers(invoice, ("new", "flagged", "on_hold"))
    return f"{_lines(numbers).capitalize()} {'isn’t' if len(numbers) == 1 else 'aren’t'} claimed yet."


def _numbers(invoice: Invoice, statuses: Sequence[ClaimStatus]) -> list[int]:
    """The numbers of the lines in one of these states, from 1, with deleted lines."""
    lines = enumerate(unset_to_none(invoice.line_items) or [], 1)
    return [number for number, each in lines if not each.is_deleted and each.claim_status in statuses]


def _lines(numbers: Sequence[int]) -> str:
    """`line 3`, `lines 1 and 3`, `lines 1, 2, 3, 4 and 5 more`."""
    shown = [str(each) for each in numbers]
    if len(shown) > MAX_LINES:
        shown[MAX_LINES - 1 :] = [f"{len(shown) - MAX_LINES + 1} more"]
    return f"line {shown[0]}" if len(shown) == 1 else f"lines {', '.join(shown[:-1])} and {shown[-1]}"


def _in_progress(invoice: Invoice) -> InvoiceStatus:
    payee = "the participant" if invoice.payee == "participant" else "the provider"
    sentences: dict[ClaimStatus, tuple[str, str]] = {
        "pending": ("Claimed, and not decided yet.", "Next: the agency’s decision."),
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
