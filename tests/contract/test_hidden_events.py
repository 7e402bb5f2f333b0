"""The latest events without the hidden types: what is read doesn't grow with the number of hidden events."""

from collections.abc import Iterator

import pytest

from contract.plans import ExplainingExecutor, plan_nodes
from plankeeper.console.pages.activity import MAX_PAGE_EVENTS
from plankeeper.console.pages.home import ONLY_RECORDS, RECENT_CHANGES
from plankeeper.events import store
from plankeeper.events.schemas import EventFilter
from support.cluster import SharedCluster
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
            for filters, limit in ((ONLY_RECORDS, RECENT_CHANGES), (activity, MAX_PAGE_EVENTS + 1)):
                executor.plans.clear()
                found = await store.latest(executor, plan_manager_id, None, filters, limit)
                assert [each.id for each in found] == visible[::-1]
                assert 0 < read_rows(executor) < 500
