"""The plans of the lists' statements for 100,000 rows: each uses an index, and none sorts more than a page."""

import asyncio
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from contract.sources import filtered_lists
from plankeeper.core.lists import SortableQuery
from plankeeper.database.client import Database, Executor
from plankeeper.database.filters import FilteredList, SortOrder
from plankeeper.http.parsing import parse_query
from plankeeper.resources.invoices import queries as invoices
from plankeeper.resources.invoices import statistics_store as invoice_sums
from plankeeper.resources.invoices.schemas import InvoiceListQuery
from plankeeper.resources.participants import queries as participant_sums
from plankeeper.resources.participants import queries as participants
from plankeeper.resources.participants.schemas import ParticipantListQuery
from plankeeper.resources.providers import queries as providers
from plankeeper.resources.providers.schemas import ProviderListQuery
from plankeeper.resources.search.filters import EMAIL_FIELDS, KEY_FIELDS, WORD_FIELDS
from support.plans import ExplainingExecutor, plan_nodes
from support.server import RunningServer
from system.plans.crowded_database import OWNER

PAGE = 1001
# Rows that a page may read and discard: a walk that discards most rows of a plan manager uses the wrong index.
MAX_FILTERED_ROWS = 2000

MANAGER = "017a5f00-0000-7000-8000-000000000011"
DEEP_CURSOR = "01900000-0000-7000-8000-000000090000"
LISTS: dict[str, tuple[type[Any], Any, Any]] = {
    "participants": (ParticipantListQuery, participants.list_page, participants.count),
    "providers": (ProviderListQuery, providers.list_page, providers.count),
    "invoices": (InvoiceListQuery, invoices.list_page, invoices.count),
}
# A total without filters, or with a value that most rows have, is counted over an index: there is no other way.
LIST_CASES = {
    "participants": (
        "limit=20",
        "limit=1000&after=0",
        f"limit=20&after={DEEP_CURSOR}",
        "status=Lead",
        "state=nsw",
        "state=tas",
        "status=Lead&state=act",
        f"status=Active&state=nsw&after={DEEP_CURSOR}",
        "participant_number=430050000",
        "email=P50000@example.com",
        f"account_manager={MANAGER}",
        f"account_manager={MANAGER}&status=Active",
        "updated_since=2024-03-10T00:00:00Z",
    ),
    "providers": (
        "limit=20",
        f"limit=1000&after={DEEP_CURSOR}",
        "abn=51824803556",
        "email=P50000@example.com",
        "updated_since=2024-03-10T00:00:00Z",
    ),
    "invoices": (
        "limit=20",
        f"limit=1000&after={DEEP_CURSOR}",
        "invoice_number=INV-500",
        f"participant_id={DEEP_CURSOR[:-6]}000500",
        f"provider_id={DEEP_CURSOR[:-6]}000500",
        "claim_status=on_hold",
        "claim_status=paid&after=0",
        "approval_status=pending",
        "updated_since=2024-03-10T00:00:00Z",
    ),
}


@pytest.mark.parametrize(
    "resource, query", [(name, query) for name, queries in LIST_CASES.items() for query in queries]
)
def test_a_list_uses_an_index(large_database: str, resource: str, query: str) -> None:
    query_type, page, count = LISTS[resource]

    async def plans() -> list[dict[str, Any]]:
        async with Database(large_database).open() as db, db.transaction() as tx:
            executor = ExplainingExecutor(tx._connection)  # noqa: SLF001 - the same connection, with the pool's settings
            parsed = parse_query(query_type, query.encode())
            assert parsed is not None
            rows = await page(executor, OWNER, parsed)
            assert rows
            if not parsed.uses_cursor:
                assert await count(executor, OWNER, parsed) >= min(len(rows), parsed.limit)
            return executor.plans

    for plan in asyncio.run(plans()):
        for node in plan_nodes(plan):
            scanned = node["Node Type"] == "Seq Scan" and node["Relation Name"] == resource.partition(" ")[0]
            assert not scanned, plan
            assert node.get("Rows Removed by Filter", 0) <= MAX_FILTERED_ROWS, plan
            assert "Sort" not in node["Node Type"] or node["Actual Rows"] <= PAGE, plan
            if node["Node Type"] == "Sort":
                assert max(inner["Actual Rows"] for inner in node["Plans"]) <= PAGE, plan


PRIMARY_KEY = "pkey"
WITH_ERRORS = "invoices_with_errors"  # or one of the partial indexes of the same rows, whose names begin so
SEARCHED = "several indexes, which test_a_search_uses_an_index looks at"
# Lists of which a plan manager has few rows, and one whose rows stand beside those of one invoice.
SHORT_LISTS = {
    "resources.account_managers.store.LIST": "the staff of a plan manager",
    "resources.exit_reasons.store.LIST": "a list of choices",
    "resources.note_types.store.LIST": "a list of choices",
    "resources.team_members.store.LIST": "the team of one participant",
    "webhooks.endpoint_store.LIST": "limited by a setting",
    "resources.invoice_view_sessions.store.LIST": "read by invoice or by time: the indexes are named so",
}
# The index that serves each leading filter; None stands for the list without filters.
INDEXES: dict[str, tuple[FilteredList, dict[tuple[str, ...], str | dict[str, str]]]] = {
    "participants": (
        participants.LIST,
        {
            (*WORD_FIELDS, *EMAIL_FIELDS): SEARCHED,
            WORD_FIELDS: "participants_by_search",
            KEY_FIELDS: "participants_by_search",
            EMAIL_FIELDS: "participants_by_email",
            ("id",): PRIMARY_KEY,
            ("participant_number",): "participants_by_number_digits",
            ("external_id",): "participants_external_id_key",
            ("email",): "participants_by_email",
            ("account_manager",): "participants_by_account_manager",
            ("without_account_manager",): "participants_by_account_manager",
            ("updated_since",): "participants_by_moment",
            ("plan_end_date_from", "plan_end_date_to"): "participants_by_plan_end_date",
            ("plan_end_date_from",): "participants_by_plan_end_date",
            ("plan_end_date_to",): "participants_by_plan_end_date",
            ("status", "state"): "participants_by_status_and_state",
            ("state",): "participants_by_state",
            ("status",): "participants_by_status",
            ("several_state",): "participants_by_state",
            ("several_status",): "participants_by_status",
        },
    ),
    "providers": (
        providers.LIST,
        {
            (*WORD_FIELDS, *EMAIL_FIELDS): SEARCHED,
            WORD_FIELDS: "providers_by_search",
            KEY_FIELDS: "providers_by_search",
            EMAIL_FIELDS: "providers_by_email",
            ("id",): PRIMARY_KEY,
            ("abn",): "providers_by_abn_digits",
            ("external_id",): "providers_external_id_key",
            ("email",): "providers_by_email",
            ("updated_since",): "providers_by_moment",
            ("state",): "providers_by_state",
            ("several_state",): "providers_by_state",
            ("active",): "providers_by_activity",
        },
    ),
    "invoices": (
        invoices.LIST,
        {
            ("id",): PRIMARY_KEY,
            ("invoice_number",): "invoices_by_number",
            ("number_pattern",): "invoices_by_search",
            ("participant_id",): "invoices_by_participant",
            ("provider_id",): "invoices_by_provider",
            ("without_participant",): "invoices_by_participant",
            ("updated_since",): "invoices_by_moment",
            ("is_deleted",): "invoices_deleted",
            ("unpaid",): "invoices_open",
            ("in_progress",): "invoices_open",
            ("invoice_date_from", "invoice_date_to"): "invoices_by_date",
            ("invoice_date_from",): "invoices_by_date",
            ("invoice_date_to",): "invoices_by_date",
            ("received_from", "received_before"): "invoices_by_creation",
            ("received_from",): "invoices_by_creation",
            ("received_before",): "invoices_by_creation",
            ("total_min", "total_max"): "invoices_by_total",
            ("total_min",): "invoices_by_total",
            ("total_max",): "invoices_by_total",
            ("warning",): "invoices_by_warning",
            ("several_warning",): "invoices_by_warning",
            ("has_warnings",): WITH_ERRORS,
            ("on_hold_without_warning",): "invoices_by_claim_status",
            ("claim_status",): "invoices_by_claim_status",
            ("approval_status",): "invoices_by_approval_status",
            ("several_claim_status",): "invoices_by_claim_status",
            ("several_approval_status",): "invoices_by_approval_status",
            ("account_manager",): "invoices_by_participant",
            ("not_deleted",): {"page": "invoices_pkey", "count": "invoices_by_creation"},  # most rows match
        },
    ),
}

# Of both columns, which has all that a total by both requires. And nearly all invoices aren't deleted: PostgreSQL may
# read them all, or walk until a page is full.
OTHER_INDEXES = {
    ("count", ("state", "several_status")): "participants_by_status_and_state",
    ("count", ("status", "several_state")): "participants_by_status_and_state",
    ("count", ("several_state", "several_status")): "participants_by_status_and_state",
    ("page", ("account_manager", "not_deleted")): "invoices_pkey",
    ("count", ("account_manager", "not_deleted")): "invoices_by_creation",
}


def test_every_filter_has_an_expected_index() -> None:
    long_lists = {name: each for name, each in filtered_lists().items() if name not in SHORT_LISTS}
    assert {id(each) for each, _ in INDEXES.values()} == {id(each) for each in long_lists.values()}
    assert len(long_lists) + len(SHORT_LISTS) == len(filtered_lists())
    for filtered_list, indexes in INDEXES.values():
        assert [fields for fields in indexes if fields] == [each.fields for each in filtered_list.filters]


@pytest.mark.parametrize("resource", INDEXES)
def test_the_leading_filters_index_serves_every_composed_statement(large_database: str, resource: str) -> None:
    filtered_list, indexes = INDEXES[resource]

    async def plans() -> dict[tuple[str, tuple[str, ...]], dict[str, Any]]:
        async with Database(large_database).open() as db, db.transaction() as tx:
            return {
                (kind, fields): await explain_generic(tx, statement)
                for fields in filtered_list.field_sets()
                if fields or filtered_list.scope  # a list without filters has a statement of its own
                for kind, statement in (
                    ("page", filtered_list.page_statement(fields)),
                    ("count", filtered_list.count_statement(fields)),
                )
            }

    for (kind, fields), plan in asyncio.run(plans()).items():
        lead = next((each.fields for each in filtered_list.filters_of(fields)), ())
        nodes = list(plan_nodes(plan))
        used = {node["Index Name"] for node in nodes if "Index Name" in node}
        other = OTHER_INDEXES.get((kind, fields))
        index = other if other in used else indexes[lead]
        expected = f"{filtered_list.name}_pkey" if index == PRIMARY_KEY else index
        if isinstance(expected, dict):
            expected = expected[kind]
        if expected == WITH_ERRORS:
            used = {WITH_ERRORS if name.startswith(WITH_ERRORS) else name for name in used}
        if filtered_list is invoices.LIST and "account_manager" in fields:
            assert "participants_by_account_manager" in used, (kind, fields, plan)
            used.remove("participants_by_account_manager")
        assert expected == SEARCHED or used == {expected}, (kind, fields, plan)
        assert not [node for node in nodes if node["Node Type"] == "Seq Scan"], (kind, fields, plan)


async def explain_generic(tx: Executor, statement: str) -> dict[str, Any]:
    """The plan of a prepared statement, which PostgreSQL makes without regard to values."""
    connection: Any = tx._connection  # noqa: SLF001 - the pool's connection, with its settings
    await connection.execute(f"prepare explained as {statement}")
    prepared = "select cardinality(parameter_types) from pg_prepared_statements where name = 'explained'"
    nulls = ", ".join(["null"] * await connection.fetchval(prepared))
    plan = await connection.fetchval(f"explain (format json) execute explained({nulls})")
    await connection.execute("deallocate explained")
    return json.loads(plan)[0]["Plan"]


# Each order of the long lists, with the index that serves a page without filters.
SORTS = {
    "participants": {
        "id": "participants_pkey",
        "updated_at": "participants_by_moment",
        "last_name": "participants_by_last_name",
        "name": "participants_by_full_name",
        "plan_end_date": "participants_by_plan_end_date",
        "participant_number": "participants_by_number",
        "status": "participants_by_status",
        "state": "participants_by_state",
        "account_manager": "participants_by_account_manager",
    },
    "providers": {
        "id": "providers_pkey",
        "updated_at": "providers_by_moment",
        "name": "providers_by_name",
        "abn": "providers_by_abn",
        "state": "providers_by_state",
    },
    "invoices": {
        "id": "invoices_pkey",
        "updated_at": "invoices_by_moment",
        "created_at": "invoices_by_creation",
        "invoice_date": "invoices_by_date",
        "total": "invoices_by_total",
        "invoice_number": "invoices_by_number",
        "claim_status": "invoices_by_claim_status",
        "approval_status": "invoices_by_approval_status",
        "provider": "invoices_by_provider",
        "participant": "invoices_by_participant",
    },
}


@pytest.mark.parametrize("resource", SORTS)
def test_the_sorts_index_serves_a_sorted_page(large_database: str, resource: str) -> None:
    filtered_list, _ = INDEXES[resource]
    assert set(SORTS[resource]) == set(filtered_list.sorts)

    async def plans() -> dict[tuple[SortOrder, str], dict[str, Any]]:
        async with Database(large_database).open() as db, db.transaction() as tx:
            return {
                (order, start): await explain_generic(tx, statement)
                for fields, order, start, statement in filtered_list.sorted_statements()
                if not fields
            }

    for (order, start), plan in asyncio.run(plans()).items():
        nodes = list(plan_nodes(plan))
        used = {node["Index Name"] for node in nodes if "Index Name" in node}
        assert used == {SORTS[resource][order.name]}, (order, start, plan)
        assert not [node for node in nodes if node["Node Type"] == "Seq Scan"], (order, start, plan)


@pytest.mark.parametrize("sort", ["last_name", "-last_name", "plan_end_date", "-plan_end_date", "-id", "updated_at"])
def test_a_page_in_the_middle_of_a_sorted_walk_reads_few_rows(large_database: str, sort: str) -> None:
    """Among 100,000 participants, of whom a hundred share each last name and none has a plan."""

    async def plans() -> list[dict[str, Any]]:
        async with Database(large_database).open() as db, db.transaction() as tx:
            executor = ExplainingExecutor(tx._connection)  # noqa: SLF001 - the same connection, with the pool's settings
            cursor: str | None = "0"
            for _ in range(3):
                query = parse_query(ParticipantListQuery, f"sort={sort}&limit=1000&after={cursor}".encode())
                assert isinstance(query, ParticipantListQuery)
                executor.plans.clear()
                cursor = (await participants.list_page(executor, OWNER, query)).next_cursor
            return executor.plans

    for plan in asyncio.run(plans()):
        for node in plan_nodes(plan):
            assert node.get("Relation Name") != "participants" or node["Node Type"] != "Seq Scan", plan
            assert node.get("Rows Removed by Filter", 0) <= MAX_FILTERED_ROWS, plan
            assert node["Actual Rows"] <= 2 * PAGE, plan


@pytest.mark.parametrize(
    "values",
    [
        {"claim_status": "paid"},
        {"approval_status": "not_required"},
        {"received_from": datetime(2024, 1, 1, tzinfo=UTC)},
    ],
    ids=repr,
)
def test_many_rows_are_counted_without_reading_them(large_database: str, values: dict[str, Any]) -> None:
    """The sum, which is not computed for more rows than are counted, is what needs the rows."""

    async def run() -> tuple[int, list[dict[str, Any]]]:
        async with Database(large_database).open() as db, db.transaction() as tx:
            executor = ExplainingExecutor(tx._connection)  # noqa: SLF001 - the same connection, with the pool's settings
            summary = await invoices.LIST.summary(executor, OWNER, SortableQuery(), 10_001, **values)
            return summary.count, executor.plans

    count, plans = asyncio.run(run())
    assert count == 10_001
    nodes = [node for plan in plans for node in plan_nodes(plan) if "Relation Name" in node and node["Actual Loops"]]
    assert {node["Node Type"] for node in nodes} == {"Index Only Scan"}, plans
    assert sum(node["Actual Rows"] for node in nodes) == 10_001, plans


SEARCHES = (
    ("participants", "q=lee42&limit=50", 50),
    ("participants", "q=NN42&limit=50&status=Inactive", 50),
    ("participants", "q=ann42+lee421&limit=50", 1),
    ("participants", "q=Lee421,+Ann42&limit=50&state=nsw", 0),
    ("participants", "q=430+050+000&limit=50", 1),
    ("participants", "q=0050000&limit=50", 1),
    ("participants", "q=43&limit=50", 0),
    ("participants", "q=P50000@&limit=50", 1),
    ("participants", "q=nobody&limit=50", 0),
    ("participants", "q=%25&limit=50", 0),
    ("participants", "q=a%25b_c&limit=50", 0),
    ("participants", "q=%E6%9D%8E&limit=50", 0),
    ("participants", "q=lee42&limit=50&sort=-last_name", 50),
    ("participants", f"q=lee42&limit=50&account_manager={MANAGER}&after={DEEP_CURSOR}", 10),
    ("providers", "q=care+5000&limit=50", 40),
    ("providers", "q=51+824+803+556&limit=50", 1),
    ("providers", "q=p50000@&limit=50", 1),
    ("providers", "q=nobody&limit=50", 0),
)


@pytest.mark.parametrize("resource, text, expected", SEARCHES)
def test_a_search_uses_an_index(large_database: str, resource: str, text: str, expected: int) -> None:
    query_type, page, count = LISTS[resource]

    async def plans() -> list[dict[str, Any]]:
        async with Database(large_database).open() as db, db.transaction() as tx:
            executor = ExplainingExecutor(tx._connection)  # noqa: SLF001 - the same connection, with the pool's settings
            query = parse_query(query_type, text.encode())
            assert len(await page(executor, OWNER, query)) == expected
            await count(executor, OWNER, query)
            return executor.plans

    for plan in asyncio.run(plans()):
        for node in plan_nodes(plan):
            scanned = node["Node Type"] == "Seq Scan" and node["Relation Name"] == resource
            assert not scanned, plan
            assert node.get("Rows Removed by Filter", 0) <= MAX_FILTERED_ROWS, plan
            assert node.get("Rows Removed by Join Filter", 0) <= MAX_FILTERED_ROWS, plan


# What the home page sums up, with the indexes that each statement reads.
TIMES = [datetime(2024, month, 1, tzinfo=UTC) for month in (2, 3, 4)]
DAYS = [each.date() for each in TIMES]
STATISTICS: dict[str, tuple[Any, tuple[Any, ...], set[str]]] = {
    "last change": (invoice_sums.get_last_change, (), {"invoices_by_moment", "participants_by_moment"}),
    "open": (invoice_sums.summarize_open, (None, TIMES), {"invoices_open"}),
    "own": (invoice_sums.summarize_open, (MANAGER, TIMES), {"invoices_open", "participants_by_account_manager"}),
    "warnings": (invoice_sums.summarize_warnings, (None,), {"invoices_on_hold_with_errors"}),
    "received": (invoice_sums.count_received, (None, TIMES), {"invoices_by_creation"}),
    "spend": (invoice_sums.sum_by_provider, (None, *TIMES[:2]), {"invoices_by_creation", "providers_pkey"}),
    "weeks": (participant_sums.count_plan_ends, (None, DAYS), {"participants_active"}),
    "plans": (
        participant_sums.summarize_plan_ends,
        (None, *DAYS[:2]),
        {"participants_active", "participants_by_account_manager"},
    ),
}


# Indexes of the long lists that neither a filter nor a sort nor a sum names.
OTHER_USES = {
    "participants_by_birth_or_address": "the console's search, which test_search_plans looks at",
    "invoices_by_provider_and_number": "the duplicates of an invoice, and an invoice by provider and number",
}


def test_every_index_of_the_long_lists_has_a_use(server: RunningServer) -> None:
    indexes = [each for _, by_filter in INDEXES.values() for each in by_filter.values()]
    names = {name for each in indexes for name in (each.values() if isinstance(each, dict) else [each])}
    names |= {name for by_sort in SORTS.values() for name in by_sort.values()}
    names |= {name for _, _, of_sum in STATISTICS.values() for name in of_sum}
    names |= {*OTHER_INDEXES.values(), *OTHER_USES}
    statement = "select indexname::text from pg_indexes where schemaname = 'public' and tablename = any ($1)"
    found = server.run(server.db.rows(str, statement, list(INDEXES)))
    assert {WITH_ERRORS if each.startswith(WITH_ERRORS) else each for each in found} == names - {PRIMARY_KEY, SEARCHED}


@pytest.mark.parametrize("name", STATISTICS)
def test_a_sum_reads_only_indexes(large_database: str, name: str) -> None:
    read, values, indexes = STATISTICS[name]

    async def plan() -> dict[str, Any]:
        async with Database(large_database).open() as db, db.transaction() as tx:
            executor = ExplainingExecutor(tx._connection)  # noqa: SLF001 - the same connection, with the pool's settings
            await read(executor, OWNER, *values)
            return executor.plans[0]

    nodes = [each for each in plan_nodes(asyncio.run(plan())) if each["Actual Loops"]]
    assert {each["Index Name"] for each in nodes if "Index Name" in each} <= indexes
    assert {each["Node Type"] for each in nodes if each.get("Relation Name") == "invoices"} <= {"Index Only Scan"}
    assert "Seq Scan" not in {each["Node Type"] for each in nodes}
