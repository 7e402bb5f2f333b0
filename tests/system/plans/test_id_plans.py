"""The plans of statements about rows with given ids: they read these rows, however many others the plan manager has."""

import asyncio
import json
import re
from itertools import count
from typing import Any

import asyncpg
import pytest

from contract.sources import Statement, location_of, store_statements
from plankeeper.database.client import Database
from plankeeper.database.pool import SET_CUSTOM_PLAN
from support.cluster import as_owner
from support.plans import plan_nodes
from system.plans.uneven_database import LARGE_OFFICE, ROW, prepare_uneven_database

MAX_BUFFERS = 10  # of one scan of a table or an index: a look-up in a primary key reads three or four

# A condition on the id by a parameter, an array or a list of records.
HAS_IDS = re.compile(
    r"(?<!\w)(\w+\.)?id (= (any \()?\$\d|in \(select unnest\(\$\d|= (new|record|result|selected)\.id\b)"
)
# Statements that read more for another reason.
EXCEPTIONS = {
    "resources.claims.result_store.find_lines": "an operator's command knows only the id of the line",
    "privacy.store.delete_unused_users": "an erasure looks for the users in the whole trash",
    "privacy.store.erase_import_rows": "an erasure searches the texts of all imports",
}
RECORD = {"id": str(ROW), "participant_id": str(ROW), "status": "Active"}
VALUES = {
    "uuid": str(ROW),
    "uuid[]": f"{{{ROW}}}",
    "text": str(ROW),
    "text[]": f"{{{ROW}}}",
    "bigint": "2500",
    "bigint[]": "{2500}",
    "integer": "1",
    "json": json.dumps([RECORD]),
}


@pytest.fixture(scope="module", params=["cluster", "postgres_15_cluster"], ids=["embedded", "15"])
def uneven_database(request: pytest.FixtureRequest) -> str:
    return prepare_uneven_database(request.getfixturevalue(request.param))


# Of each list, the first pages that only ids filter, and their totals.
COMPOSED = re.compile(
    r"(team_members\.store\.LIST\[participant_id,id\]|fees\.store\.LINES\[taking_id,id\]"
    r"|(?<!team_members\.store\.LIST)(?<!fees\.store\.LINES)\[id\])((?!Start).)*$"
)


def statements_by_id() -> list[Statement]:
    statements = [each for each in store_statements() if HAS_IDS.search(each.sql or "")]
    return [each for each in statements if "[" not in each.name or COMPOSED.search(each.name)]


def test_a_statement_by_id_reads_few_pages(uneven_database: str) -> None:
    statements = statements_by_id()
    assert len(statements) > 150

    async def read_buffers() -> dict[str, float]:
        async with Database(as_owner(uneven_database)).open() as db, db.transaction() as tx:
            connection: Any = tx._connection  # noqa: SLF001 - the pool's connection, with its settings
            await tx.execute("set local session_replication_role = replica")  # no foreign keys
            buffers: dict[str, float] = {}
            for each in statements:
                buffers[each.name] = max(await most_buffers(connection, each), buffers.get(each.name, 0))
            return buffers

    buffers = asyncio.run(read_buffers())
    too_many = {name: most for name, most in buffers.items() if most > MAX_BUFFERS}
    assert {name: most for name, most in too_many.items() if name not in EXCEPTIONS} == {}
    assert set(too_many) == set(EXCEPTIONS)


NUMBERS = count(1)  # of prepared statements


async def most_buffers(connection: Any, statement: Statement) -> float:
    """The most buffers that one scan in a statement's plan reads. What the statement writes is undone."""
    sql = statement.sql or ""
    name = f"explained_{next(NUMBERS)}"
    savepoint = connection.transaction()
    await savepoint.start()
    try:
        if "[" in statement.name or statement.name.endswith("_of_all"):
            await connection.execute(SET_CUSTOM_PLAN)
        await connection.execute(f"prepare {name} as {sql}")
        types = await connection.fetchval(
            "select parameter_types::text[] from pg_prepared_statements where name = $1", name
        )
        values = [VALUES.get(each) for each in types]
        values[0] = str(LARGE_OFFICE) if types[0] == "uuid" else values[0]
        if "null::note_types" in sql:
            values[1] = json.dumps([RECORD | {"id": VALUES["bigint"]}])
        for number in re.findall(r"\$(\d+)::text\[\]::bigint\[\]", sql):
            values[int(number) - 1] = VALUES["bigint[]"]
        for number in re.findall(r"at time zone \$(\d+)", sql):
            values[int(number) - 1] = "UTC"
        literals = ", ".join("null" if each is None else f"'{each}'" for each in values)
        plan = await connection.fetchval(f"explain (format json, analyze, buffers) execute {name}({literals})")
    except asyncpg.PostgresError as error:
        raise AssertionError(location_of(statement)) from error
    finally:
        await savepoint.rollback()
    scans = [
        each
        for each in plan_nodes(json.loads(plan)[0]["Plan"])
        if each["Actual Loops"] and "Scan" in each["Node Type"] and ("Index Name" in each or "Relation Name" in each)
    ]
    return max((each["Shared Hit Blocks"] + each["Shared Read Blocks"]) / each["Actual Loops"] for each in scans)
