"""Lists at depth and by change: few rows are read, however many precede a page and however many match a filter."""

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import pytest

from contract.sources import orders
from plankeeper.console.lists.reading import BATCH_SIZE
from plankeeper.core.lists import PageRows, SortableQuery
from plankeeper.database.client import Database, Executor
from plankeeper.database.lists.filtered_list import FilteredList
from plankeeper.database.lists.statements import SortOrder, Start
from plankeeper.http.parsing import parse_query
from plankeeper.resources.invoices import queries as invoices
from plankeeper.resources.invoices.schemas import InvoiceListQuery
from plankeeper.resources.participants import queries as participants
from plankeeper.resources.participants.schemas import ParticipantListQuery
from plankeeper.resources.providers import queries as providers
from plankeeper.resources.providers.schemas import ProviderListQuery
from support.cluster import SharedCluster
from support.plans import ExplainingExecutor, plan_nodes
from system.plans.crowded_database import OWNER, prepare_crowded_database

LISTS: dict[str, tuple[type[SortableQuery], Any]] = {
    "participants": (ParticipantListQuery, participants.list_page),
    "providers": (ProviderListQuery, providers.list_page),
    "invoices": (InvoiceListQuery, invoices.list_page),
}
LIMIT = 20
# Of 100,000 rows, a page of matching ones that are this many is collected and sorted, which takes 20 ms.
MAX_ROWS = 25_000


async def read_page(database: str, resource: str, query: str) -> tuple[PageRows[Any], list[dict[str, Any]]]:
    """A page, and the nodes of the plans of its statements that ran."""
    query_type, list_page = LISTS[resource]
    async with Database(database).open() as db, db.transaction() as tx:
        executor = ExplainingExecutor(tx._connection)  # noqa: SLF001 - the same connection, with the pool's settings
        rows = await list_page(executor, OWNER, parse_query(query_type, f"limit={LIMIT}&{query}".encode()))
    return rows, [node for plan in executor.plans for node in plan_nodes(plan) if node["Actual Loops"]]


DEEP = (
    "offset=90000",
    "offset=90000&sort=-id",
    "offset=90000&sort=updated_at",
    "offset=90000&sort=-updated_at",
    "offset=50000&updated_since=2024-01-01T00:00:00Z&sort=-updated_at",
)


@pytest.mark.parametrize(
    "resource, query",
    [
        *product(LISTS, DEEP),
        ("participants", "offset=90000&sort=-plan_end_date"),
        ("invoices", "offset=90000&sort=total"),
    ],
)
def test_only_an_index_is_read_before_a_deep_page(large_database: str, resource: str, query: str) -> None:
    rows, nodes = asyncio.run(read_page(large_database, resource, query))
    assert len(rows) == LIMIT
    long = [node for node in nodes if node["Actual Rows"] > LIMIT + 1]
    assert {node["Node Type"] for node in long} <= {"Index Only Scan", "Result"}, long
    # 100,000 rows: about 120 of an index are on a page.
    assert sum(node["Shared Hit Blocks"] + node["Shared Read Blocks"] for node in long) < 100_000 / 50, long


MATCHING_ALL = "updated_since=2024-01-01T00:00:00Z"
MATCHING_MANY = [
    *(
        (resource, f"{MATCHING_ALL}{order}{after}")
        for resource, order, after in product(
            LISTS, ("", "&sort=updated_at", "&sort=-updated_at", "&sort=-id"), ("", "&after=0", "&offset=1")
        )
    ),
    ("participants", "status=Active&sort=last_name&after=0"),
    ("invoices", "claim_status=paid&sort=-updated_at&after=0"),
    ("invoices", "approval_status=not_required&claim_status=paid&sort=-id&after=0"),
    ("invoices", f"claim_status=paid&{MATCHING_ALL}"),
]


@pytest.mark.parametrize("resource, query", MATCHING_MANY)
def test_a_page_of_many_matching_rows_reads_few(large_database: str, resource: str, query: str) -> None:
    rows, nodes = asyncio.run(read_page(large_database, resource, query))
    assert (len(rows), rows.has_more) == (LIMIT, True)
    assert max(node["Actual Rows"] for node in nodes) <= 2 * LIMIT + 2, nodes
    assert "Seq Scan" not in {node["Node Type"] for node in nodes if node.get("Relation Name") == resource}, nodes


@pytest.mark.parametrize("query", ["state=nsw&sort=-updated_at", "status=Active&state=nsw&sort=-last_name"])
def test_a_page_of_a_part_of_the_rows_may_collect_these(large_database: str, query: str) -> None:
    """A seventh of the rows, which are spread evenly, as PostgreSQL assumes."""
    rows, nodes = asyncio.run(read_page(large_database, "participants", query))
    assert (len(rows), rows.has_more) == (LIMIT, True)
    assert max(node["Actual Rows"] for node in nodes) <= 15_000, nodes


# The filters of a file, its numbers of matching rows, and the most rows that a batch of it may read.
FILES: list[tuple[dict[str, Any], int, int]] = [
    ({}, 100_000, BATCH_SIZE + 1),
    ({"status": "Active"}, 80_000, 2 * BATCH_SIZE),
    ({"state": "NSW"}, 14_000, 15_000),
]


@pytest.mark.parametrize("values, count, most", FILES)
def test_each_batch_of_a_file_reads_few_rows(
    large_database: str, values: dict[str, Any], count: int, most: int
) -> None:
    """Where few rows match, a batch may collect these."""

    async def run() -> None:
        async with Database(large_database).open() as db, db.transaction() as tx:
            executor = ExplainingExecutor(tx._connection)  # noqa: SLF001 - the same connection, with the pool's settings
            for name, position in product(("name", "updated_at", "plan_end_date"), (0, count // 2, count - BATCH_SIZE)):
                order, start = SortOrder(name, descending=False), None
                if position:
                    [before, *_] = await participants.LIST.page(tx, OWNER, values, 1, position, order)
                    start = Start(before.value, before.id)
                executor.plans.clear()
                assert await participants.LIST.page(executor, OWNER, values, BATCH_SIZE, 0, order, start)
                nodes = [node for plan in executor.plans for node in plan_nodes(plan) if node["Actual Loops"]]
                assert max(node["Actual Rows"] + node.get("Rows Removed by Filter", 0) for node in nodes) <= most, nodes

    asyncio.run(run())


@pytest.mark.parametrize("order", ["", "&sort=-id", "&sort=updated_at", "&sort=-updated_at"])
@pytest.mark.parametrize("resource", LISTS)
def test_a_page_of_few_matching_rows_reads_only_these(large_database: str, resource: str, order: str) -> None:
    """100 of 100,000 rows, which are the last ones in the order of ids: a walk would read nearly all."""
    rows, nodes = asyncio.run(read_page(large_database, resource, f"updated_since=2024-03-10T09:01:00Z{order}"))
    assert (len(rows), rows.has_more) == (LIMIT, True)
    assert max(node["Actual Rows"] for node in nodes) <= 100, nodes
    reading = [node for node in nodes if node.get("Relation Name") == resource]
    assert {node["Index Name"] for node in reading if "Index Name" in node} <= {
        f"{resource}_by_moment",
        f"{resource}_pkey",
    }, nodes


@pytest.mark.parametrize("days", [2, 7, 14])
def test_a_page_whose_rows_stand_at_the_end_of_the_order_does_not_read_all(large_database: str, days: int) -> None:
    """Of 69 days, whose ids and changes have the same order."""
    since = (datetime(2024, 3, 10, 10, tzinfo=UTC) - timedelta(days=days)).isoformat().replace("+00:00", "Z")
    for query in (f"updated_since={since}", f"updated_since={since}&sort=id", f"updated_since={since}&sort=updated_at"):
        _, nodes = asyncio.run(read_page(large_database, "invoices", query))
        read = [node["Actual Rows"] + node.get("Rows Removed by Filter", 0) for node in nodes]
        assert max(read) <= MAX_ROWS, nodes


SEARCH = ("%lee4%", "%", list[str]())
FILTERS: dict[str, tuple[FilteredList, list[dict[str, Any]]]] = {
    "participants": (
        participants.LIST,
        [
            {"updated_since": datetime(2024, 3, 10, tzinfo=UTC)},
            {"updated_since": datetime(2024, 2, 10, tzinfo=UTC), "status": "Inactive", "state": "ACT"},
            {"status": "Lead"},
            {"state": ["TAS", "ACT"], "updated_since": datetime(2024, 3, 9, tzinfo=UTC)},
            {"search_words": SEARCH, "status": "Inactive", "state": "NSW"},
            {"search_words_or_email": ("%lee421%", "%", list[str](), "p5000")},
        ],
    ),
    "providers": (providers.LIST, [{"updated_since": datetime(2024, 3, 10, tzinfo=UTC)}]),
    "invoices": (
        invoices.LIST,
        [
            {"updated_since": datetime(2024, 3, 10, tzinfo=UTC), "claim_status": "paid"},
            {"claim_status": "on_hold"},
            {"has_warnings": True, "received_from": datetime(2024, 3, 1, tzinfo=UTC)},
        ],
    ),
}


@pytest.mark.parametrize("resource", FILTERS)
def test_pages_are_those_of_all_matching_rows(cluster: SharedCluster, resource: str) -> None:
    """Forward, backward and by offset, in each order: compared with the whole list, which one page has."""
    filtered_list, filters = FILTERS[resource]

    async def compare(db: Executor) -> int:
        compared = 0
        for values, order in product(filters, orders(filtered_list)):
            whole = await filtered_list.page(db, OWNER, values, 20_000, 0, order)
            assert len(whole) == await filtered_list.count(db, OWNER, values)
            keys = [(each.value, each.id) for each in whole]
            by_text = sorted(keys, key=lambda key: (key[0] is None, key[0] or "", key[1]), reverse=order.descending)
            assert order.descending or order.name == "total" or keys == by_text
            for position, limit in ((0, 1), (len(whole) // 2, 20), (len(whole) - 1, 300)):
                start = Start(*keys[position])
                after = await filtered_list.page(db, OWNER, values, limit, 0, order, start)
                assert after == whole[position + 1 :][: limit + 1]
                before = await filtered_list.page(db, OWNER, values, limit, 0, order, start, is_backward=True)
                assert before == whole[:position][::-1][: limit + 1]
                assert (
                    await filtered_list.page(db, OWNER, values, limit, position, order) == whole[position:][: limit + 1]
                )
                assert await filtered_list.count_before(db, OWNER, values, order, start) == position
                compared += 1
        return compared

    async def run() -> int:
        async with Database(prepare_crowded_database(cluster)).open() as db:
            return await compare(db)

    assert asyncio.run(run()) > 20


TOTALS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "participants": (participants.count, ("", "status=Active", "state=nsw&status=Active")),
    "invoices": (invoices.count, ("", "claim_status=paid", "approval_status=not_required&claim_status=paid")),
}


@pytest.mark.parametrize(
    "resource, query", [(name, query) for name, (_, queries) in TOTALS.items() for query in queries]
)
def test_a_stored_total_reads_no_rows_of_the_list(large_database: str, resource: str, query: str) -> None:
    count, _ = TOTALS[resource]

    async def run() -> tuple[int, list[dict[str, Any]]]:
        async with Database(large_database).open() as db, db.transaction() as tx:
            executor = ExplainingExecutor(tx._connection)  # noqa: SLF001 - the same connection, with the pool's settings
            return await count(executor, OWNER, parse_query(LISTS[resource][0], query.encode())), executor.plans

    total, plans = asyncio.run(run())
    assert total > 10_000
    nodes = [node for plan in plans for node in plan_nodes(plan)]
    table = "provider_counts" if resource == "providers" else "stored_counts"
    assert {node["Relation Name"] for node in nodes if "Relation Name" in node} == {table}
    assert sum(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] for plan in plans) < 10
