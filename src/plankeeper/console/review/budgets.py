"""The budgets that the lines of an invoice count for."""

from typing import NamedTuple
from uuid import UUID

from plankeeper.console.shell.routing import PageRequest
from plankeeper.resources.invoices.schemas import Invoice
from plankeeper.resources.plans import rules, store
from plankeeper.resources.plans.schemas import PlanComponent


class LineBudget(NamedTuple):
    """The component of a line, with its numbers today, which contain the line."""

    component: PlanComponent
    numbers: rules.Numbers


async def find_line_budgets(request: PageRequest, invoice: Invoice) -> dict[UUID, LineBudget]:
    """The budgets by the ids of the lines. A line outside of all plans, or without a component, has none."""
    if invoice.participant_id is None:
        return {}
    place = (request.db, request.plan_manager_id, [invoice.participant_id])
    plans = [each for each in await store.list_of_participants(*place) if each.components and rules.is_in_order(each)]
    if not plans:
        return {}
    lines = await store.list_lines(*place)
    found = dict[UUID, LineBudget]()
    for plan in plans:
        of_component = rules.lines_of(plans, plan, lines)
        for component in plan.components:
            own = of_component[component.id]
            ids = [each.id for each in own if each.invoice_id == invoice.id]
            if ids:
                budget = LineBudget(component, rules.compute_numbers(component, own, request.today))
                found |= dict.fromkeys(ids, budget)
    return found
