"""The facts of several invoices, which depend on the other invoices of their participants, and the results to store."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from uuid import UUID

from msgspec.structs import replace

from plankeeper.database.client import Executor
from plankeeper.resources.invoices.check_store import CheckResult, InvoiceToCheck
from plankeeper.resources.invoices.checks import CheckLine, Facts, find_facts
from plankeeper.resources.invoices.facts import Fact
from plankeeper.resources.invoices.schemas import Invoice, InvoiceLineRow, InvoiceRow
from plankeeper.resources.invoices.warnings import Level, has_errors, level_of
from plankeeper.resources.plans import store as plan_store
from plankeeper.resources.plans.budget_checks import Available, find_available
from plankeeper.resources.plans.schemas import PlanRow, ServiceLine

Budget = Mapping[tuple[UUID, UUID], Available]


async def find_facts_of(
    db: Executor, plan_manager_id: UUID, invoices: Sequence[InvoiceToCheck], today: date
) -> dict[UUID, Facts]:
    """The facts of each invoice by its id. The values of the invoices needn't be stored."""
    budgets = defaultdict[UUID, dict[UUID, Available]](dict)
    for (owner, line_id), each in (await _find_budgets(db, plan_manager_id, invoices, today)).items():
        budgets[owner][line_id] = each
    return {each.id: find_facts(each, today, budgets[each.id]) for each in invoices}


async def _find_budgets(db: Executor, plan_manager_id: UUID, invoices: Sequence[InvoiceToCheck], today: date) -> Budget:
    """What is available for the lines of invoices whose participants have budgets."""
    plans: dict[UUID, Sequence[PlanRow]] = {
        each.participant_id: each.plans
        for each in invoices
        if each.participant_id and any(plan.components for plan in each.plans)
    }
    if not plans:
        return {}
    ids, own = {each.id for each in invoices}, defaultdict[UUID, list[ServiceLine]](list)
    for each in invoices:
        if each.participant_id and each.participant_id in plans and not each.is_deleted:
            own[each.participant_id] += _service_lines(each, each.participant_id)
    for each in await plan_store.list_lines(db, plan_manager_id, [*plans]):
        if each.invoice_id not in ids:
            own[each.participant_id].append(each)
    found = dict[tuple[UUID, UUID], Available]()
    for participant_id, of_participant in plans.items():
        found |= find_available(of_participant, own[participant_id], today)
    return found


def _service_lines(invoice: InvoiceToCheck, participant_id: UUID) -> Iterable[ServiceLine]:
    """The lines of an invoice of a participant as budgets count them."""
    for position, each in enumerate(invoice.lines):
        if each.id and not each.is_deleted:
            yield ServiceLine(
                participant_id=participant_id,
                invoice_id=invoice.id,
                id=each.id,
                service_date=each.service_date_from or each.service_date_to or invoice.invoice_date,
                service_item_number=each.service_item_number,
                component_id=each.component_id,
                claim_status=each.claim_status,
                wont_claim=invoice.wont_claim,
                amount=each.amount,
                paid=each.paid_amount,
                pending=each.pending,
                is_rest_waiting=each.is_rest_waiting,
                category=each.item.category if each.item else None,
                pace_category=each.item.pace_category if each.item else None,
                received_at=invoice.received_at,
                position=position,
            )


def with_line_duplicates(invoices: Sequence[InvoiceToCheck]) -> list[InvoiceToCheck]:
    """New invoices whose lines are duplicates of each other: the database doesn't know them yet."""
    owners = defaultdict[tuple[object, ...], set[UUID]](set)
    for invoice in invoices:
        for line in invoice.lines:
            if key := line_key(invoice, line):
                owners[key].add(invoice.id)

    def mark(invoice: InvoiceToCheck, line: CheckLine) -> CheckLine:
        key = line_key(invoice, line)
        return replace(line, has_duplicate=True) if key and len(owners[key]) > 1 else line

    return [replace(each, lines=[mark(each, line) for line in each.lines]) for each in invoices]


def line_key(
    invoice: InvoiceToCheck | Invoice | InvoiceRow, line: CheckLine | InvoiceLineRow
) -> tuple[object, ...] | None:
    """What duplicates of a line have in common; None for a line that has no duplicates."""
    values = (invoice.participant_id, line.service_item_number, line.service_date_from, line.quantity)
    if None in values or line.is_deleted or line.claim_status == "cancelled" or invoice.is_deleted:
        return None
    return *values, line.service_date_to or line.service_date_from


def to_result(invoice: InvoiceToCheck, facts: Facts) -> CheckResult:
    """The result to store. A warning that was ignored is open again if it is found with another fact."""
    levels = levels_of(invoice)
    codes = [code for code in facts if level_of(code, levels) != "inform"]
    known = {each.code: {*each.facts} for each in invoice.ignored_facts}
    ignored = [
        code
        for code in invoice.ignored_error_codes
        if not known.get(code) or known[code].issuperset(fact_keys(invoice, facts.get(code, ())))
    ]
    return CheckResult(
        id=invoice.id,
        errors=has_errors(codes, ignored),
        error_codes=codes,
        warning_codes=[code for code in facts if code not in ignored],
        ignored_error_codes=ignored,
        is_duplicate="possible_duplicate" in facts,
    )


def levels_of(invoice: InvoiceToCheck) -> dict[str, Level]:
    """The levels of the plan manager that differ from the usual ones."""
    return {each.code: each.level for each in invoice.levels}


def fact_keys(invoice: InvoiceToCheck, facts: Iterable[Fact]) -> list[str]:
    """What distinguishes facts of a warning: the line, and the value that was found."""
    return sorted({f"{line_id_of(invoice, each) or ''} {each.found}" for each in facts})


def line_id_of(invoice: InvoiceToCheck, fact: Fact) -> UUID | None:
    return invoice.lines[fact.line - 1].id if fact.line else None
