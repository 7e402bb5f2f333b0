"""The plans of the lists' statements for 100,000 rows: each uses an index, and none sorts more than a page."""

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import combinations
from typing import Any
from uuid import UUID

import pytest

from contract.sources import filtered_lists, orders
from plankeeper.database.client import Database
from plankeeper.database.lists.filtered_list import FilteredList
from plankeeper.database.lists.statements import SortOrder, Start
from plankeeper.http.parsing import parse_query
from plankeeper.resources.invoices import queries as invoices
from plankeeper.resources.invoices import review_store
from plankeeper.resources.invoices import statistics_store as invoice_sums
from plankeeper.resources.invoices.schemas import InvoiceListQuery
from plankeeper.resources.notes import queries as notes
from plankeeper.resources.notes.schemas import NoteListQuery
from plankeeper.resources.participants import queries as participant_sums
from plankeeper.resources.participants import queries as participants
from plankeeper.resources.participants.schemas import ParticipantListQuery
from plankeeper.resources.providers import queries as providers
from plankeeper.resources.providers.schemas import ProviderListQuery
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
    "notes": (NoteListQuery, notes.list_page, notes.count),
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
    "notes": (
        "limit=20",
        f"limit=1000&after={DEEP_CURSOR}",
        "resource_kind=participant",
        f"resource_id={DEEP_CURSOR[:-6]}000500",
        "note_type_id=3",
        "note_type_id=1&after=0",
        "pinned=true",
        "alert=true",
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


# Lists of which a plan manager has few rows, and one whose rows stand beside those of one invoice.
SHORT_LISTS = {
    "resources.account_managers.store.LIST": "the staff of a plan manager",
    "resources.claims.store.CLAIMS": "the claims of one batch",
    "resources.claims.adjustment_store.LIST": "the adjustments of one invoice",
    "resources.claims.result_store.RECEIPTS": "the receipts of one batch",
    "resources.claims.store.LIST": "a plan manager makes a few batches a week",
    "resources.exit_reasons.store.LIST": "a list of choices",
    "resources.fees.store.LIST": "one fee of a participant a month: the indexes are named so",
    "resources.fees.store.LINES": "the lines of one taking",
    "resources.fees.store.TAKINGS": "a plan manager takes its fees a few times a month",
    "resources.note_types.store.LIST": "a list of choices",
    "resources.payments.queries.LIST": "a plan manager makes a few runs a week",
    "resources.payments.queries.PAYMENTS": "the payments of one run",
    "resources.statement_runs.queries.LIST": "a plan manager makes one run a month",
    "resources.statement_runs.queries.ITEMS": "the items of one run",
    "resources.statements.store.LIST": "the statements of one participant",
    "resources.plans.store.LIST": "the plans of one participant",
    "resources.plans.store.ENDS": "of the console, filtered and sorted by the end of the plan: the index is named so",
    "resources.team_members.store.LIST": "the team of one participant",
    "webhooks.endpoint_store.LIST": "limited by a setting",
    "resources.invoice_view_sessions.store.LIST": "read by invoice or by time: the indexes are named so",
}
# Lists whose filters and groups add up what a plan manager has, for the month's end: no index serves each of them.
READ_WHOLE = {
    "resources.claims.queries.LIST": "the category of a claim is computed",
    "resources.payments.queries.ALL_PAYMENTS": "fewer than claims",
}
WORDS = ("%lee421%", "%", list[str]())
LATE = datetime(2024, 3, 10, 9, 1, tzinfo=UTC)  # 100 rows changed since
# For each filter of the long lists, a value that few rows have, and the index that finds them.
FILTERS: dict[str, tuple[FilteredList, dict[str, tuple[Any, set[str]]]]] = {
    "participants": (
        participants.LIST,
        {
            "search_words_or_email": ((*WORDS, "p5000"), {"participants_by_search", "participants_by_email"}),
            "search_words": (WORDS, {"participants_by_search"}),
            "search_key": (("lee421", list[str]()), {"participants_by_search"}),
            "search_email": ("p5000", {"participants_by_email"}),
            "id": ([DEEP_CURSOR], {"participants_pkey"}),
            "participant_number": ("430050000", {"participants_by_number_digits"}),
            "external_id": ("none", {"participants_external_id_key"}),
            "email": ("P50000@example.com", {"participants_by_email"}),
            "account_manager": (MANAGER, {"participants_by_account_manager"}),
            "without_account_manager": (True, {"participants_by_account_manager"}),
            "account_manager_or_none": ([MANAGER], {"participants_by_account_manager"}),
            "participants_of": (MANAGER, {"participants_by_account_manager"}),
            "updated_since": (LATE, {"participants_by_moment"}),
            "plan_end_date_from": (LATE.date(), {"participants_by_plan_end_date"}),
            "plan_end_date_to": (LATE.date(), {"participants_by_plan_end_date"}),
            "state": ("TAS", {"participants_by_state"}),
            "status": ("Lead", {"participants_by_status"}),
        },
    ),
    "providers": (
        providers.LIST,
        {
            "search_words_or_email": ((*WORDS, "p5000"), {"providers_by_search", "providers_by_email"}),
            "search_words": (("%care 5000%", "%", list[str]()), {"providers_by_search"}),
            "search_key": (("lee421", list[str]()), {"providers_by_search"}),
            "search_email": ("p5000", {"providers_by_email"}),
            "id": ([DEEP_CURSOR], {"providers_pkey"}),
            "abn": ("51824803556", {"providers_by_abn_digits"}),
            "external_id": ("none", {"providers_external_id_key"}),
            "email": ("P50000@example.com", {"providers_by_email"}),
            "updated_since": (LATE, {"providers_by_moment"}),
            "state": ("NT", {"providers_by_state"}),
            "active": (False, {"providers_by_activity"}),
        },
    ),
    "invoices": (
        invoices.LIST,
        {
            "id": ([DEEP_CURSOR], {"invoices_pkey"}),
            "invoice_number": ("INV-500", {"invoices_by_number"}),
            "number_pattern": ("%50012%", {"invoices_by_search"}),
            "participant_id": (f"{DEEP_CURSOR[:-6]}000500", {"invoices_by_participant"}),
            "provider_id": (f"{DEEP_CURSOR[:-6]}000500", {"invoices_by_provider"}),
            "without_participant": (True, {"invoices_by_participant"}),
            "without_provider": (True, {"invoices_by_provider"}),
            "account_manager": (MANAGER, {"invoices_by_participant", "participants_by_account_manager"}),
            "without_account_manager": (True, {"invoices_by_moment", "participants_by_account_manager"}),
            "participant_state": ("TAS", {"invoices_by_participant", "participants_by_state"}),
            "without_state": (True, {"invoices_by_moment", "participants_by_state"}),
            "participants_of": (MANAGER, {"invoices_by_participant", "participants_by_account_manager"}),
            "updated_since": (LATE, {"invoices_by_moment"}),
            "is_deleted": (True, {"invoices_deleted"}),
            "unpaid": (True, {"invoices_open"}),
            "in_progress": (True, {"invoices_open"}),
            "unclaimed": (True, {"invoices_open"}),
            "claimed_late": (
                (LATE, LATE + timedelta(hours=2), "UTC", LATE.date(), [LATE.date()], LATE.date()),
                {"invoices_by_receipt"},
            ),
            "paid_late": ((LATE.date(),) * 3 + ([LATE.date()], LATE.date()), {"claims_by_result", "invoices_pkey"}),
            "invoice_date_from": (LATE.date(), {"invoices_by_date"}),
            "invoice_date_to": (LATE.date(), {"invoices_by_date"}),
            "received_from": (LATE, {"invoices_by_receipt"}),
            "received_before": (datetime(2024, 1, 1, 2, tzinfo=UTC), {"invoices_by_receipt"}),
            "total_min": (100_000, {"invoices_by_total"}),
            "total_max": (0, {"invoices_by_total"}),
            "line_claim_status": ("rejected", {"invoice_lines_by_claim_status"}),
            "assigned_to": (MANAGER, {"invoices_assigned"}),
            "external_id": ("none", {"invoices_external_id_key"}),
            "warning": ("duplicate_invoice", {"invoices_by_warning"}),
            "has_warnings": (True, {"invoices_with_errors"}),
            "needs_attention": (True, {"invoices_with_errors"}),
            "on_hold_without_warning": (True, {"invoices_by_claim_status"}),
            "claim_status": ("on_hold", {"invoices_by_claim_status"}),
            "approval_status": ("pending", {"invoices_by_approval_status"}),
        },
    ),
    "notes": (
        notes.LIST,
        {
            "search_words": (("%50012%", "%", list[str]()), {"notes_by_search"}),
            "search_key": (("خطيب", list[str]()), {"notes_by_search"}),
            "id": ([DEEP_CURSOR], {"notes_pkey"}),
            "resource_kind": ("provider", {"notes_by_resource"}),
            "resource_id": (f"{DEEP_CURSOR[:-6]}000500", {"notes_by_resource"}),
            "note_type_id": (3, {"notes_by_type"}),
            "pinned": (True, {"notes_pinned"}),
            "alert": (True, {"notes_with_alert"}),
            "updated_since": (LATE, {"notes_by_moment"}),
        },
    ),
}
# A twentieth of the invoices, which are found by their participants: PostgreSQL may read all of them.
JOINED = {("invoices", "account_manager"), ("invoices", "participants_of")}
# They keep half of the rows by PostgreSQL's estimate: with a filter that is joined, it may still read the table.
NOT_NARROWING = {("invoices", "without_account_manager"), ("invoices", "without_state")}
# The large database has no rows of these tables, which PostgreSQL then reads without an index.
EMPTY_TABLES = {"claims", "claim_batches", "claim_receipts", "fees", "payments", "payment_lines", "payment_runs"}


def is_scan(node: dict[str, Any]) -> bool:
    return node["Node Type"] == "Seq Scan" and node["Relation Name"] not in EMPTY_TABLES


# Buffers that a page or a total of few rows reads: up to 2,000 rows, each in a page of the table, with their index.
MAX_BUFFERS = 6000


def test_every_filter_has_an_expected_index() -> None:
    others = SHORT_LISTS | READ_WHOLE
    long_lists = {name: each for name, each in filtered_lists().items() if name not in others}
    assert {id(each) for each, _ in FILTERS.values()} == {id(each) for each in long_lists.values()}
    assert len(long_lists) + len(others) == len(filtered_lists())
    for filtered_list, values in FILTERS.values():
        assert set(values) == set(filtered_list.filters)


@pytest.mark.parametrize("resource", FILTERS)
def test_a_filters_index_serves_its_statements(large_database: str, resource: str) -> None:
    filtered_list, values = FILTERS[resource]

    async def plans() -> dict[str, list[dict[str, Any]]]:
        async with Database(large_database).open() as db, db.transaction() as tx:
            executor = ExplainingExecutor(tx._connection)  # noqa: SLF001 - the same connection, with the pool's settings
            found: dict[str, list[dict[str, Any]]] = {}
            for name, (value, _) in values.items():
                await filtered_list.page(executor, OWNER, {name: value}, 20, 0, SortOrder("updated_at", True))
                await filtered_list.count(executor, OWNER, {name: value})
                found[name] = executor.plans[-2:]
            return found

    for name, (page, count) in asyncio.run(plans()).items():
        for plan in (page, count):
            nodes = list(plan_nodes(plan))
            used = {node["Index Name"] for node in nodes if "Index Name" in node}
            assert any(each.startswith(index) for each in used for index in values[name][1]), (name, used, plan)
            is_scanned = any(is_scan(node) for node in nodes)
            assert not is_scanned or (resource, name) in JOINED, (name, plan)
            assert plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] <= MAX_BUFFERS, (name, plan)


@pytest.mark.parametrize("resource", FILTERS)
def test_no_pair_of_filters_reads_the_table(large_database: str, resource: str) -> None:
    filtered_list, values = FILTERS[resource]

    async def plans() -> dict[tuple[str, str], list[dict[str, Any]]]:
        async with Database(large_database).open() as db, db.transaction() as tx:
            executor = ExplainingExecutor(tx._connection)  # noqa: SLF001 - the same connection, with the pool's settings
            found: dict[tuple[str, str], list[dict[str, Any]]] = {}
            for first, second in combinations(values, 2):
                if {(resource, first), (resource, second)} == JOINED:
                    continue  # both find the same twentieth
                pair = {first: values[first][0], second: values[second][0]}
                await filtered_list.page(executor, OWNER, pair, 20, 0, SortOrder("updated_at", True))
                await filtered_list.count(executor, OWNER, pair)
                found[first, second] = executor.plans[-2:]
            return found

    for names, (page, count) in asyncio.run(plans()).items():
        filters = {(resource, name) for name in names}
        is_twentieth = bool(filters & JOINED) and filters <= JOINED | NOT_NARROWING
        for plan in (page, count):
            scanned = [node for node in plan_nodes(plan) if is_scan(node)]
            assert is_twentieth or not scanned, (names, plan)
            assert plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] <= MAX_BUFFERS, (names, plan)


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
        "received_at": "invoices_by_receipt",
        "invoice_date": "invoices_by_date",
        "total": "invoices_by_total",
        "invoice_number": "invoices_by_number",
        "claim_status": "invoices_by_claim_status",
        "approval_status": "invoices_by_approval_status",
        "provider": "invoices_by_provider",
        "participant": "invoices_by_participant",
    },
    "notes": {"id": "notes_pkey", "updated_at": "notes_by_moment"},
}


@pytest.mark.parametrize("resource", SORTS)
def test_the_sorts_index_serves_a_sorted_page(large_database: str, resource: str) -> None:
    """At the beginning, after the first row, and before the last one of the first page."""
    filtered_list, _ = FILTERS[resource]
    assert set(SORTS[resource]) == set(filtered_list.sorts)

    async def plans() -> dict[SortOrder, list[dict[str, Any]]]:
        async with Database(large_database).open() as db, db.transaction() as tx:
            executor = ExplainingExecutor(tx._connection)  # noqa: SLF001 - the same connection, with the pool's settings
            found: dict[SortOrder, list[dict[str, Any]]] = {}
            for order in orders(filtered_list):
                page = await filtered_list.page(executor, OWNER, {}, 20, 0, order)
                await filtered_list.page(executor, OWNER, {}, 20, 0, order, Start(page[0].value, page[0].id))
                last = Start(page[-1].value, page[-1].id)
                await filtered_list.page(executor, OWNER, {}, 20, 0, order, last, is_backward=True)
                found[order] = executor.plans[-3:]
            return found

    for order, found in asyncio.run(plans()).items():
        for plan in found:
            nodes = list(plan_nodes(plan))
            used = {node["Index Name"] for node in nodes if "Index Name" in node}
            assert used == {SORTS[resource][order.name]}, (order, plan)
            assert not [node for node in nodes if node["Node Type"] == "Seq Scan"], (order, plan)
            assert max(node["Actual Rows"] for node in nodes) <= 42, (order, plan)


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
def test_a_summary_of_many_rows_reads_as_many_as_it_counts(large_database: str, values: dict[str, Any]) -> None:
    async def run() -> tuple[int, list[dict[str, Any]]]:
        async with Database(large_database).open() as db, db.transaction() as tx:
            executor = ExplainingExecutor(tx._connection)  # noqa: SLF001 - the same connection, with the pool's settings
            summary = await invoices.LIST.summary(executor, OWNER, values, 10_001)
            return summary.count, executor.plans

    count, plans = asyncio.run(run())
    assert count == 10_001
    nodes = [node for plan in plans for node in plan_nodes(plan) if "Relation Name" in node and node["Actual Loops"]]
    assert sum(node["Actual Rows"] + node.get("Rows Removed by Filter", 0) for node in nodes) <= 10_100, plans


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
    ("notes", "q=number+5001&limit=50", 20),
    ("notes", "q=50012&limit=50&alert=true", 0),
    ("notes", "q=nobody&limit=50", 0),
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
    "last change": (
        invoice_sums.get_last_change,
        (),
        {"invoices_by_moment", "participants_by_moment", "plans_by_moment"},
    ),
    "open": (invoice_sums.summarize_open, (None, TIMES), {"invoices_open"}),
    "own": (invoice_sums.summarize_open, (MANAGER, TIMES), {"invoices_open", "participants_by_account_manager"}),
    "warnings": (invoice_sums.summarize_warnings, (None,), {"invoices_on_hold_with_errors"}),
    "received": (invoice_sums.count_received, (None, TIMES), {"invoices_by_receipt"}),
    "spend": (invoice_sums.sum_by_provider, (None, *TIMES[:2]), {"invoices_by_receipt", "providers_pkey"}),
    "late": (invoice_sums.summarize_late, (None, LATE), {"invoices_open"}),
    "review": (review_store.count, (UUID(MANAGER),), {"invoices_in_review"}),
    "review warnings": (review_store.count_warnings, (), {"invoices_in_review"}),
    "assignees": (review_store.count_by_assignee, (), {"invoices_in_review"}),
    "weeks": (participant_sums.count_plan_ends, (None, DAYS), {"participants_active"}),
    "plans": (
        participant_sums.summarize_plan_ends,
        (None, *DAYS[:2]),
        {"participants_active", "participants_by_account_manager"},
    ),
}


# Indexes of the long lists that neither a filter nor a sort nor a sum names.
OTHER_USES = {
    "participants_by_plan_change": "the task that makes the next plan current",
    "participants_by_birth_or_address": "the console's search, which test_search_plans looks at",
    "notes_alerts": "the alerts of a record, and those of the records of a queue",
    "invoices_by_provider_and_number": "the duplicates of an invoice, and an invoice by provider and number",
}


def test_every_index_of_the_long_lists_has_a_use(server: RunningServer) -> None:
    names = {name for _, values in FILTERS.values() for _, indexes in values.values() for name in indexes}
    names |= {name for by_sort in SORTS.values() for name in by_sort.values()}
    names |= {name for _, _, of_sum in STATISTICS.values() for name in of_sum}
    names |= {*OTHER_USES}
    names -= {"claims_by_result", "invoice_lines_by_claim_status", "plans_by_moment"}  # of other tables
    statement = "select indexname::text from pg_indexes where schemaname = 'public' and tablename = any ($1)"
    found = server.run(server.db.rows(str, statement, list(FILTERS)))
    assert set(found) == names


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
