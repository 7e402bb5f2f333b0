"""The lists of runs of statements and of their items in SQL."""

from uuid import UUID

from plankeeper.core.lists import PageRows, fetch_page
from plankeeper.database.client import Executor
from plankeeper.database.lists.filtered_list import FilteredList
from plankeeper.database.lists.statements import BY_UPDATED_AT, Filter
from plankeeper.resources.statement_runs.schemas import (
    StatementRun,
    StatementRunItem,
    StatementRunItemListQuery,
    StatementRunListQuery,
)
from plankeeper.resources.statement_runs.store import get_items, get_many

LIST = FilteredList("statement_runs", StatementRunListQuery, sorts=BY_UPDATED_AT)
ITEMS = FilteredList(
    "statement_run_items", StatementRunItemListQuery, {"run_id": Filter("run_id = {}")}, sorts=BY_UPDATED_AT
)


async def list_page(db: Executor, plan_manager_id: UUID, query: StatementRunListQuery) -> PageRows[StatementRun]:
    return await fetch_page(db, plan_manager_id, query, LIST, get_many)


async def list_items_page(
    db: Executor, plan_manager_id: UUID, run_id: UUID, query: StatementRunItemListQuery
) -> PageRows[StatementRunItem]:
    """A page of the items of a run, in the order in which they were made."""
    return await fetch_page(db, plan_manager_id, query, ITEMS, get_items, run_id=run_id)


async def count_items(db: Executor, plan_manager_id: UUID, run_id: UUID, query: StatementRunItemListQuery) -> int:
    return await ITEMS.count(db, plan_manager_id, ITEMS.values_of(query, run_id=run_id))
