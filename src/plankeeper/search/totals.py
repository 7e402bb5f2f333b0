"""Totals of searches in lists."""

import time
from collections.abc import Mapping
from uuid import UUID

from plankeeper.database.client import Executor
from plankeeper.database.filters import FilteredList
from plankeeper.http import pagination
from plankeeper.http.pagination import SortableQuery

# To count 10,000 matches takes 0.2 s: their texts are computed. Who reads the next page doesn't wait for it again.
MAX_AGE = 10.0  # seconds for which a worker remembers that a search has more than MAX_TOTAL matches
MAX_REMEMBERED = 1000

_exceeding: dict[tuple[object, ...], float] = {}  # until when they are remembered, the oldest first


async def count_matches(
    db: Executor, plan_manager_id: UUID, rows: FilteredList, query: SortableQuery, search: Mapping[str, object]
) -> int:
    """The number of matches of a search: at most one more than MAX_TOTAL. `search` are the values of its filters."""
    key = (plan_manager_id, rows.name, repr(rows.filter_values(query, search)))
    now = time.monotonic()
    if _exceeding.get(key, 0) > now:
        return pagination.MAX_TOTAL + 1
    _exceeding.pop(key, None)
    count = (await rows.summary(db, plan_manager_id, query, pagination.MAX_TOTAL + 1, **search)).count
    if count > pagination.MAX_TOTAL:
        _exceeding[key] = now + MAX_AGE
        if len(_exceeding) > MAX_REMEMBERED:
            del _exceeding[next(iter(_exceeding))]
    return count
