"""Sentences about the facts of an invoice's warnings."""

from functools import singledispatch

from plankeeper.core.formatting import format_date, format_decimal, format_money
from plankeeper.resources.invoices.warnings import (
    EarlierDuplicate,
    Fact,
    InactiveParticipant,
    MissingNumber,
    MissingRecord,
    WrongDate,
    WrongItemCode,
    WrongLine,
    WrongSubtotal,
    WrongTotal,
)

ITEM_CODE_EXAMPLE = "01_011_0107_1_1"


@singledispatch
def describe_fact(fact: Fact) -> str:
    """One sentence with the actual and the expected value."""
    raise TypeError(f"no sentence for {fact}")


@describe_fact.register
def _missing_number(_: MissingNumber) -> str:
    return "The invoice has no number."


@describe_fact.register
def _earlier_duplicate(_: EarlierDuplicate) -> str:
    return "An earlier invoice from this provider has the same number."


@describe_fact.register
def _inactive_participant(fact: InactiveParticipant) -> str:
    if fact.exit_date is None:
        return "The participant is inactive. No exit date is recorded."
    return f"The participant is inactive, with the exit date {format_date(fact.exit_date)}."


@describe_fact.register
def _wrong_item_code(fact: WrongItemCode) -> str:
    if not (fact.found or "").strip():
        return f"Line {fact.line} has no support item number."
    return f"Line {fact.line}: “{fact.found}” isn’t a valid number, such as {ITEM_CODE_EXAMPLE}."


@describe_fact.register
def _missing_record(fact: MissingRecord) -> str:
    if fact.id is None:
        return f"No {fact.kind} on this invoice."
    return f"The {fact.kind} of this invoice, {fact.id}, wasn’t found."


@describe_fact.register
def _wrong_line(fact: WrongLine) -> str:
    if fact.found is None:
        return f"Line {fact.line} has no amount."
    if fact.quantity is None or fact.unit_price is None or fact.expected is None:
        raise ValueError("a line without quantity or unit price has no expected total")
    product = f"{format_decimal(fact.quantity)} × {format_money(fact.unit_price)} is {format_money(fact.expected)}"
    return f"Line {fact.line}: {product}, the invoice says {format_money(fact.found)}."


@describe_fact.register
def _wrong_subtotal(fact: WrongSubtotal) -> str:
    found = "the invoice says" if fact.is_stated else "but the total less tax is"
    return f"The lines add up to {format_money(fact.expected)}, {found} {format_money(fact.found)}."


@describe_fact.register
def _wrong_total(fact: WrongTotal) -> str:
    if fact.subtotal is None or fact.expected is None:
        return "The invoice has no total."
    amounts = f"subtotal {format_money(fact.subtotal)} plus tax {format_money(fact.tax)}"
    if fact.found is None:
        return f"The invoice has no total. Its {amounts} is {format_money(fact.expected)}."
    return f"{amounts.capitalize()} is {format_money(fact.expected)}, the invoice says {format_money(fact.found)}."


@describe_fact.register
def _wrong_date(fact: WrongDate) -> str:
    if fact.found is None or fact.limit is None:
        return "The invoice has no date."
    days = "1 day" if fact.days == 1 else f"{fact.days:,} days"
    dated, limit = f"The invoice is dated {format_date(fact.found)}", format_date(fact.limit)
    if fact.problem == "in_future":
        return f"{dated}, which is {days} in the future."
    side = "before the plan starts" if fact.problem == "before_plan" else "after the plan ends"
    return f"{dated}, {days} {side} ({limit})."
