"""The list of components that run out before their plans end, at the rate at which they are used."""

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_DOWN, Decimal
from typing import Any
from uuid import UUID

from plankeeper.console.lists.columns import ACCOUNT_MANAGER, PARTICIPANT_NUMBER
from plankeeper.console.lists.definition import (
    BuiltInView,
    Column,
    ListButton,
    ListDefinition,
    Names,
    PagePosition,
    SourceCount,
    SourcePage,
    cut_source_page,
)
from plankeeper.console.lists.filters import ChoiceFilter, RecordFilter
from plankeeper.console.plans.list import (
    BUDGETS_PATH,
    COMPONENTS_PATH,
    PARTICIPANT,
    list_participants,
    load_participants,
)
from plankeeper.console.shell.routing import PageRequest
from plankeeper.core.formatting import CENT
from plankeeper.core.ids import parse_uuid
from plankeeper.resources.invoices.statistics_cache import DatedStatistics
from plankeeper.resources.plans.overview import BudgetOverview, OpenBudget, compute_overview

FILE_BATCH_SIZE = 500  # components in a chunk of a file
Key = tuple[date, UUID, UUID]


async def load_overview(request: PageRequest, manager_id: UUID | None) -> DatedStatistics[BudgetOverview]:
    """Of everyone or of an account manager; for a limited viewer, computed now."""
    place, limit = (request.db, request.plan_manager_id), request.participants_of
    if limit:
        return DatedStatistics(await compute_overview(*place, limit, request.today), datetime.now(UTC))
    return await request.budgets_cache.get(*place, manager_id, request.today)


class ComponentSource:
    """The components that run out, the earliest first, or the last one first."""

    async def read_page(self, request: PageRequest, values: Mapping[str, Any], place: PagePosition) -> SourcePage:
        found = await self._find(request, values)
        if not place.is_ascending:
            found.reverse()
        start = parse_cursor(place.start)
        if start is None:
            place = PagePosition(place.size, is_ascending=place.is_ascending)
        elif place.is_backward:
            found = [each for each in found if _is_before(each.key, start, place)][::-1]
        else:
            found = [each for each in found if _is_before(start, each.key, place)]
        return cut_source_page(place, found[: place.size + 1], cursor_of, cursor_of)

    async def count(self, request: PageRequest, values: Mapping[str, Any]) -> SourceCount:
        return SourceCount(len(await self._find(request, values)))

    async def read_batches(self, request: PageRequest, values: Mapping[str, Any]) -> AsyncIterator[Sequence[Any]]:
        found = await self._find(request, values)
        for start in range(0, len(found) or 1, FILE_BATCH_SIZE):
            yield found[start : start + FILE_BATCH_SIZE]

    async def _find(self, request: PageRequest, values: Mapping[str, Any]) -> list[OpenBudget]:
        manager_id: UUID | None = values.get("account_manager")
        limit = request.participants_of
        if limit and manager_id not in (None, limit):
            return []
        overview = await load_overview(request, manager_id)
        return [each for each in overview.sums.ending_early if _matches(each, values, request.today)]


def _matches(budget: OpenBudget, values: Mapping[str, Any], today: date) -> bool:
    days, share = values.get("days"), values.get("share")
    is_soon = days is None or (budget.runs_out is not None and budget.runs_out <= today + timedelta(days=days))
    return is_soon and (share is None or budget.used_share * 100 >= share)


def _is_before(one: Key, other: Key, place: PagePosition) -> bool:
    return one < other if place.is_ascending else one > other


def cursor_of(budget: OpenBudget) -> str:
    """`2026-11-27.<participant>.<component>`."""
    return ".".join(map(str, budget.key))


def parse_cursor(text: str) -> Key | None:
    """The key of a cursor; null for another text."""
    day, _, ids = text.partition(".")
    participant, component = (parse_uuid(each) for each in (ids.partition(".")[0], ids.partition(".")[2]))
    try:
        return (date.fromisoformat(day), participant, component) if participant and component else None
    except ValueError:
        return None


def _used_share(budget: OpenBudget, _names: Names) -> str:
    return f"{_percent(budget.used_share)}%"


def _passed(budget: OpenBudget, _names: Names) -> str:
    return f"{_percent(budget.passed)}%"


def _percent(share: Decimal) -> Decimal:
    return (100 * share).quantize(Decimal(1), ROUND_DOWN)


def _days_early(budget: OpenBudget, _names: Names) -> str:
    return str((budget.end_date - (budget.runs_out or budget.end_date)).days)


def _amount(budget: OpenBudget, _names: Names) -> Decimal:
    return budget.amount.quantize(CENT)


def _used(budget: OpenBudget, _names: Names) -> Decimal:
    return budget.used.quantize(CENT)


def _left(budget: OpenBudget, _names: Names) -> Decimal:
    return budget.left.quantize(CENT)


COLUMNS = (
    PARTICIPANT,
    Column("component", "Component", "text"),
    Column("runs_out", "Runs out", "date", sort="runs_out"),
    Column("end_date", "Plan ends", "date"),
    Column("days_early", "Days early", "text", _days_early),
    Column("used_share", "Used", "text", _used_share),
    Column("passed", "Time passed", "text", _passed),
    Column("amount", "Budget", "money", _amount),
    Column("left", "Left", "money", _left),
    ACCOUNT_MANAGER,
    Column("used", "Amount used", "money", _used, is_default=False),
)
FILE_COLUMNS = (
    Column("participant_id", "Participant ID", "text"),
    PARTICIPANT_NUMBER,
    Column("component_id", "Component ID", "text"),
    Column("used", "Amount used", "money", _used),
)
DAYS = {"0": "Nothing is left", "14": "In the next 14 days", "30": "In the next 30 days", "60": "In the next 60 days"}
SHARES = {"50": "At least 50%", "75": "At least 75%", "90": "At least 90%", "100": "All"}
COMPONENTS = ListDefinition(
    kind="components",
    title="Components that run out",
    one="component",
    many="components",
    rows=ComponentSource(),
    columns=COLUMNS,
    file_columns=FILE_COLUMNS,
    filters=(
        ChoiceFilter("runs_out", "Runs out", DAYS, lambda choice: {"days": int(choice)}),
        ChoiceFilter("used", "Used", SHARES, lambda choice: {"share": int(choice)}),
        RecordFilter("account_manager", "Account manager", "account_manager", lambda id_: {"account_manager": id_}),
    ),
    sort="runs_out",
    empty="No component runs out before its plan ends.",
    buttons=(ListButton("Budgets to look at", BUDGETS_PATH, "viewer"),),
    views=(BuiltInView("In 30 days", {"runs_out": "30"}), BuiltInView("Nothing is left", {"runs_out": "0"})),
    load_names=load_participants,
    list_disclosed=list_participants,
    page_path=COMPONENTS_PATH,
    section="plans",
)
