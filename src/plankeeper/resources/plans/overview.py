"""The budgets of all participants that need a look: those that run out early, and those that are hardly used."""

from datetime import date
from decimal import Decimal
from typing import NamedTuple
from uuid import UUID

from plankeeper.database.client import Executor
from plankeeper.resources.plans import rules, store
from plankeeper.resources.plans.schemas import Plan
from plankeeper.resources.plans.service import with_numbers

BATCH_SIZE = 200  # plans whose lines are added up at once
MAX_LISTED = 50  # of each kind on the page of budgets
MAX_KEPT = 20_000  # components that run out: those of about 10,000 plans
MANY_PLANS = 500  # whose numbers take about 0.3 s


class OpenBudget(NamedTuple):
    """A component, or a plan without the id and the name of one. `passed` is the part of the plan's time, from 0 to 1.

    `runs_out` is null for a budget that is hardly used.
    """

    participant_id: UUID
    component_id: UUID | None
    component: str
    end_date: date
    amount: Decimal
    used: Decimal
    passed: Decimal
    runs_out: date | None

    @property
    def id(self) -> str:
        """Unique among components."""
        return f"{self.participant_id}.{self.component_id}"

    @property
    def key(self) -> tuple[date, UUID, UUID]:
        """The order of components that run out."""
        return self.runs_out or date.max, self.participant_id, self.component_id or UUID(int=0)

    @property
    def used_share(self) -> Decimal:
        return self.used / self.amount

    @property
    def left(self) -> Decimal:
        """Negative for a component of which more is used than there is."""
        return self.amount - self.used


class BudgetOverview(NamedTuple):
    """The number of plans in force, the budgets that need a look, the most urgent first, and how many there are.

    `ending_early` has at most MAX_KEPT, `little_used` at most MAX_LISTED.
    """

    plan_count: int = 0
    ending_early: tuple[OpenBudget, ...] = ()
    ending_early_count: int = 0
    little_used: tuple[OpenBudget, ...] = ()
    little_used_count: int = 0

    @property
    def read_count(self) -> int:
        return self.plan_count


async def compute_overview(
    db: Executor, plan_manager_id: UUID, account_manager_id: UUID | None, day: date
) -> BudgetOverview:
    """The budgets of active participants, of everyone or of an account manager."""
    overview, last = BudgetOverview(), UUID(int=0)
    while plans := await store.list_in_force(db, plan_manager_id, account_manager_id, day, last, BATCH_SIZE):
        overview = _add(overview, await with_numbers(db, plan_manager_id, plans, day), day)
        last = plans[-1].participant_id
    return overview


def _add(overview: BudgetOverview, plans: list[Plan], day: date) -> BudgetOverview:
    early = [budget for each in plans for budget in find_ending_early(each, day)]
    little = [budget for each in plans if (budget := find_little_used(each, day))]
    return BudgetOverview(
        overview.plan_count + len(plans),
        tuple(sorted((*overview.ending_early, *early), key=lambda each: each.key)[:MAX_KEPT]),
        overview.ending_early_count + len(early),
        tuple(sorted((*overview.little_used, *little), key=_by_share)[:MAX_LISTED]),
        overview.little_used_count + len(little),
    )


def _by_share(budget: OpenBudget) -> tuple[Decimal, Decimal, UUID]:
    return budget.used_share / budget.passed, -budget.passed, budget.participant_id


def find_ending_early(plan: Plan, day: date) -> list[OpenBudget]:
    """The components of a plan with numbers that run out before its last day at the present rate."""
    if plan.end_date is None:
        return []
    found = list[OpenBudget]()
    for each in plan.components:
        numbers = rules.numbers_of(each)
        if each.amount > 0 and (runs_out := rules.runs_out_on(plan, each, numbers, day)):
            share = rules.passed_share(plan, day)
            place = (plan.participant_id, each.id, each.name, plan.end_date)
            found.append(OpenBudget(*place, each.amount, numbers.used, share, runs_out))
    return found


def find_little_used(plan: Plan, day: date) -> OpenBudget | None:
    """The budget of a plan with numbers, if little of it is used."""
    budget, passed = rules.budget_of(plan), rules.passed_share(plan, day)
    if plan.end_date is None or not rules.is_little_used(budget, passed):
        return None
    return OpenBudget(plan.participant_id, None, "", plan.end_date, budget.amount, budget.used, passed, None)
