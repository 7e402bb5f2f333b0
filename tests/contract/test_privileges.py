"""The serving role has what the statements of the program need, and nothing else."""

import re
from collections import defaultdict
from collections.abc import Iterator

import asyncpg
import pytest
from msgspec import Struct

from contract.sources import all_statements, bulk_inserts
from plankeeper.database import privileges
from plankeeper.database.client import Database
from plankeeper.database.privileges import FUNCTIONS, SEQUENCES, TABLE_PRIVILEGES
from plankeeper.server.embedded_postgres.creation import SERVING_ROLE
from support.cluster import SharedCluster, as_owner
from support.pages import section, table_rows

# Statements that only the tables' owner runs.
OF_OWNER = {
    "resources.support_items.store": {"lock_catalogue", "increase_revision", "upsert"},
    "events.order_store": {"leave_gap"},
}
# The tables that a statement names after a verb, for each privilege.
TABLES_OF = {
    "insert": r"\binsert into (\w+)",
    "update": r"\bupdate (\w+)",
    "delete": r"\bdelete from (\w+)",
    "select": r"(?:\bfrom|\bjoin|\busing|,)\s+(\w+)\b",
}
ALL_PRIVILEGES = ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER")


class Granted(Struct):
    name: str
    privilege: str


@pytest.fixture(scope="module")
def unchanged_dsn(cluster: SharedCluster) -> Iterator[str]:
    """The address of a database for all tests that leave it as it is."""
    created = cluster.new_database()
    yield created
    cluster.drop(created)


async def test_the_catalogue_has_the_listed_privileges_and_no_others(unchanged_dsn: str) -> None:
    async with Database(unchanged_dsn, pool_size=1).open() as db:
        # What a role may do because everybody may is included.
        granted = await db.rows(
            Granted,
            "select relname::text as name, lower(privilege) as privilege from pg_class cross join unnest($1::text[])"
            " privilege where relnamespace = 'public'::regnamespace and relkind in ('r', 'p', 'v', 'm')"
            " and has_table_privilege(oid, privilege)",
            ALL_PRIVILEGES,
        )
        sequences = await db.rows(
            Granted,
            "select relname::text as name, lower(privilege) as privilege from pg_class"
            " cross join unnest(array['USAGE', 'SELECT', 'UPDATE']) privilege"
            " where relnamespace = 'public'::regnamespace and relkind = 'S' and has_sequence_privilege(oid, privilege)",
        )
        functions = await db.rows(
            str,
            "select format('%s(%s)', proname, oidvectortypes(proargtypes)) from pg_proc"
            " where pronamespace = 'public'::regnamespace and has_function_privilege(oid, 'EXECUTE')"
            " and not exists (select from pg_depend where objid = pg_proc.oid and deptype = 'e')",
        )
        owned = await db.rows(str, "select relname::text from pg_class where pg_has_role(relowner, 'usage')")
        creates = await db.one(bool, "select has_schema_privilege('public', 'CREATE')")
    by_table: defaultdict[str, set[str]] = defaultdict(set)
    for each in granted:
        by_table[each.name].add(each.privilege)
    assert by_table == {name: set(text.split(", ")) for name, text in TABLE_PRIVILEGES.items()}
    assert [(each.name, each.privilege) for each in sequences] == [
        (name, privilege) for name in SEQUENCES for privilege in ("usage", "select", "update")
    ]
    assert sorted(functions) == sorted(FUNCTIONS)
    assert owned == []
    assert creates is False


def test_each_privilege_is_needed_by_a_statement_and_each_statement_has_its_privileges() -> None:
    needed, locking = _needed_privileges()
    for table, text in TABLE_PRIVILEGES.items():
        listed = set(text.split(", "))
        assert needed[table] - listed == set(), table
        # A lock on rows needs the privilege to update some column.
        assert listed - needed[table] <= ({"update"} if table in locking else set()), table
    statements = " ".join(each.sql or "" for each in all_statements())
    for name in FUNCTIONS:
        # The default of a column, and a function that the other functions of the search call.
        is_indirect = name.startswith(("time_ordered_uuid", "slip_keys"))
        assert f"{name.partition('(')[0]}(" in statements or is_indirect or "analyze" in name


def _needed_privileges() -> tuple[defaultdict[str, set[str]], set[str]]:
    """The privileges that the statements need by table, and the tables whose rows a statement could lock."""
    needed: defaultdict[str, set[str]] = defaultdict(set)
    locking: set[str] = set()
    for each in all_statements():
        if each.module.startswith("database.migrations"):
            continue
        if each.function in OF_OWNER.get(each.module, ()):
            continue
        sql = re.sub(r"--[^\n]*|'[^']*'", " ", each.sql or "").lower()
        tables = {verb: set(re.findall(pattern, sql)) for verb, pattern in TABLES_OF.items()}
        for table in tables["insert"]:
            needed[table].add("insert")
            needed[table] |= {"update"} if "do update" in sql else set()
            needed[table] |= {"select"} if "returning" in sql or "on conflict" in sql else set()
        for verb in ("update", "delete"):
            for table in tables[verb]:
                needed[table] |= {verb, "select"}
        for table in tables["select"] & TABLE_PRIVILEGES.keys():
            needed[table].add("select")
            locking |= {table} if re.search(r"for (no key )?(update|share)|for key share", sql) else set()
    for _, table, _ in bulk_inserts():
        needed[table].add("insert")
    return needed, locking


@pytest.mark.parametrize(
    "statement",
    [
        "update events set data = null",
        "delete from events",
        "truncate participants",
        "drop table participants",
        "alter table participants add column extra text",
        "alter table participants disable trigger all",
        "create table mine (n int)",
        "create function mine() returns int language sql as 'select 1'",
        "create schema mine",
        "create role mine",
        "delete from permissions",
        "update alembic_version set version_num = '0001'",
    ],
)
async def test_the_role_changes_neither_the_schema_nor_events(unchanged_dsn: str, statement: str) -> None:
    connection = await asyncpg.connect(unchanged_dsn)
    try:
        await connection.execute("begin")  # what is allowed by mistake is undone with the connection
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.execute(statement)
    finally:
        await connection.close()


async def test_the_role_uses_temporary_tables_and_the_functions_of_the_owner(unchanged_dsn: str) -> None:
    async with Database(unchanged_dsn, pool_size=1).open() as db, db.transaction() as tx:
        await tx.execute("create temporary table mine (n int)")
        await tx.execute("insert into mine values (1)")
        await tx.analyze("participants", "events")
        await tx.analyze("participants", wait=False)


async def test_a_role_that_had_more_loses_it(dsn: str) -> None:
    async with Database(as_owner(dsn), pool_size=1).open() as db:
        await db.execute(f"grant all on events, participants to {SERVING_ROLE}")
        await db.execute(f"revoke insert on providers from {SERVING_ROLE}")
        assert await privileges.list_missing(db, SERVING_ROLE) == ["insert on providers"]
        async with db.transaction() as tx:
            await privileges.grant(tx, SERVING_ROLE)
        assert await privileges.list_missing(db, SERVING_ROLE) == []
        assert not await db.one(bool, "select has_table_privilege($1, 'events', 'TRUNCATE')", SERVING_ROLE)


def test_the_documentation_has_the_same_table() -> None:
    documented: dict[str, str] = {}
    for privileges_text, tables in table_rows(section("docs/operations/install.md", "Database roles")):
        documented |= dict.fromkeys(re.findall(r"`(\w+)`", tables), privileges_text)
    assert documented == TABLE_PRIVILEGES


def test_the_cluster_of_the_tests_serves_with_this_role(cluster: SharedCluster) -> None:
    assert f"user={SERVING_ROLE}" in cluster.dsn
