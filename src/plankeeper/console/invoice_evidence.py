"""The warnings of an invoice with their evidence: the facts of each, and the earlier invoices of duplicates."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import NamedTuple
from uuid import UUID

from plankeeper.console.routing import PageRequest
from plankeeper.console.warning_texts import describe_fact
from plankeeper.resources.invoices import check_store, store
from plankeeper.resources.invoices.check_store import IgnoredWarning, InvoiceToCheck
from plankeeper.resources.invoices.schemas import Invoice
from plankeeper.resources.invoices.warnings import (
    WARNINGS,
    Fact,
    InvoiceWarning,
    WrongItemCode,
    WrongLine,
    WrongSubtotal,
    WrongTotal,
    find_facts,
)

MAX_DUPLICATES = 5  # earlier invoices that a page shows
# An imported invoice can have a code that the catalogue lacks.
UNKNOWN_WARNING = InvoiceWarning("invoice", "Unknown warning", "The error catalogue doesn’t have this code.")
NO_LONGER_FOUND = "This was found by the last check, and no longer applies. The next check removes the warning."


class WarningCard(NamedTuple):
    """A warning of an invoice: a title, and a sentence for each fact. `ignored` is null unless a person ignored it."""

    code: str
    title: str
    sentences: Sequence[str]
    ignored: IgnoredWarning | None


class Evidence(NamedTuple):
    """The current results of an invoice's checks, and the values that they used."""

    checked: InvoiceToCheck
    facts: Mapping[str, Sequence[Fact]]
    earlier: Sequence[Invoice]

    @property
    def wrong_lines(self) -> dict[int, WrongLine]:
        """The lines with a wrong total or none, by number."""
        return {fact.line: fact for fact in self.facts.get("check_total", ()) if isinstance(fact, WrongLine)}

    @property
    def wrong_item_codes(self) -> dict[int, WrongItemCode]:
        facts = self.facts.get("check_item_code", ())
        return {fact.line: fact for fact in facts if isinstance(fact, WrongItemCode)}

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
            return WarningCard(code, f"{UNKNOWN_WARNING.title}: {code}", [UNKNOWN_WARNING.description], ignored)
        sentences = [describe_fact(fact) for fact in self.facts.get(code, ())]
        return WarningCard(code, warning.title, sentences or [NO_LONGER_FOUND], ignored)


async def find_evidence(request: PageRequest, invoice: Invoice, today: date) -> Evidence:
    """Check an invoice without storing the result, and read the earlier invoices that it may duplicate."""
    place = (request.db, request.plan_manager_id)
    [checked] = await check_store.get_many(*place, [invoice.id])
    facts = find_facts(checked, today)
    earlier: list[Invoice] = []
    if "possible_duplicate" in facts:
        ids = await check_store.earlier_duplicate_ids(*place, invoice.id, MAX_DUPLICATES)
        by_id: dict[UUID, Invoice] = {each.id: each for each in await store.get_many(*place, ids)}
        earlier = [by_id[each] for each in ids if each in by_id]
    return Evidence(checked, facts, earlier)
