"""The warnings of an invoice, computed from its own values and those of its participant and provider."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from types import MappingProxyType
from typing import Literal, NamedTuple

from msgspec import Struct

_ITEM_CODE = re.compile(r"[0-9]{2}_[0-9]{3,9}_[0-9]{4}_[0-9]_[0-9]")
_ROUNDING_TOLERANCE = Decimal("0.005")


class InvoiceWarning(NamedTuple):
    """The explanation of a warning: where it applies, a short title, one sentence."""

    applies_to: Literal["invoice", "line_item"]
    title: str
    description: str


WARNINGS: Mapping[str, InvoiceWarning] = MappingProxyType(
    {
        "missing_invoice_number": InvoiceWarning(
            "invoice", "No invoice number", "The invoice has no number, so it cannot be distinguished from others."
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
"""All warnings, in the order in which `find_warnings` returns them."""


class CheckLine(Struct, frozen=True):
    """The values of an invoice line that the checks use. Amounts are in dollars."""

    quantity: Decimal | None
    unit_price: Decimal | None
    total_price: Decimal | None
    service_item_number: str | None
    is_deleted: bool


class CheckInput(Struct, frozen=True):
    """The values that the checks use: of an invoice, its participant and its provider. Amounts are in dollars.

    `participant_status` is null if the participant doesn't exist; the plan's dates are null if they are unknown.
    `has_earlier_duplicate`: an earlier invoice that isn't deleted has the same provider and number.
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
    lines: list[CheckLine]


def find_warnings(invoice: CheckInput, today: date) -> list[str]:
    """Return the codes of an invoice's warnings, each once, in the order of `WARNINGS`.

    `today` is the date in the plan manager's time zone. Deleted lines don't count. A blank invoice number counts as
    missing. A participant with status Lead causes no warning: the first invoices often arrive before the agreement.
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
    """Whether any warning remains that nobody has ignored: the value of an invoice's `errors`."""
    return not set(codes) <= set(ignored_codes)


def is_item_code(text: str | None) -> bool:
    """Whether a text is a support item number, `CC_SSS_RRRR_D_P`: 2, 3 to 9, 4, 1 and 1 ASCII digits."""
    return text is not None and _ITEM_CODE.fullmatch(text) is not None


def _is_within_plan(invoice: CheckInput, today: date) -> bool:
    day = invoice.invoice_date
    if day is None or day > today:
        return False
    starts, ends = invoice.plan_start_date, invoice.plan_end_date
    return (starts is None or starts <= day) and (ends is None or day <= ends)


def _totals_match(invoice: CheckInput, lines: Sequence[CheckLine]) -> bool:
    """Compare the stated amounts, as a person who pays the invoice would.

    Missing tax counts as zero. A missing subtotal is the total less tax, and a missing line total is quantity times
    unit price. If the invoice states any amount, it must state a total, every line must have an amount, and the lines
    must add up to the subtotal: an amount without a line cannot be claimed. An invoice without any amounts passes.
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
    # `quantize` raises an error for numbers with more digits than the context's precision.
    return (line.quantity * line.unit_price * 100).to_integral_value(ROUND_HALF_UP) / 100


def _line_total_matches(line: CheckLine) -> bool:
    if line.quantity is None or line.unit_price is None or line.total_price is None:
        return True
    return _is_close(line.total_price, line.quantity * line.unit_price)


def _is_close(left: Decimal, right: Decimal) -> bool:
    # Issuers round half a cent either up or to the even cent: both are correct.
    return abs(left - right) <= _ROUNDING_TOLERANCE
