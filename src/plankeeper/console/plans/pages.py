"""Plans of all participants: the list of those that end, and the budgets that run out early or are hardly used."""

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from plankeeper.access.accounts import member_store
from plankeeper.console.components.labels import sortable_name
from plankeeper.console.home.pages import select_scope
from plankeeper.console.lists.registration import add_list
from plankeeper.console.participants.budget_charts import percent
from plankeeper.console.participants.plans import plans_url
from plankeeper.console.plans.components import COMPONENTS, load_overview
from plankeeper.console.plans.list import PLANS
from plankeeper.console.shell.routing import HtmlPage, PageRequest, Pages
from plankeeper.resources.participants import store as participant_store
from plankeeper.resources.participants.schemas import Participant
from plankeeper.resources.plans.overview import MAX_LISTED, OpenBudget

pages = Pages()


add_list(pages, PLANS, is_limited=True)


add_list(pages, COMPONENTS, "plans/components.html", is_limited=True)


class BudgetBar(NamedTuple):
    """A budget with its participant, and the widths of what is used and of the time that has passed, in percent."""

    budget: OpenBudget
    participant: Participant | None
    name: str
    url: str
    used: float
    passed: float


@pages.get("/plans/budgets", role="viewer", is_limited=True)
async def budgets(request: PageRequest) -> HtmlPage:
    """Of everyone, or of the account's own participants."""
    account = request.account
    linked = await member_store.list_linked(request.db, request.plan_manager_id, [account.account_id], [account.email])
    manager = linked[0] if linked else None
    scope = select_scope(request.query.text("for") or request.home_scope, manager)
    if request.participants_of:
        manager, scope = None, "all"
    overview = await load_overview(request, manager.id if manager and scope == "me" else None)
    sums = overview.sums
    early = sums.ending_early[:MAX_LISTED]
    ids = list({each.participant_id for each in (*early, *sums.little_used)})
    people = await participant_store.get_many(request.db, request.plan_manager_id, ids)
    by_id = {each.id: each for each in people}
    request.record_list("participant", ids, {"page": "budgets"})
    context = {
        "overview": overview,
        "manager": manager,
        "scope": scope,
        "ending_early": _bars(early, by_id),
        "little_used": _bars(sums.little_used, by_id),
    }
    return HtmlPage("plans/budgets.html", context)


def _bars(budgets_: Sequence[OpenBudget], people: dict[UUID, Participant]) -> list[BudgetBar]:
    return [
        BudgetBar(
            each,
            person,
            sortable_name(person) or "No name",
            plans_url(each.participant_id),
            percent(each.used, each.amount),
            round(float(100 * each.passed), 2),
        )
        for each in budgets_
        if (person := people.get(each.participant_id))
    ]
