"""The warnings of an invoice with their evidence: the facts of each, and the invoices that it may duplicate."""

from collections.abc import Mapping, Sequence
from datetime import date
from itertools import zip_longest
from typing import NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

from plankeeper.console.components.labels import humanize
from plankeeper.console.shell.record_limits import select_inside
from plankeeper.console.shell.routing import PageRequest
from plankeeper.core.fields import unset_to_none
from plankeeper.core.formatting import (
    format_date,
    format_datetime,
    format_decimal,
    format_money,
)
from plankeeper.core.ids import parse_uuid
from plankeeper.resources.invoices import check_store, store
from plankeeper.resources.invoices.check_results import find_facts_of, levels_of
from plankeeper.resources.invoices.check_store import IgnoredWarning, InvoiceToCheck
from plankeeper.resources.invoices.facts import Fact, WrongItemCode, WrongLine, WrongSubtotal, WrongTotal
from plankeeper.resources.invoices.schemas import Amount, Invoice, LineItem
from plankeeper.resources.invoices.warning_details import NO_LONGER_FOUND, warning_codes
from plankeeper.resources.invoices.warnings import WARNINGS, InvoiceWarning, Level, level_of

MAX_RELATED = 5  # earlier invoices, and those with the same document, that a page shows
# An imported invoice can have a code that the catalogue lacks.
UNKNOWN_WARNING = InvoiceWarning("invoice", "Unknown warning", "The error catalogue doesn’t have this code.")


class WarningCard(NamedTuple):
    """A warning of an invoice: a title, and a sentence for each fact. `ignored` is null unless a person ignored it."""

    code: str
    title: str
    level: Level
    sentences: Sequence[str]
    ignored: IgnoredWarning | None


class Evidence(NamedTuple):
    """The current results of an invoice's checks, and the values that they used."""

    checked: InvoiceToCheck
    facts: Mapping[str, list[Fact]]
    earlier: Sequence[Invoice]
    same_document: Sequence[Invoice]
    same_line: Sequence[Invoice]

    @property
    def wrong_lines(self) -> dict[int, WrongLine]:
        """The lines with a wrong total or none, by number."""
        return {
            fact.line: fact for fact in self.facts.get("check_total", ()) if isinstance(fact, WrongLine) and fact.line
        }

    @property
    def wrong_item_codes(self) -> dict[int, WrongItemCode]:
        facts = self.facts.get("check_item_code", ())
        return {fact.line: fact for fact in facts if isinstance(fact, WrongItemCode) and fact.line}

    @property
    def wrong_subtotal(self) -> WrongSubtotal | None:
        facts = self.facts.get("check_total", ())
        return next((fact for fact in facts if isinstance(fact, WrongSubtotal)), None)

    @property
    def wrong_total(self) -> WrongTotal | None:
        facts = self.facts.get("check_total", ())
        return next((fact for fact in facts if isinstance(fact, WrongTotal)), None)

    def card(self, code: str, reasons: Sequence[IgnoredWarning] = ()) -> WarningCard:
        """The card of a warning that the invoice has."""
        ignored = next((each for each in reasons if each.error_code == code), None)
        warning = WARNINGS.get(code)
        if warning is None:
            title, sentences = f"{UNKNOWN_WARNING.title}: {code}", [UNKNOWN_WARNING.description]
            return WarningCard(code, title, UNKNOWN_WARNING.level, sentences, ignored)
        sentences = [fact.sentence for fact in self.facts.get(code, ())]
        level = level_of(code, levels_of(self.checked))
        return WarningCard(code, warning.title, level, sentences or [NO_LONGER_FOUND], ignored)

    def codes(self, invoice: Invoice) -> list[str]:
        """The warnings of the invoice that aren't ignored, and what only informs."""
        ignored = invoice.state_management.ignored_errors
        return [code for code in warning_codes(invoice, self.checked, dict(self.facts)) if code not in ignored]


async def find_evidence(request: PageRequest, invoice: Invoice, today: date) -> Evidence:
    """Check an invoice without storing the result, and read the invoices that it may duplicate."""
    place = (request.db, request.plan_manager_id)
    [checked] = await check_store.get_many(*place, [invoice.id])
    facts = (await find_facts_of(*place, [checked], today))[invoice.id]
    earlier: list[Invoice] = []
    same_document: list[Invoice] = []
    same_line: list[Invoice] = []
    if "possible_duplicate" in facts:
        ids = await check_store.earlier_duplicate_ids(*place, invoice.id, MAX_RELATED)
        earlier = await _get_visible(request, ids)
    if "same_document" in facts:
        ids = await check_store.same_document_ids(*place, invoice.id, MAX_RELATED)
        same_document = await _get_visible(request, ids)
    if "line_duplicate" in facts:
        ids = await check_store.same_line_ids(*place, invoice.id, MAX_RELATED)
        same_line = await _get_visible(request, ids)
    return Evidence(checked, facts, earlier, same_document, same_line)


async def _get_visible(request: PageRequest, ids: Sequence[UUID]) -> list[Invoice]:
    """The invoices with these ids that the account can see, in their order."""
    visible = await select_inside(request, "invoice", ids)
    by_id = {each.id: each for each in await store.get_many(request.db, request.plan_manager_id, visible)}
    return [by_id[each] for each in visible if each in by_id]


NOTHING = "—"
CONTENT_COUNT = 5  # values before the lines
HANDLING = {"Claim status", "Approval status", "Received", "Document"}


class ComparedValue(NamedTuple):
    """A row of the comparison: the texts for both invoices. Only the content of an invoice can differ.

    The status, the time of receipt and the document of an invoice don't indicate a duplicate.
    """

    label: str
    this: str
    other: str
    is_content: bool

    @property
    def differs(self) -> bool:
        return self.is_content and self.this != self.other


class Comparison(NamedTuple):
    """An invoice beside an earlier one."""

    other: Invoice
    values: list[ComparedValue]

    @property
    def difference_count(self) -> int:
        return sum(each.differs for each in self.values)


def compare_invoices(this: Invoice, other: Invoice, names: Mapping[UUID, str | None], zone: ZoneInfo) -> Comparison:
    """The comparison of an invoice with an earlier one of the same provider and number."""
    columns = [_values(each, names, zone) for each in (this, other)]
    values = [ComparedValue(label, columns[0][label], columns[1][label], label not in HANDLING) for label in columns[0]]
    lines = zip_longest(
        *(
            [_line_text(line) for line in unset_to_none(each.line_items) or [] if not line.is_deleted]
            for each in (this, other)
        )
    )
    values[CONTENT_COUNT:CONTENT_COUNT] = [
        ComparedValue(f"Line {number}", texts[0] or NOTHING, texts[1] or NOTHING, is_content=True)
        for number, texts in enumerate(lines, start=1)
    ]
    return Comparison(other, values)


def _values(invoice: Invoice, names: Mapping[UUID, str | None], zone: ZoneInfo) -> dict[str, str]:
    participant = invoice.participant_id
    return {
        "Invoice date": format_date(invoice.invoice_date) if invoice.invoice_date else NOTHING,
        "Participant": (names.get(participant) or "No name") if participant else NOTHING,
        "Subtotal": _money(invoice.subtotal),
        "Tax": _money(invoice.tax),
        "Total": _money(invoice.total),
        "Claim status": humanize(invoice.claim_status),
        "Approval status": humanize(invoice.approval_status),
        "Received": format_datetime(invoice.received_at, zone),
        "Document": file_name(invoice.s3_key) or NOTHING,
    }


def _line_text(line: LineItem) -> str:
    """`Lawn mowing · 01_011_0107_1_1 · 3 Nov 2026 · 2 × $50.00 · $100.00`."""
    days = dict.fromkeys(format_date(each) for each in (line.service_date_from, line.service_date_to) if each)
    price = ""
    if line.quantity is not None and line.unit_price is not None:
        price = f"{format_decimal(line.quantity)} × {format_money(line.unit_price)}"
    parts = (line.description, line.service_item_number, " – ".join(days), price, _money(line.total_price))
    return " · ".join(each for each in parts if each)


def _money(value: Amount) -> str:
    return NOTHING if value is None else format_money(value)


def file_name(key: str | None) -> str | None:
    """The name of a document's file, the last part of its key, or its kind if the name is an ID; null without one."""
    name = (key or "").rstrip("/").rpartition("/")[2] or key or None
    stem, _, suffix = (name or "").partition(".")
    return f"{suffix.upper()} file".lstrip() if parse_uuid(stem) else name
