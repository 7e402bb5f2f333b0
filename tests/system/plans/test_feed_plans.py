"""The plans of the feed's statements among 60,000 events, one a minute: pages of a time are found by indexes."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from plankeeper.database.client import Database
from plankeeper.events import store
from plankeeper.events.store import FeedPage
from support.cluster import SharedCluster
from support.plans import ExplainingExecutor, plan_nodes

OWNER = UUID("017a5f00-0000-7000-8000-00000000da7c")
NIL = str(UUID(int=0))
START = datetime(2026, 1, 1, tzinfo=UTC)
PAGE = 51
MAX_READ_ROWS = 1700  # of one index: the events of a day and an hour, and a page

# Every thousandth event is of a rare type.
FILL_SQL = f"""
insert into plan_managers (id, name) values ('{OWNER}', 'Many');
insert into event_types (code, name) values (1, 'provider.updated'), (2, 'provider.created');
create temporary table made as
select n as position, '{START.isoformat()}'::timestamptz + n * interval '1 minute' as created_at,
    case when n % 1000 = 0 then 2 else 1 end as type
from generate_series(1, 60000) n;
create function pg_temp.id(at timestamptz) returns uuid language sql immutable as $$
    select encode(substring(int8send((extract(epoch from at) * 1000)::bigint) from 3)
        || decode('70008000000000000001', 'hex'), 'hex')::uuid
$$;
insert into events (plan_manager_id, id, type, created_at, actor_kind, resource_kind, resource_id, data)
select '{OWNER}', pg_temp.id(created_at), case type when 1 then 'provider.updated' else 'provider.created' end,
    created_at, 'system', 'provider', position::text, '{{}}'
from made;
insert into event_order (plan_manager_id, position, event_id, type, notify)
select '{OWNER}', position, pg_temp.id(created_at), type, true from made;
insert into event_marks (plan_manager_id, minute, position) select '{OWNER}', created_at, position from made;
"""


@pytest.fixture(scope="module", params=["cluster", "postgres_15_cluster"], ids=["embedded", "15"])
def long_feed(request: pytest.FixtureRequest) -> str:
    cluster: SharedCluster = request.getfixturevalue(request.param)
    return cluster.prepared_database("feed", "set synchronous_commit = on", FILL_SQL, "vacuum analyze")


def minute(number: int) -> datetime:
    return START + timedelta(minutes=number)


RARE = ["provider.created"]
# The page, its types, and the positions of its first and its last event.
PAGES: dict[str, tuple[FeedPage, list[str] | None, tuple[int, int] | None]] = {
    "first": (FeedPage(NIL), None, (1, 51)),
    "newest": (FeedPage(NIL, is_reversed=True), None, (60000, 59950)),
    "rare": (FeedPage(NIL), RARE, (1000, 51000)),
    "newest rare": (FeedPage(NIL, is_reversed=True), RARE, (60000, 10000)),
    "since": (FeedPage(NIL, created_since=minute(30000)), None, (30000, 30050)),
    "newest since": (FeedPage(NIL, is_reversed=True, created_since=minute(59980)), None, (60000, 59980)),
    "until": (FeedPage(NIL, created_until=minute(30)), None, (1, 29)),
    "newest until": (FeedPage(NIL, is_reversed=True, created_until=minute(30000)), None, (29999, 29949)),
    "of a time": (FeedPage(NIL, False, minute(30000), minute(30010)), None, (30000, 30009)),
    "newest of a time": (FeedPage(NIL, True, minute(30000), minute(30010)), None, (30009, 30000)),
    "rare of a time": (FeedPage(NIL, False, minute(30000), minute(32000)), RARE, (30000, 31000)),
    "in the future": (FeedPage(NIL, created_since=minute(70000)), None, None),
    "before all": (FeedPage(NIL, created_until=minute(-70000)), None, None),
}


@pytest.mark.parametrize("name", PAGES)
def test_the_feed_is_read_by_its_indexes(long_feed: str, name: str) -> None:
    page, types, expected = PAGES[name]

    async def work() -> tuple[list[int | None], list[dict[str, Any]]]:
        async with Database(long_feed).open() as db, db.transaction() as tx:
            executor = ExplainingExecutor(tx._connection)  # noqa: SLF001 - the same connection, with the pool's settings
            rows = await store.list_page(executor, OWNER, page, types, PAGE)
            return [each.sequence for each in rows], executor.plans

    found, [plan] = asyncio.run(work())
    assert ((found[0], found[-1]) if found else None) == expected
    for node in plan_nodes(plan):
        removed = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
        assert (node["Actual Rows"] + removed) * node["Actual Loops"] <= MAX_READ_ROWS, plan
        assert node["Node Type"] != "Seq Scan" or node["Relation Name"] == "event_types", plan
