"""The warnings of an invoice, computed from its own values and those of its participant and provider."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from types import MappingProxyType
from typing import Literal, NamedTuple
from uuid import UUID

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
            "invoice", "No participant", "There is no participant on the invoice, or it isn’t found."
        ),
        "missing_provider": InvoiceWarning(
            "invoice", "No provider", "There is no provider on the invoice, or it isn’t found."
        ),
        "several_participants": InvoiceWarning(
            "invoice",
            "Several participants",
            "Several participants have the number that was sent, so the invoice has no participant.",
        ),
        "several_providers": InvoiceWarning(
            "invoice",
            "Several providers",
            "Several providers have the ABN that was sent, so the invoice has no provider.",
        ),
        "inactive_participant": InvoiceWarning(
            "invoice", "Participant is inactive", "The participant has left this plan manager."
        ),
        "check_total": InvoiceWarning(
            "invoice",
            "Amounts don’t add up",
            "The total is not the subtotal plus tax, the subtotal is not the sum of the lines, or a line is "
            "not its quantity times its unit price.",
        ),
        "check_dates": InvoiceWarning(
            "invoice",
            "Check the date",
            "The invoice date is missing, in the future, or outside the dates of the participant's plan.",
        ),
        "check_item_code": InvoiceWarning(
            "line_item",
            "Support item number isn’t valid",
            "A line has no support item number, or one that doesn’t have the form CC_SSS_RRRR_D_P.",
        ),
        "possible_duplicate": InvoiceWarning(
            "invoice",
            "Possible duplicate",
            "An earlier invoice from the same provider has the same number.",
        ),
        "same_document": InvoiceWarning(
            "invoice",
            "Same document",
            "Another invoice, which is neither cancelled nor deleted, has the same document.",
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
    id: UUID | None = None


class CheckInput(Struct, frozen=True):
    """The values that the checks use: of an invoice, its participant and its provider. Amounts are in dollars.

    `participant_status` is null if the participant doesn't exist; the plan's dates and the exit date are null if they
    are unknown. `ambiguous_participant_number` and `ambiguous_provider_abn` are those that several records have.
    `has_same_document`: another invoice, which is neither cancelled nor deleted, has a document with the same bytes.
    `has_earlier_duplicate`: an earlier invoice that isn't deleted has the same provider and number.
    """

    invoice_number: str | None
    invoice_date: date | None
    total: Decimal | None
    tax: Decimal | None
    subtotal: Decimal | None
    participant_id: UUID | None
    participant_status: str | None
    plan_start_date: date | None
    plan_end_date: date | None
    date_ceased: date | None
    pm_provider_id: UUID | None
    provider_exists: bool
    ambiguous_participant_number: str | None
    ambiguous_provider_abn: str | None
    has_same_document: bool
    has_earlier_duplicate: bool
    lines: list[CheckLine]


class MissingNumber(Struct, frozen=True):
    """The invoice has no number; `found` is null, or a text of nothing but spaces."""

    found: str | None


class MissingRecord(Struct, frozen=True):
    """The participant or provider that the invoice names doesn't exist; `id` is null if it names none."""

    kind: Literal["participant", "provider"]
    id: UUID | None


class SeveralRecords(Struct, frozen=True):
    """Several participants have the participant number that was sent, or several providers the ABN."""

    kind: Literal["participant", "provider"]
    number: str


class InactiveParticipant(Struct, frozen=True):
    """The participant is inactive, since `exit_date` if it is known."""

    exit_date: date | None


class WrongLine(Struct, frozen=True):
    """A line whose total isn't its quantity times its unit price. `line` counts from 1, with deleted lines.

    Without `found`, the line has no amount; then `expected` is null.
    """

    line: int
    quantity: Decimal | None
    unit_price: Decimal | None
    expected: Decimal | None
    found: Decimal | None


class WrongSubtotal(Struct, frozen=True):
    """The lines don't add up to the subtotal, or to the total less tax if the invoice states no subtotal."""

    expected: Decimal
    found: Decimal
    is_stated: bool


class WrongTotal(Struct, frozen=True):
    """The total isn't the subtotal plus tax. Without `found`, the invoice states amounts, but no total.

    `subtotal` is that of the lines if the invoice states none, and null if a line has no amount.
    """

    subtotal: Decimal | None
    tax: Decimal
    expected: Decimal | None
    found: Decimal | None


class WrongDate(Struct, frozen=True):
    """An invalid date of the invoice: it exceeds the day `limit` by `days`."""

    problem: Literal["missing", "in_future", "before_plan", "after_plan"]
    found: date | None = None
    limit: date | None = None
    days: int = 0


class WrongItemCode(Struct, frozen=True):
    """A line without a support item number, or with one of another form. `line` counts from 1."""

    line: int
    found: str | None


class EarlierDuplicate(Struct, frozen=True):
    """An earlier invoice of the same provider has this number."""

    number: str


class SameDocument(Struct, frozen=True):
    """Another invoice has the same document."""


Fact = (
    MissingNumber
    | MissingRecord
    | SeveralRecords
    | InactiveParticipant
    | WrongLine
    | WrongSubtotal
    | WrongTotal
    | WrongDate
    | WrongItemCode
    | EarlierDuplicate
    | SameDocument
)


def find_warnings(invoice: CheckInput, today: date) -> list[str]:
    """Return the codes of an invoice's warnings, each once, in the order of `WARNINGS`: those with facts.

    `today` is the date in the plan manager's time zone. Deleted lines don't count. A blank invoice number counts as
    missing. A participant with status Lead causes no warning: the first invoices often arrive before the agreement.
    """
    return list(find_facts(invoice, today))


def find_facts(invoice: CheckInput, today: date) -> dict[str, list[Fact]]:
    """Return the facts of each warning of an invoice, by the warning's code, in the order of `WARNINGS`."""
    found: dict[str, list[Fact]] = {
        "missing_invoice_number": list(_number_facts(invoice)),
        "missing_participant": list(_participant_facts(invoice)),
        "missing_provider": list(_provider_facts(invoice)),
        "several_participants": list(_several_facts("participant", _sent_participant(invoice))),
        "several_providers": list(_several_facts("provider", _sent_provider(invoice))),
        "inactive_participant": list(_status_facts(invoice)),
        "check_total": list(_amount_facts(invoice)),
        "check_dates": list(_date_facts(invoice, today)),
        "check_item_code": list(_item_code_facts(invoice)),
        "possible_duplicate": list(_duplicate_facts(invoice)),
        "same_document": [SameDocument()] if invoice.has_same_document else [],
    }
    return {code: facts for code in WARNINGS if (facts := found[code])}


def has_errors(codes: Iterable[str], ignored_codes: Iterable[str]) -> bool:
    """Whether any warning isn't ignored: the value of an invoice's `errors`."""
    return not set(codes) <= set(ignored_codes)


def is_item_code(text: str | None) -> bool:
    """Whether a text is a support item number, `CC_SSS_RRRR_D_P`: 2, 3 to 9, 4, 1 and 1 ASCII digits."""
    return text is not None and _ITEM_CODE.fullmatch(text) is not None


def _number_facts(invoice: CheckInput) -> Iterator[Fact]:
    if not (invoice.invoice_number or "").strip():
        yield MissingNumber(invoice.invoice_number)


def _participant_facts(invoice: CheckInput) -> Iterator[Fact]:
    if invoice.participant_status is None and _sent_participant(invoice) is None:
        yield MissingRecord("participant", invoice.participant_id)


def _provider_facts(invoice: CheckInput) -> Iterator[Fact]:
    if not invoice.provider_exists and _sent_provider(invoice) is None:
        yield MissingRecord("provider", invoice.pm_provider_id)


def _sent_participant(invoice: CheckInput) -> str | None:
    """The number that several participants have, if the invoice has no participant."""
    return invoice.ambiguous_participant_number if invoice.participant_id is None else None


def _sent_provider(invoice: CheckInput) -> str | None:
    """The ABN that several providers have, if the invoice has no provider."""
    return invoice.ambiguous_provider_abn if invoice.pm_provider_id is None else None


def _several_facts(kind: Literal["participant", "provider"], number: str | None) -> Iterator[Fact]:
    if number is not None:
        yield SeveralRecords(kind, number)


def _status_facts(invoice: CheckInput) -> Iterator[Fact]:
    if invoice.participant_status == "Inactive":
        yield InactiveParticipant(invoice.date_ceased)


def _duplicate_facts(invoice: CheckInput) -> Iterator[Fact]:
    if invoice.has_earlier_duplicate:
        yield EarlierDuplicate(invoice.invoice_number or "")


def _item_code_facts(invoice: CheckInput) -> Iterator[Fact]:
    for number, line in _counted_lines(invoice):
        if not is_item_code(line.service_item_number):
            yield WrongItemCode(number, line.service_item_number)


def _date_facts(invoice: CheckInput, today: date) -> Iterator[Fact]:
    day, starts, ends = invoice.invoice_date, invoice.plan_start_date, invoice.plan_end_date
    if day is None:
        yield WrongDate("missing")
        return
    if day > today:
        yield WrongDate("in_future", day, today, (day - today).days)
    if starts is not None and day < starts:
        yield WrongDate("before_plan", day, starts, (starts - day).days)
    if ends is not None and day > ends:
        yield WrongDate("after_plan", day, ends, (day - ends).days)


def _amount_facts(invoice: CheckInput) -> Iterator[Fact]:
    """Compare the stated amounts, as a person who pays the invoice would.

    Missing tax counts as zero. A missing subtotal is the total less tax, and a missing line total is quantity times
    unit price. If the invoice states any amount, it must state a total, every line must have an amount, and the lines
    must add up to the subtotal: an amount without a line cannot be claimed. An invoice without any amounts passes.
    """
    lines = _counted_lines(invoice)
    amounts = [_amount(line) for _, line in lines]
    stated = [amount for amount in amounts if amount is not None]
    tax = invoice.tax or Decimal(0)
    if invoice.total is None and invoice.subtotal is None and not tax and not stated:
        return
    yield from _line_facts(lines)
    sum_of_lines = sum(stated, Decimal(0)) if len(stated) == len(amounts) else None
    if invoice.total is None:
        subtotal = sum_of_lines if invoice.subtotal is None else invoice.subtotal
        yield WrongTotal(subtotal, tax, None if subtotal is None else subtotal + tax, None)
        return
    subtotal = invoice.total - tax if invoice.subtotal is None else invoice.subtotal
    if sum_of_lines is not None and not _is_close(subtotal, sum_of_lines):
        yield WrongSubtotal(sum_of_lines, subtotal, invoice.subtotal is not None)
    if not _is_close(invoice.total, subtotal + tax):
        yield WrongTotal(subtotal, tax, subtotal + tax, invoice.total)


def _line_facts(lines: Sequence[tuple[int, CheckLine]]) -> Iterator[Fact]:
    for number, line in lines:
        if _amount(line) is None:
            yield WrongLine(number, line.quantity, line.unit_price, None, None)
        elif not _line_total_matches(line):
            yield WrongLine(number, line.quantity, line.unit_price, _computed_total(line), line.total_price)


def _counted_lines(invoice: CheckInput) -> list[tuple[int, CheckLine]]:
    """The lines that aren't deleted, each with its number in the invoice."""
    return [(number, line) for number, line in enumerate(invoice.lines, start=1) if not line.is_deleted]


def _amount(line: CheckLine) -> Decimal | None:
    return _computed_total(line) if line.total_price is None else line.total_price


def _computed_total(line: CheckLine) -> Decimal | None:
    if line.quantity is None or line.unit_price is None:
        return None
    # `quantize` raises an error for numbers with more digits than the context's precision.
    return (line.quantity * line.unit_price * 100).to_integral_value(ROUND_HALF_UP) / 100


def _line_total_matches(line: CheckLine) -> bool:
    if line.quantity is None or line.unit_price is None or line.total_price is None:
        return True
    return _is_close(line.total_price, line.quantity * line.unit_price)


def _is_close(left: Decimal, right: Decimal) -> bool:
    # Issuers round half a cent either up or to the even cent: both are correct.
    return abs(left - right) <= _ROUNDING_TOLERANCE
