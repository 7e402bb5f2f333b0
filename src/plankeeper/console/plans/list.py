"""The list of plans by their ends, with what is left of their budgets today."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

from plankeeper.console.components.labels import sortable_name
from plankeeper.console.lists.columns import ACCOUNT_MANAGER, PARTICIPANT_NUMBER, participant_of
from plankeeper.console.lists.dates import PLAN_END_PRESETS
from plankeeper.console.lists.definition import BuiltInView, Column, Link, ListButton, ListDefinition, Names
from plankeeper.console.lists.filters import choice_filter, date_range_filter, record_filter
from plankeeper.console.participants.form import STATUSES
from plankeeper.console.participants.plans import plans_url
from plankeeper.console.shell.routing import PREFIX, PageRequest
from plankeeper.core.context import AccessedKind
from plankeeper.core.formatting import CENT
from plankeeper.resources.participants import store as participant_store
from plankeeper.resources.plans import rules, store
from plankeeper.resources.plans.overview import OpenBudget
from plankeeper.resources.plans.rules import Budget
from plankeeper.resources.plans.schemas import Plan
from plankeeper.resources.plans.service import with_numbers


class PlanDetails(NamedTuple):
    """What a row shows besides the plan. `budget` is null for a plan without components."""

    days_left: int | None
    budget: Budget | None


async def load_names(request: PageRequest, rows: Sequence[Any]) -> Names:
    """The details of the plans by their ids, with the numbers of all rows together, and the participants."""
    today = request.today
    plans = await with_numbers(request.db, request.plan_manager_id, rows, today)
    details = {
        each.id: PlanDetails(
            (each.end_date - today).days if each.end_date and each.end_date >= today else None,
            rules.budget_of(each) if each.components else None,
        )
        for each in plans
    }
    return {**details, **await load_participants(request, rows)}


async def load_participants(request: PageRequest, rows: Sequence[Any]) -> Names:
    """The participants of plans or components."""
    ids = list({each.participant_id for each in rows})
    found = await participant_store.get_many(request.db, request.plan_manager_id, ids) if ids else []
    return {("participant", each.id): each for each in found}


def _participant(plan: Plan | OpenBudget, names: Names) -> Link:
    participant = participant_of(plan, names)
    return Link((participant and sortable_name(participant)) or "No name", plans_url(plan.participant_id))


def _days_left(plan: Plan, names: Names) -> str | None:
    days: int | None = names[plan.id].days_left
    return None if days is None else f"{days:,}"


def _budget(plan: Plan, names: Names) -> Decimal | None:
    budget: Budget | None = names[plan.id].budget
    return budget.amount.quantize(CENT) if budget else None


def _left(plan: Plan, names: Names) -> Decimal | None:
    budget: Budget | None = names[plan.id].budget
    return budget.left.quantize(CENT) if budget else None


def list_participants(rows: Sequence[Any]) -> Mapping[AccessedKind, Sequence[UUID]]:
    return {"participant": list(dict.fromkeys(each.participant_id for each in rows))}


PARTICIPANT = Column("participant", "Participant", "link", _participant)
COLUMNS = (
    PARTICIPANT,
    Column("start_date", "Starts", "date"),
    Column("end_date", "Ends", "date", sort="end_date"),
    Column("days_left", "Days left", "text", _days_left),
    Column("budget", "Budget", "money", _budget),
    Column("left", "Left", "money", _left),
    ACCOUNT_MANAGER,
    Column("is_pace_plan", "PACE", "yes_no", is_default=False),
    Column("external_id", "External ID", "text", is_default=False),
)
FILE_COLUMNS = (
    Column("id", "ID", "text"),
    Column("participant_id", "Participant ID", "text"),
    PARTICIPANT_NUMBER,
)
FILTERS = (
    date_range_filter(
        store.ENDS,
        ("end_date_from", "end_date_to"),
        ("plan_end", "plan_end_from", "plan_end_to"),
        PLAN_END_PRESETS,
        starts_today=True,
    ),
    record_filter(
        store.ENDS,
        "account_manager",
        "account_manager",
        {"none": ("No account manager", {"without_account_manager": True})},
    ),
    choice_filter(store.ENDS, "status", {each: each for each in STATUSES}),
)
ENDING_SOON = {"plan_end": "60d", "status": "Active"}
BUDGETS_PATH = f"{PREFIX}/plans/budgets"
COMPONENTS_PATH = f"{PREFIX}/plans/components"
PLANS = ListDefinition(
    kind="plans",
    title="Plans that end",
    one="plan",
    many="plans",
    rows=store.ENDS,
    get_rows=store.get_many,
    columns=COLUMNS,
    file_columns=FILE_COLUMNS,
    filters=FILTERS,
    sort="end_date",
    empty="There are no plans yet. Add one on the page of a participant, or import them.",
    buttons=(
        ListButton("Budgets to look at", BUDGETS_PATH, "viewer"),
        ListButton("Components that run out", COMPONENTS_PATH, "viewer"),
    ),
    views=(
        BuiltInView("Ending in 60 days", ENDING_SOON),
        BuiltInView("Ended", {"plan_end": "ended"}, "-end_date"),
    ),
    load_names=load_names,
    list_disclosed=list_participants,
)
