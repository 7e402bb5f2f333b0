"""Databases of older releases, upgraded while no server runs: all data is there, in the schema of a new database."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from plankeeper.access.api_keys.format import checksum
from plankeeper.database import schema
from support.client import Client
from support.cluster import SharedCluster, execute
from support.program import run_plankeeper
from support.schema_dumps import dump
from support.server import RunningServer, wait_until

FOLDER = Path(__file__).with_name("schema_dumps")
# The dumps, and why the others don't replace them. 0005 to 0009 and 0014 and 0015 only add to the schema before them.
DUMPS = {
    "0004": "the oldest schema that is supported, without webhooks, accounts and the request log",
    "0010": "the last schema with the old column names, and rows in every table that 0005 to 0010 created",
    "0012": "the last schema without mails and single sign-on, and failures in the form that 0012 introduced",
    "0016": "the last schema in which an event contains its position, also an event without one",
}
# Columns with another name: the revision that renamed them, and the name.
RENAMED = {
    "account_sessions.second_step_due": ("0011", "two_factor_pending"),
    "webhook_deliveries.made": ("0011", "attempt_count"),
    "webhook_endpoints.fanned_out_to": ("0011", "last_position"),
    "import_files.made_by": ("0011", "created_by"),
}
# Columns that exist no more: the revision that removed them, and where the data is.
REMOVED = {"events.position": ("0017", "event_order, and event_queue for events without a position")}
# Tables whose older rows a revision deleted, and why.
DELETED = {"account_failures": ("0012", "until then, failures were counted by email only")}

KEY_BODY = "plk_UpgradeTest000000000000000000000"
PLAN_MANAGER = UUID("01900000-0000-7000-8000-000000000001")
PARTICIPANT = "01900000-0000-7000-8000-000000000041"
# The events of the plan manager in the order of their positions, and the dump that introduced them.
EVENTS = {"a1": "0004", "a4": "0004", "a3": "0004", "a5": "0010", "a6": "0010", "a7": "0010", "a8": "0016"}

Rows = dict[str, list[dict[str, Any]]]


@pytest.fixture
def dsn(cluster: SharedCluster) -> Iterator[str]:
    """The address of an empty database."""
    dsn = cluster.new_database(migrated=False)
    yield dsn
    cluster.drop(dsn)


def read_rows(dsn: str) -> Rows:
    """The rows of all tables but Alembic's."""
    return asyncio.run(_read_rows(dsn))


async def _read_rows(dsn: str) -> Rows:
    connection: Any = await asyncpg.connect(dsn)
    try:
        names = await connection.fetch("select relname from pg_stat_user_tables where relname <> 'alembic_version'")
        tables = [name for (name,) in names]
        return {
            table: [json.loads(row) for (row,) in await connection.fetch(f"select to_json(t)::text from {table} t")]
            for table in tables
        }
    finally:
        await connection.close()


def expected_rows(rows: Rows, revision: str) -> Rows:
    """The rows of an older schema as the newest one contains them. It may add columns."""

    def is_later(change: dict[str, tuple[str, str]], name: str) -> bool:
        return name in change and change[name][0] > revision

    def expected(table: str, row: dict[str, Any]) -> dict[str, Any]:
        return {
            RENAMED[name][1] if is_later(RENAMED, name := f"{table}.{column}") else column: value
            for column, value in row.items()
            if not is_later(REMOVED, f"{table}.{column}")
        }

    return {
        table: [] if is_later(DELETED, table) else [expected(table, row) for row in found]
        for table, found in rows.items()
    }


def lost_rows(expected: Rows, found: Rows) -> list[tuple[str, dict[str, Any]]]:
    """The rows whose values no row of the same table contains."""
    return [
        (table, row)
        for table, rows in expected.items()
        for row in rows
        if not any(row.items() == {name: other.get(name) for name in row}.items() for other in found[table])
    ]


@pytest.mark.parametrize("revision", DUMPS)
def test_an_older_database_keeps_its_data_and_gets_the_schema_of_a_new_one(
    cluster: SharedCluster, dsn: str, revision: str
) -> None:
    execute(dsn, (FOLDER / f"{revision}.sql").read_text())
    before = read_rows(dsn)
    assert sum(map(len, before.values())) > 30
    done = run_plankeeper("migrate", PLANKEEPER_DATABASE_URL=dsn)
    assert (done.returncode, done.stdout) == (0, f"The schema is now {schema.LATEST_REVISION}.\n"), done.stderr

    expected, after = expected_rows(before, revision), read_rows(dsn)
    assert lost_rows(expected, after) == []
    assert {table: len(after[table]) for table in expected} == {table: len(rows) for table, rows in expected.items()}
    assert dump(dsn, "--schema-only") == dump(cluster.dsn, "--schema-only")
    assert dump(dsn, "--table=alembic_version") == dump(cluster.dsn, "--table=alembic_version")


@pytest.mark.parametrize("revision", DUMPS)
def test_a_server_serves_the_data_of_an_older_database(dsn: str, revision: str) -> None:
    execute(dsn, (FOLDER / f"{revision}.sql").read_text())
    schema.migrate(dsn)
    server = RunningServer(dsn).start()
    client = Client(server.url, KEY_BODY + checksum(KEY_BODY), PLAN_MANAGER)
    try:
        participant = client.get(f"/participants/{PARTICIPANT}").json()
        assert (participant["first_name"], participant["last_name"]) == ("Nguyễn", "O'Brien")
        totals = {
            status: client.get("/participants", status=status).json()["pagination"]["total"]
            for status in ("Active", "Lead")
        }
        assert totals == {"Active": 1, "Lead": 0}
        expected = [name for name, first in EVENTS.items() if first <= revision]
        wait_until(lambda: event_names(client) == expected)
        created = client.create("/participants", {"first_name": "New"})
        wait_until(lambda: last_resource(client) == created["id"])
    finally:
        client.http.close()
        server.stop()


def event_names(client: Client) -> list[str]:
    """The last two characters of the ids of all events."""
    return [each["id"][-2:] for each in client.get("/events").json()["data"]]


def last_resource(client: Client) -> str:
    return client.get("/events").json()["data"][-1]["resource"]["id"]


def test_each_dump_is_of_its_revision_and_has_a_reason() -> None:
    assert {path.stem for path in FOLDER.glob("*.sql")} == set(DUMPS)
    for revision in DUMPS:
        assert f"INSERT INTO public.alembic_version VALUES ('{revision}');" in (FOLDER / f"{revision}.sql").read_text()


def test_no_exception_is_obsolete() -> None:
    """Every renamed or removed column and every deleted row is in a dump from before its revision."""
    dumps = {revision: (FOLDER / f"{revision}.sql").read_text() for revision in DUMPS}
    for name, (since, _) in (RENAMED | REMOVED | DELETED).items():
        table = name.partition(".")[0]
        assert any(f"INSERT INTO public.{table} VALUES" in text for each, text in dumps.items() if each < since), name
