"""The plans of searches among 30,000 people and invoices, in the locales C and C.UTF-8: none reads a table."""

import asyncio
from datetime import date
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from plankeeper.console.search.pages import parse_values
from plankeeper.database.client import Database
from plankeeper.resources.search import service, store
from plankeeper.resources.search.schemas import KINDS, SearchResults
from support.cluster import SharedCluster
from support.plans import ExplainingExecutor, plan_nodes

OWNER = UUID("017a5f00-0000-7000-8000-00000000da7a")
# Rows that an index finds and that don't match: the trigrams of a word can be those of several others.
MAX_REMOVED_ROWS = 1000
TABLES = {"participants", "team_members", "users", "providers", "invoices", "notes"}

# The digits of a row's number as syllables: every name is different, and each syllable is in many of them.
FILL_SQL = """
create function pg_temp.syllables(number integer) returns text language sql immutable as $$
    select initcap(
        string_agg((array['ba', 'ke', 'lo', 'mi', 'nu', 'ra', 'se', 'to', 'vi', 'zu'])[1 + digit::int], '' order by at)
    )
    from string_to_table(number::text, null) with ordinality as digits (digit, at)
$$;
insert into plan_managers (id, name) values ('017a5f00-0000-7000-8000-00000000da7a', 'Many');
create temporary table people as
select n, ('01900000-0000-7000-8000-' || to_char(n, 'FM000000000000'))::uuid as id, pg_temp.syllables(n) as first_name,
    case n when 77777 then 'Nguyễn' when 88888 then '李' when 66666 then 'الخطيب' else pg_temp.syllables(300000 + n)
    end as last_name
from generate_series(60001, 90000) n;
insert into users (plan_manager_id, id, email)
select '017a5f00-0000-7000-8000-00000000da7a', id, 'm' || n || '@example.com' from people;
insert into participants (plan_manager_id, id, first_name, last_name, participant_number, email, phone_number, status,
    approval_required, created_at, is_pace_plan, postal_statement, participant_receives_statements, date_of_birth,
    address_line_1, city, postcode)
select '017a5f00-0000-7000-8000-00000000da7a', id, first_name, last_name, (430000000 + n)::text,
    'p' || n || '@example.com', '04 00' || to_char(n, 'FM000000'), 'Active', false, now(), false, false, false,
    date '1930-01-01' + (n % 30000), n % 300 || ' ' || first_name || ' Street', last_name, '2' || n % 1000
from people;
insert into team_members (plan_manager_id, participant_id, id, user_id, first_name, last_name, phone_number)
select '017a5f00-0000-7000-8000-00000000da7a', id, id, id, last_name, first_name, '+61 700' || to_char(n, 'FM000000')
from people;
insert into providers (plan_manager_id, id, entity_name, abn, email, active, created_at)
select '017a5f00-0000-7000-8000-00000000da7a', id, last_name || ' Care', (51824753556 + n)::text,
    'p' || n || '@example.com', true, now()
from people;
insert into invoices (plan_manager_id, id, invoice_number, claim_status, approval_status, created_at, is_deleted,
    wont_claim, is_reimbursement, total, received_at)
select '017a5f00-0000-7000-8000-00000000da7a', id, 'INV-' || n, 'paid', 'not_required', now(), false, false, false,
    case when n % 10 = 0 then 1240 else n / 100.0 end, now()
from people;
insert into note_types (plan_manager_id, id, note_type) values ('017a5f00-0000-7000-8000-00000000da7a', 1, 'Call');
insert into notes (plan_manager_id, id, resource_kind, resource_id, note_type_id, text, author_kind, created_at)
select '017a5f00-0000-7000-8000-00000000da7a', id, (array['participant', 'provider', 'invoice'])[1 + n % 3], id, 1,
    'N' || n || case when n % 100 = 77 then ' calls the tutor' else ' writes to the plumber' end, 'system', now()
from people;
"""


@pytest.fixture(scope="module", params=["cluster", "postgres_15_cluster"], ids=["embedded", "15"])
def many_people(request: pytest.FixtureRequest) -> str:
    """A database with 30,000 rows of each kind of one plan manager, on each version."""
    cluster: SharedCluster = request.getfixturevalue(request.param)
    return cluster.prepared_database(
        "searched",
        "set synchronous_commit = on",
        "set session_replication_role = replica",  # the rows satisfy the foreign keys by construction
        FILL_SQL,
        "vacuum analyze",
    )


def search(dsn: str, text: str) -> tuple[SearchResults, list[dict[str, Any]]]:
    """The results of a search, and the plans of its statements."""

    async def work() -> tuple[SearchResults, list[dict[str, Any]]]:
        async with Database(dsn).open() as db, db.transaction() as tx:
            executor = ExplainingExecutor(tx._connection)  # noqa: SLF001 - the same connection, with the pool's settings
            values = parse_values(text)
            return await service.search(executor, OWNER, text, values=values), executor.plans

    return asyncio.run(work())


@pytest.mark.parametrize(
    "text, counts",
    [
        ("balozu", {"participant": 60, "team_member": 60, "provider": 60, "invoice": 0, "note": 0}),
        ("alozu", {"participant": 100, "team_member": 100, "provider": 100, "invoice": 0, "note": 0}),
        ("vi", {"participant": 100, "team_member": 100, "provider": 0, "invoice": 0, "note": 0}),
        ("v", {"participant": 100, "team_member": 0, "provider": 0, "invoice": 0, "note": 0}),
        ("balozuke miramiba", {"participant": 0, "team_member": 0, "provider": 0, "invoice": 0, "note": 0}),
        ("nguyen", {"participant": 1, "team_member": 1, "provider": 1, "invoice": 0, "note": 0}),
        ("Nguyễn tototo", {"participant": 1, "team_member": 1, "provider": 0, "invoice": 0, "note": 0}),
        ("nguyan", {"participant": 0, "team_member": 0, "provider": 0, "invoice": 0, "note": 0}),
        ("tototototo nguyan", {"participant": 0, "team_member": 0, "provider": 0, "invoice": 0, "note": 0}),
        ("李", {"participant": 1, "team_member": 1, "provider": 1, "invoice": 0, "note": 0}),
        ("李 vivi", {"participant": 1, "team_member": 1, "provider": 0, "invoice": 0, "note": 0}),
        ("خطيب", {"participant": 1, "team_member": 1, "provider": 1, "invoice": 0, "note": 0}),
        ("tototototo خطيب", {"participant": 0, "team_member": 0, "provider": 0, "invoice": 0, "note": 0}),
        ("3/4/1930", {"participant": 1, "team_member": 0, "provider": 0, "invoice": 0, "note": 0}),
        ("66 sesesesese street", {"participant": 1, "team_member": 0, "provider": 0, "invoice": 0, "note": 0}),
        ("seseses 2666", {"participant": 1, "team_member": 0, "provider": 0, "invoice": 0, "note": 0}),
        ("$1,240", {"participant": 0, "team_member": 0, "provider": 0, "invoice": 100, "note": 0}),
        ("$777.77", {"participant": 0, "team_member": 0, "provider": 0, "invoice": 1, "note": 0}),
        ("777.77", {"participant": 1, "team_member": 1, "provider": 0, "invoice": 1, "note": 1}),
        ("430077777", {"participant": 1, "team_member": 0, "provider": 0, "invoice": 0, "note": 0}),
        ("0400 077 777", {"participant": 1, "team_member": 0, "provider": 0, "invoice": 0, "note": 0}),
        ("+61 700 077 777", {"participant": 0, "team_member": 1, "provider": 0, "invoice": 0, "note": 0}),
        ("m77777@", {"participant": 0, "team_member": 1, "provider": 0, "invoice": 0, "note": 0}),
        ("inv-77777", {"participant": 0, "team_member": 0, "provider": 0, "invoice": 1, "note": 0}),
        ("tutor 77777", {"participant": 0, "team_member": 0, "provider": 0, "invoice": 0, "note": 1}),
        ("calls the tutor", {"participant": 0, "team_member": 0, "provider": 0, "invoice": 0, "note": 100}),
        ("nobody at all", {"participant": 0, "team_member": 0, "provider": 0, "invoice": 0, "note": 0}),
        ("%", {}),
        ("a%b_c", {"participant": 0, "team_member": 0, "provider": 0, "invoice": 0, "note": 0}),
        ("…", {}),
    ],
)
def test_a_search_reads_only_what_an_index_finds(many_people: str, text: str, counts: dict[str, int]) -> None:
    results, plans = search(many_people, text)
    assert {each.kind: each.count for each in results.kinds} == counts
    assert plans
    for plan in plans:
        for node in plan_nodes(plan):
            assert (node["Node Type"], node.get("Relation Name")) not in {("Seq Scan", table) for table in TABLES}, plan
            removed = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
            assert removed <= MAX_REMOVED_ROWS, plan


def test_a_slip_is_corrected(many_people: str) -> None:
    results, _ = search(many_people, "nguyan tototototo")
    assert results.corrections == ["nguyen tototototo"]
    assert [[each.text.split()[:2] for each in found.similar] for found in results.kinds] == [
        [["tototototo", "nguyen"]],
        [["nguyen", "tototototo"]],
        [],
        [],
        [],
    ]


# A generic plan doesn't depend on the plan manager: an average one with few rows must not lead to a walk through all.
@pytest.mark.parametrize("kind", KINDS[:3])
def test_every_condition_of_names_uses_the_search_index(many_people: str, kind: str) -> None:
    async def plans() -> list[dict[str, Any]]:
        async with Database(many_people).open() as db, db.transaction() as tx:
            executor = ExplainingExecutor(tx._connection)  # noqa: SLF001 - the same connection, with the pool's settings
            by_words, by_key, _ = service.STORES[kind]
            await by_words(executor, OWNER, ["%zuzu%", "%vivi%", "% ra%"], 5)
            await by_key(executor, OWNER, "nguyan", [], 5)
            await by_key(executor, OWNER, "nguyan", ["%vivi%", "% zu%"], 5)
            return executor.plans

    table = {"participant": "participants", "team_member": "team_members", "provider": "providers"}[kind]
    for plan in asyncio.run(plans()):
        used = {node.get("Index Name") for node in plan_nodes(plan)}
        assert f"{table}_by_search" in used, plan


def test_every_other_value_uses_an_index_of_its_own(many_people: str) -> None:
    async def plans() -> list[dict[str, Any]]:
        async with Database(many_people).open() as db, db.transaction() as tx:
            executor = ExplainingExecutor(tx._connection)  # noqa: SLF001 - the same connection, with the pool's settings
            await store.participants_by_birth(executor, OWNER, date(1987, 4, 3), 5)
            await store.participants_by_address(executor, OWNER, ["% zuzu%"], 5)
            await store.participants_by_address(executor, OWNER, ["% zuzu%", "% vivi%", "% 12 %"], 5)
            await store.invoices_by_total(executor, OWNER, Decimal(1240), 5)
            return executor.plans

    used = [{node.get("Index Name") for node in plan_nodes(plan)} for plan in asyncio.run(plans())]
    assert ["participants_by_birth_or_address" in each for each in used] == [True, True, True, False]
    assert "invoices_by_total" in used[3]


@pytest.mark.parametrize(
    "text, folded",
    [
        ("Nguyễn", "nguyen"),
        ("Nguye\u0302\u0303n", "nguyen"),
        ("Đỗ ØÆß Łódź", "do oaess lodz"),
        ("RÓISÍN O’Dea", "roisin o'dea"),
        ("李明", "李明"),
        ("", ""),
    ],
)
def test_accents_are_removed_in_every_locale(many_people: str, text: str, folded: str) -> None:
    async def fold() -> str:
        async with Database(many_people).open() as db:
            return await store.fold(db, text)

    assert asyncio.run(fold()) == folded
