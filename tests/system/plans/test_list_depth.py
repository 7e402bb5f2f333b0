"""Lists at depth and by change: few rows are read, however many precede a page and however many match a filter."""

import asyncio
from datetime import UTC, datetime
from itertools import product
from typing import Any, cast

import pytest

from plankeeper.core.lists import PageRows, SortableQuery
from plankeeper.database.client import Database, Executor
from plankeeper.database.filters import FORWARD, FilteredList, SortOrder
from plankeeper.database.sorting import SortedId, Start
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
# An adaptive page checks whether as many rows match as are on 20 pages, and walks as many.
MAX_ROWS = 20 * (LIMIT + 1)


async def read_page(database: str, resource: str, query: str) -> tuple[PageRows[Any], list[dict[str, Any]]]:
    """A page, and the nodes of the plans of its statements that ran."""
    query_type, list_page = LISTS[resource]
    async with Database(database).open() as db, db.transaction() as tx:
        executor = ExplainingExecutor(tx._connection)  # noqa: SLF001 - the same connection, with the pool's settings
        rows = await list_page(executor, OWNER, parse_query(query_type, f"limit={LIMIT}&{query}".encode()))
    return rows, [node for plan in executor.plans for node in plan_nodes(plan) if node["Actual Loops"]]


DEEP = (
    "offset=90000",
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
ADAPTIVE = [
    *(
        (resource, f"{MATCHING_ALL}{order}{after}")
        for resource, order, after in product(
            LISTS, ("", "&sort=updated_at", "&sort=-updated_at", "&sort=-id"), ("", "&after=0", "&offset=1")
        )
    ),
    ("participants", "status=Active&sort=last_name&after=0"),
    ("participants", "state=nsw&sort=-updated_at"),
    ("participants", f"status=Active&state=nsw&sort=-last_name&{MATCHING_ALL}"),
    ("invoices", "claim_status=paid&sort=-updated_at&after=0"),
    ("invoices", "approval_status=not_required&claim_status=paid&sort=-id&after=0"),
    ("invoices", f"claim_status=paid&{MATCHING_ALL}"),
]


@pytest.mark.parametrize("resource, query", ADAPTIVE)
def test_a_page_of_many_matching_rows_reads_few(large_database: str, resource: str, query: str) -> None:
    rows, nodes = asyncio.run(read_page(large_database, resource, query))
    assert (len(rows), rows.has_more) == (LIMIT, True)
    assert max(node["Actual Rows"] for node in nodes) <= MAX_ROWS + 20, nodes  # an offset of 1 adds 20
    assert "Seq Scan" not in {node["Node Type"] for node in nodes if node.get("Relation Name") == resource}, nodes


@pytest.mark.parametrize("order", ["", "&sort=-id", "&sort=updated_at", "&sort=-updated_at"])
@pytest.mark.parametrize("resource", LISTS)
def test_a_page_of_few_matching_rows_reads_only_these(large_database: str, resource: str, order: str) -> None:
    """100 of 100,000 rows, which are the last ones in the order of ids: a walk would read nearly all."""
    rows, nodes = asyncio.run(read_page(large_database, resource, f"updated_since=2024-03-10T09:01:00Z{order}"))
    assert (len(rows), rows.has_more) == (LIMIT, True)
    assert max(node["Actual Rows"] for node in nodes) <= 100, nodes
    reading = [node for node in nodes if node.get("Relation Name") == resource]
    assert {node["Index Name"] for node in reading} == {f"{resource}_by_moment", f"{resource}_pkey"}, nodes


SEARCH: dict[str, Any] = {"search_first": "%lee4%", "search_second": "%", "search_others": list[str]()}
FILTERS: dict[str, tuple[FilteredList, list[dict[str, Any]]]] = {
    "participants": (
        participants.LIST,
        [
            {"updated_since": datetime(2024, 1, 1, tzinfo=UTC)},
            {"updated_since": datetime(2024, 3, 10, tzinfo=UTC)},
            {"updated_since": datetime(2024, 2, 10, tzinfo=UTC), "status": "Inactive"},
            {"status": "Active"},
            {"status": "Lead"},
            {"state": "TAS"},
            {"status": "Inactive", "state": "ACT"},
            SEARCH,
            SEARCH | {"search_email": "lee4", "status": "Active"},
            SEARCH | {"search_first": "%lee421%", "search_email": "p5000"},
        ],
    ),
    "providers": (providers.LIST, [{"updated_since": datetime(2024, 2, 1, tzinfo=UTC)}, {"active": True}]),
    "invoices": (
        invoices.LIST,
        [
            {"updated_since": datetime(2024, 1, 20, tzinfo=UTC), "claim_status": "paid"},
            {"claim_status": "on_hold"},
            {"approval_status": "not_required", "claim_status": "paid"},
            {"has_warnings": True},
            {"received_from": datetime(2024, 1, 1, tzinfo=UTC)},
        ],
    ),
}


@pytest.mark.parametrize("resource", FILTERS)
def test_an_adaptive_page_is_that_of_all_matching_rows(cluster: SharedCluster, resource: str) -> None:
    """Whether it walks or collects: two pages of each order, with different limits and offsets."""
    filtered_list, filters = FILTERS[resource]

    async def compare(db: Executor) -> int:
        compared = 0
        for values, name, descending, limit in product(filters, filtered_list.sorts, (False, True), (1, 20, 300)):
            order, start = SortOrder(name, descending), None
            for offset in (0, 7):
                if filtered_list.adapts(tuple(values), order):
                    query = SortableQuery(limit=limit, offset=offset)
                    found = await filtered_list.sorted_ids(db, OWNER, query, order, start, FORWARD, **values)
                    assert found == await collect_ids(db, filtered_list, query, order, start, values)
                    start = Start(found[0].value, found[0].id) if found else None
                    compared += 1
        return compared

    async def run() -> int:
        async with Database(prepare_crowded_database(cluster)).open() as db:
            return await compare(db)

    assert asyncio.run(run()) > 50


async def collect_ids(
    db: Executor,
    filtered_list: FilteredList,
    query: SortableQuery,
    order: SortOrder,
    start: Start | None,
    values: dict[str, Any],
) -> list[SortedId]:
    """The page from the statement that collects all matching rows."""
    kind = "beginning" if start is None else "null" if start.value is None else "value"
    ordered = {name: values[name] for name in filtered_list.fields if name in values}
    statement = filtered_list.sorted_statement(tuple(ordered), order, cast("Any", kind))
    after = [] if start is None else [start.id] if start.value is None else [start.value, start.id]
    return await db.rows(SortedId, statement, OWNER, query.limit + 1, query.offset, *after, *ordered.values())


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
    assert {node["Relation Name"] for node in nodes if "Relation Name" in node} == {f"{resource[:-1]}_counts"}
    assert sum(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] for plan in plans) < 10
