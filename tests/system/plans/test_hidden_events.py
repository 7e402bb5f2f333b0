"""The activity: what is read doesn't grow with the number of events of hidden types, and counts are bounded."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from plankeeper.console.home.pages import ONLY_RECORDS, RECENT_CHANGES
from plankeeper.console.lists.definition import MAX_COUNTED
from plankeeper.core.ids import uuid7_lower_bound
from plankeeper.events import activity_store, store
from plankeeper.events.schemas import EventFilter
from support.cluster import SharedCluster
from support.plans import ExplainingExecutor, plan_nodes
from support.quiet import quiet_database

VIEW = "invoice_view_session.started"
HIDDEN_COUNT = 20_000


@pytest.fixture(scope="module")
def dsn(cluster: SharedCluster) -> Iterator[str]:
    created = cluster.new_database()
    yield created
    cluster.drop(created)


def read_rows(executor: ExplainingExecutor) -> int:
    """The rows that the scans of tables and indexes returned or discarded."""
    scans = [each for plan in executor.plans for each in plan_nodes(plan) if "Relation Name" in each]
    removed = ("Rows Removed by Filter", "Rows Removed by Index Recheck")
    return sum(
        (each["Actual Rows"] + sum(each.get(name, 0) for name in removed)) * each["Actual Loops"] for each in scans
    )


async def test_hidden_events_are_not_read(dsn: str) -> None:
    async with quiet_database(dsn) as quiet:
        plan_manager_id = await quiet.new_plan_manager()
        visible = await quiet.record(plan_manager_id, "provider.created", "provider.updated")
        await quiet.record(plan_manager_id, *[VIEW] * HIDDEN_COUNT)
        await quiet.sequence(plan_manager_id)
        await quiet.db.execute("analyze")
        activity = EventFilter(hidden_types=[VIEW, "invoice_view_session.ended"])
        async with quiet.db.transaction() as tx:
            executor = ExplainingExecutor(tx._connection)  # noqa: SLF001 - with the pool's settings
            for filters, limit in ((ONLY_RECORDS, RECENT_CHANGES), (activity, 151)):
                executor.plans.clear()
                found = await store.latest(executor, plan_manager_id, None, filters, limit)
                assert [each.id for each in found] == visible[::-1]
                assert 0 < read_rows(executor) < 500
            executor.plans.clear()
            newer = await activity_store.earliest(executor, plan_manager_id, visible[0], activity, 151)
            assert [each.id for each in newer] == visible[1:]
            assert await activity_store.count(executor, plan_manager_id, None, None, activity, MAX_COUNTED + 1) == 2
            assert 0 < read_rows(executor) < 500


async def test_counts_of_the_activity_are_bounded_and_served_by_indexes(dsn: str) -> None:
    async with quiet_database(dsn) as quiet:
        plan_manager_id = await quiet.new_plan_manager()
        await quiet.record(plan_manager_id, *["provider.updated"] * HIDDEN_COUNT)
        await quiet.sequence(plan_manager_id)
        await quiet.db.execute("analyze")
        days = [uuid7_lower_bound(datetime.now(UTC) + timedelta(days=each)) for each in (-1, 1)]
        every, by_system = EventFilter(hidden_types=[]), EventFilter(hidden_types=[], actor_kind="system")
        async with quiet.db.transaction() as tx:
            executor = ExplainingExecutor(tx._connection)  # noqa: SLF001 - with the pool's settings
            feed = (executor, plan_manager_id)
            for since, before in ((None, None), (days[0], days[1])):
                executor.plans.clear()
                assert await activity_store.count(*feed, since, before, every, MAX_COUNTED + 1) == 10_001
                assert await activity_store.count_placed(*feed, since, before, MAX_COUNTED + 1) == 10_001
                found = await activity_store.count_by_actor(*feed, since, before, by_system, 1000)
                assert found <= 1000
                nodes = [each for plan in executor.plans for each in plan_nodes(plan)]
                scanned = {each["Relation Name"] for each in nodes if each["Node Type"] == "Seq Scan"}
                assert scanned <= {"event_types"}
                assert read_rows(executor) < 2 * (MAX_COUNTED + 1) + 3 * 1000 + 500
            assert await activity_store.count(*feed, days[1], None, every, MAX_COUNTED + 1) == 0
            assert await activity_store.count(*feed, None, days[0], every, MAX_COUNTED + 1) == 0
