"""The plans of the access log's statements among 60,000 records: a person's are found by indexes."""

import asyncio
from typing import Any
from uuid import UUID

import pytest

from plankeeper.access.access_log import store
from plankeeper.access.access_log.schemas import AccessRecordFilter
from plankeeper.database.client import Database
from support.cluster import SharedCluster
from support.plans import ExplainingExecutor, plan_nodes

OWNER = UUID("017a5f00-0000-7000-8000-00000000da7b")
PERSON = UUID("01900000-0000-7000-8000-000000000700")
READER = "01900000-0000-7000-8000-00000000beef"
MAX_READ_ROWS = 1000  # of one index


# Of 1,200 people: views, lists with the ids that they showed, and pages of 20 people that are stored as a range.
FILL_SQL = f"""
insert into plan_managers (id, name) values ('{OWNER}', 'Many');
create function pg_temp.person(n integer) returns uuid language sql immutable as $$
    select ('01900000-0000-7000-8000-' || to_char(n, 'FM000000000000'))::uuid
$$;
insert into access_records (plan_manager_id, id, accessed_at, actor_kind, actor_id, actor_name, action, resource_kind,
    resource_id, resource_ids, first_id, last_id)
select '{OWNER}', ('01910000-0000-7000-8000-' || to_char(n, 'FM000000000000'))::uuid, now(), 'user', '{READER}',
    'Robin Hale', case n % 4 when 0 then 'listed' else 'viewed' end, 'participant',
    case when n % 4 > 0 then pg_temp.person(n % 1201) end,
    case n % 8 when 0 then array[pg_temp.person(n % 1201), pg_temp.person(n % 1201 + 20)] end,
    case n % 8 when 4 then pg_temp.person(n % 1201) end,
    case n % 8 when 4 then pg_temp.person(n % 1201 + 19) end
from generate_series(1, 60000) n;
"""


@pytest.fixture(scope="module", params=["cluster", "postgres_15_cluster"], ids=["embedded", "15"])
def long_log(request: pytest.FixtureRequest) -> str:
    cluster: SharedCluster = request.getfixturevalue(request.param)
    return cluster.prepared_database("access_log", "set synchronous_commit = on", FILL_SQL, "vacuum analyze")


def is_about_the_person(n: int) -> bool:
    """Whether FILL_SQL's row names the person."""
    first = n % 1201
    return (first <= 700 <= first + 19) if n % 8 == 4 else 700 in (first, first + 20 if n % 8 == 0 else first)


ABOUT = sum(is_about_the_person(n) for n in range(1, 60001))
FILTERS = {
    "about a person": (AccessRecordFilter([PERSON]), ABOUT),
    "about a person, read by somebody": (AccessRecordFilter([PERSON], actor_id=READER), ABOUT),
    "about a person, exported": (AccessRecordFilter([PERSON], action="exported"), 0),
    "all": (AccessRecordFilter(), 500),
    "of a time": (
        AccessRecordFilter(
            after=UUID("01910000-0000-7000-8000-000000030000"), before=UUID("01910000-0000-7000-8000-000000030100")
        ),
        99,
    ),
}


@pytest.mark.parametrize("name", FILTERS)
def test_the_log_is_read_by_its_indexes(long_log: str, name: str) -> None:
    filters, expected = FILTERS[name]

    async def work() -> tuple[int, list[dict[str, Any]]]:
        async with Database(long_log).open() as db, db.transaction() as tx:
            executor = ExplainingExecutor(tx._connection)  # noqa: SLF001 - the same connection, with the pool's settings
            await store.list_newest(executor, OWNER, filters, 51)
            await store.list_oldest(executor, OWNER, filters, 51)
            return await store.count(executor, OWNER, filters, 500), executor.plans

    found, plans = asyncio.run(work())
    assert (found, len(plans)) == (expected, 3)
    for plan in plans:
        for node in plan_nodes(plan):
            removed = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
            assert node["Actual Rows"] + removed <= MAX_READ_ROWS, plan
