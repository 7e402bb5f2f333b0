"""The warnings of invoices with their facts, as the API returns them."""

from collections.abc import Sequence
from datetime import date
from uuid import UUID

from plankeeper.database.client import Executor
from plankeeper.resources.invoices import check_store
from plankeeper.resources.invoices.check_results import find_facts_of, levels_of, line_id_of
from plankeeper.resources.invoices.check_store import InvoiceToCheck
from plankeeper.resources.invoices.checks import Facts
from plankeeper.resources.invoices.schemas import Invoice
from plankeeper.resources.invoices.warning_schemas import IgnoredBy, WarningDetails
from plankeeper.resources.invoices.warnings import RELATED_CODES, WARNINGS, level_of

NO_LONGER_FOUND = "This was found by the last check, and no longer applies. The next check removes the warning."
Related = dict[tuple[UUID, str], UUID | None]


async def add_warnings(db: Executor, plan_manager_id: UUID, invoices: Sequence[Invoice], today: date) -> None:
    """Set `warnings` of invoices: the warnings of the last check, with the facts of today, and what only informs."""
    ids = [each.id for each in invoices]
    checked = {each.id: each for each in await check_store.get_many(db, plan_manager_id, ids)}
    facts = await find_facts_of(db, plan_manager_id, [*checked.values()], today)
    ignored = {
        (each.invoice_id, each.error_code): IgnoredBy(each.ignored_by, each.ignored_at, each.reason)
        for each in (await check_store.list_ignored_of(db, plan_manager_id, ids) if ids else [])
    }
    related = await _find_related(db, plan_manager_id, [id_ for id_ in checked if RELATED_CODES & facts[id_].keys()])
    for invoice in invoices:
        invoice.warnings = []
        if invoice.id in checked:
            for code in warning_codes(invoice, checked[invoice.id], facts[invoice.id]):
                by = ignored.get((invoice.id, code), IgnoredBy(None, None, None))
                is_ignored = code in invoice.state_management.ignored_errors
                details = _details(code, facts[invoice.id], checked[invoice.id], by if is_ignored else None)
                for each in details:
                    each.related_invoice_id = related.get((invoice.id, code))
                invoice.warnings += details


async def _find_related(db: Executor, plan_manager_id: UUID, invoice_ids: Sequence[UUID]) -> Related:
    """The invoice that each invoice may duplicate, by the code of the warning."""
    related: Related = {}
    for each in await check_store.list_related(db, plan_manager_id, invoice_ids) if invoice_ids else []:
        related[each.id, "possible_duplicate"] = each.earlier_id
        related[each.id, "same_document"] = each.same_document_id
        related[each.id, "line_duplicate"] = each.same_line_id
    return related


def warning_codes(invoice: Invoice, checked: InvoiceToCheck, facts: Facts) -> list[str]:
    """The codes of the last check, and of what only informs today, in the order of the catalogue."""
    levels = levels_of(checked)
    informing = [code for code in facts if level_of(code, levels) == "inform"]
    order = {code: index for index, code in enumerate(WARNINGS)}
    codes = dict.fromkeys([*invoice.state_management.errors, *informing])
    return sorted(codes, key=lambda code: order.get(code, len(order)))


def _details(code: str, facts: Facts, checked: InvoiceToCheck, ignored: IgnoredBy | None) -> list[WarningDetails]:
    level = level_of(code, levels_of(checked))
    found = facts.get(code)
    if not found:
        return [WarningDetails(code, level, None, None, None, None, NO_LONGER_FOUND, ignored)]
    return [
        WarningDetails(code, level, line_id_of(checked, fact), fact.expected, fact.found, None, fact.sentence, ignored)
        for fact in found
    ]
