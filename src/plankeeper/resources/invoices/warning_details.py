"""The warnings of invoices with their facts: as the API returns them, and a sentence for each fact."""

from collections.abc import Mapping, Sequence
from datetime import date
from functools import singledispatch
from typing import Any
from uuid import UUID

from plankeeper.core.formatting import format_date, format_decimal, format_money
from plankeeper.database.client import Executor
from plankeeper.resources.invoices import check_store
from plankeeper.resources.invoices.check_store import InvoiceToCheck
from plankeeper.resources.invoices.schemas import IgnoredBy, Invoice, WarningDetails
from plankeeper.resources.invoices.warnings import (
    EarlierDuplicate,
    Fact,
    InactiveParticipant,
    MissingNumber,
    MissingRecord,
    SameDocument,
    SeveralRecords,
    WrongDate,
    WrongItemCode,
    WrongLine,
    WrongSubtotal,
    WrongTotal,
    find_facts,
)

NO_LONGER_FOUND = "This was found by the last check, and no longer applies. The next check removes the warning."
RELATED_CODES = frozenset({"possible_duplicate", "same_document"})  # those about another invoice


async def add_warnings(db: Executor, plan_manager_id: UUID, invoices: Sequence[Invoice], today: date) -> None:
    """Set `warnings` of invoices: the warnings of the last check, with the facts of today."""
    ids = [each.id for each in invoices if each.state_management.errors]
    checked = {each.id: each for each in await check_store.get_many(db, plan_manager_id, ids)} if ids else {}
    ignored = {
        (each.invoice_id, each.error_code): IgnoredBy(each.ignored_by, each.ignored_at, each.reason)
        for each in (await check_store.list_ignored_of(db, plan_manager_id, ids) if ids else [])
    }
    similar = [each.id for each in invoices if RELATED_CODES & {*each.state_management.errors}]
    related = dict[tuple[UUID, str], UUID | None]()
    for each in await check_store.list_related(db, plan_manager_id, similar) if similar else []:
        related[each.id, "possible_duplicate"] = each.earlier_id
        related[each.id, "same_document"] = each.same_document_id
    for invoice in invoices:
        invoice.warnings = []
        if invoice.id in checked:
            facts = find_facts(checked[invoice.id], today)
            for code in invoice.state_management.errors:
                by = ignored.get((invoice.id, code), IgnoredBy(None, None, None))
                is_ignored = code in invoice.state_management.ignored_errors
                details = _details(code, facts, checked[invoice.id], by if is_ignored else None)
                for each in details:
                    each.related_invoice_id = related.get((invoice.id, code))
                invoice.warnings += details


def _details(
    code: str, facts: Mapping[str, Sequence[Fact]], checked: InvoiceToCheck, ignored: IgnoredBy | None
) -> list[WarningDetails]:
    found = facts.get(code)
    if not found:
        return [WarningDetails(code, "warn", None, None, None, None, NO_LONGER_FOUND, ignored)]
    return [
        WarningDetails(code, "warn", _line_id(fact, checked), *_values(fact), None, describe_fact(fact), ignored)
        for fact in found
    ]


def _line_id(fact: Fact, checked: InvoiceToCheck) -> UUID | None:
    return checked.lines[fact.line - 1].id if isinstance(fact, WrongLine | WrongItemCode) else None


def _values(fact: Fact) -> tuple[Any, Any]:
    """What would be right, and what the invoice says."""
    values: tuple[Any, Any] = (None, None)
    match fact:
        case WrongLine() | WrongSubtotal() | WrongTotal():
            values = fact.expected, fact.found
        case WrongDate():
            values = fact.limit, fact.found
        case MissingNumber() | WrongItemCode():
            values = None, fact.found
        case MissingRecord():
            values = None, fact.id
        case InactiveParticipant():
            values = None, fact.exit_date
        case SeveralRecords() | EarlierDuplicate():
            values = None, fact.number
        case SameDocument():
            pass
    return values


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
def _same_document(_: SameDocument) -> str:
    return "Another invoice has the same document."


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
def _several_records(fact: SeveralRecords) -> str:
    label = "number" if fact.kind == "participant" else "ABN"
    return f"Several {fact.kind}s have the {label} {fact.number}, so the invoice has no {fact.kind}."


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
