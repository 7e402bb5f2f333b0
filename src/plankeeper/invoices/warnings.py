"""What makes an invoice doubtful: its warnings, computed from plain facts."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from types import MappingProxyType
from typing import Literal, NamedTuple

_ITEM_CODE = re.compile(r"[0-9]{2}_[0-9]{3,9}_[0-9]{4}_[0-9]_[0-9]")
_ROUNDING_TOLERANCE = Decimal("0.005")


class InvoiceWarning(NamedTuple):
    """How a warning is explained to people: where it applies, a short title, one sentence."""

    applies_to: Literal["invoice", "line_item"]
    title: str
    description: str


WARNINGS: Mapping[str, InvoiceWarning] = MappingProxyType(
    {
        "missing_invoice_number": InvoiceWarning(
            "invoice", "No invoice number", "The invoice has no number, so it cannot be told from another."
        ),
        "missing_participant": InvoiceWarning(
            "invoice", "No participant", "The invoice names no participant, or one who is not on record."
        ),
        "missing_provider": InvoiceWarning(
            "invoice", "No provider", "The invoice names no provider, or one who is not on record."
        ),
        "inactive_participant": InvoiceWarning(
            "invoice", "Participant is inactive", "The participant has left this plan manager."
        ),
        "check_total": InvoiceWarning(
            "invoice",
            "Amounts do not add up",
            "The total is not the subtotal plus tax, the subtotal is not the sum of the lines, or a line is "
            "not its quantity times its unit price.",
        ),
        "check_dates": InvoiceWarning(
            "invoice",
            "Date needs checking",
            "The invoice date is missing, in the future, or outside the dates of the participant's plan.",
        ),
        "check_item_code": InvoiceWarning(
            "line_item",
            "Support item number is not well formed",
            "A line has no support item number, or one that is not of the form CC_SSS_RRRR_D_P.",
        ),
        "possible_duplicate": InvoiceWarning(
            "invoice",
            "Possible duplicate",
            "An earlier invoice of the same provider has the same invoice number.",
        ),
    }
)
"""Every warning there is, in the order in which `findings` reports them (decisions, section 7)."""


class CheckLine(NamedTuple):
    """One line of an invoice. Amounts in dollars; `total_price` is `quantity` times `unit_price`."""

    quantity: Decimal | None
    unit_price: Decimal | None
    total_price: Decimal | None
    service_item_number: str | None
    is_deleted: bool


class CheckInput(NamedTuple):
    """All that the rules need to know about one invoice and what it refers to. Amounts in dollars.

    `participant_status` is None where there is no such participant; the plan's dates are None where they
    are not known. `has_earlier_duplicate`: an earlier, not deleted invoice has the same provider and number.
    """

    invoice_number: str | None
    invoice_date: date | None
    total: Decimal | None
    tax: Decimal | None
    subtotal: Decimal | None
    participant_status: str | None
    plan_start_date: date | None
    plan_end_date: date | None
    provider_exists: bool
    has_earlier_duplicate: bool
    lines: Sequence[CheckLine]


def find_warnings(invoice: CheckInput, today: date) -> list[str]:
    """Give the codes of all warnings of one invoice, each at most once, in the order of `WARNINGS`.

    `today` is the plan manager's. Deleted lines do not count. A blank invoice number is a missing one. A Lead
    is not warned of: someone's first invoices often come while they are still being signed up. The rules are
    those of the decisions, section 7.
    """
    lines = [line for line in invoice.lines if not line.is_deleted]
    results = {
        "missing_invoice_number": not (invoice.invoice_number or "").strip(),
        "missing_participant": invoice.participant_status is None,
        "missing_provider": not invoice.provider_exists,
        "inactive_participant": invoice.participant_status == "Inactive",
        "check_total": not _totals_match(invoice, lines),
        "check_dates": not _is_within_plan(invoice, today),
        "check_item_code": not all(is_item_code(line.service_item_number) for line in lines),
        "possible_duplicate": invoice.has_earlier_duplicate,
    }
    return [code for code in WARNINGS if results[code]]


def has_errors(codes: Iterable[str], ignored_codes: Iterable[str]) -> bool:
    """Say whether any warning is left that nobody chose to ignore: an invoice's `errors`."""
    return not set(codes) <= set(ignored_codes)


def is_item_code(text: str | None) -> bool:
    """Say whether this is a support item number, `CC_SSS_RRRR_D_P`: 2, 3 to 9, 4, 1 and 1 ASCII digits."""
    return text is not None and _ITEM_CODE.fullmatch(text) is not None


def _is_within_plan(invoice: CheckInput, today: date) -> bool:
    day = invoice.invoice_date
    if day is None or day > today:
        return False
    starts, ends = invoice.plan_start_date, invoice.plan_end_date
    return (starts is None or starts <= day) and (ends is None or day <= ends)


def _totals_match(invoice: CheckInput, lines: Sequence[CheckLine]) -> bool:
    """Compare the amounts that are stated, as someone who is about to pay the invoice would.

    Missing tax is none. A missing subtotal is the total less tax, and a line's missing total is its quantity
    times its unit price: what the rest determines may go unsaid. A total must be said, and every line must
    have an amount, as soon as there is any amount to hold them against; an invoice that states none passes.
    An amount that no line explains does not: nothing could be claimed for it.
    """
    tax = invoice.tax or Decimal(0)
    amounts = [_amount(line) for line in lines]
    if invoice.total is None:
        return invoice.subtotal is None and not tax and all(amount is None for amount in amounts)
    subtotal = invoice.total - tax if invoice.subtotal is None else invoice.subtotal
    stated = [amount for amount in amounts if amount is not None]
    return (
        len(stated) == len(amounts)
        and all(_line_total_matches(line) for line in lines)
        and _is_close(invoice.total, subtotal + tax)
        and _is_close(subtotal, sum(stated, Decimal(0)))
    )


def _amount(line: CheckLine) -> Decimal | None:
    if line.total_price is not None or line.quantity is None or line.unit_price is None:
        return line.total_price
    # Not quantize, which refuses a number of more digits than it has places for.
    return (line.quantity * line.unit_price * 100).to_integral_value(ROUND_HALF_UP) / 100


def _line_total_matches(line: CheckLine) -> bool:
    if line.quantity is None or line.unit_price is None or line.total_price is None:
        return True
    return _is_close(line.total_price, line.quantity * line.unit_price)


def _is_close(left: Decimal, right: Decimal) -> bool:
    # Half a cent is as often rounded up as to the even cent: either is right.
    return abs(left - right) <= _ROUNDING_TOLERANCE
