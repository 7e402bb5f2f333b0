"""`plankeeper doctor` and the state of the database: connections, disk, events, webhooks, and what stops writes."""

import asyncio
import json
from collections.abc import Iterator
from urllib.parse import urlsplit
from uuid import UUID

import pytest

from plankeeper.cli.doctor import connections_needed, database_folder, disk_line
from plankeeper.core.settings import Settings
from plankeeper.database.client import Database
from plankeeper.database.server import ServerState
from plankeeper.server.embedded_postgres.creation import SERVING_ROLE
from support.cluster import execute
from support.program import Done, run_plankeeper, run_program

PLAN_MANAGER = UUID(int=5)


@pytest.fixture
def role(dsn: str) -> Iterator[str]:
    """A role that is no superuser, whose limits PostgreSQL enforces. Roles belong to all databases of the cluster."""
    name = f"visitor_of_{urlsplit(dsn).path.removeprefix('/')}"
    execute(dsn, f"create role {name} login in role {SERVING_ROLE}")
    yield name
    execute(dsn, f"drop owned by {name}", f"drop role {name}")


@pytest.fixture
def limited_dsn(dsn: str, role: str) -> str:
    return dsn.replace(f"user={SERVING_ROLE}", f"user={role}")


def doctor(dsn: str, **settings: str) -> Done:
    return run_plankeeper("doctor", PLANKEEPER_DATABASE_URL=dsn, PLANKEEPER_WORKERS="2", **settings)


def test_fewer_connections_than_a_server_opens_are_a_warning(limited_dsn: str, dsn: str, role: str) -> None:
    assert "\nok    PostgreSQL allows 397 connections, and a server opens up to 31; " in doctor(limited_dsn).stdout
    execute(dsn, f"alter role {role} connection limit 30")
    assert (
        "\nwarn  PostgreSQL allows 30 connections, and a server opens up to 31: increase max_connections or the role's"
        " limit, or reduce PLANKEEPER_POOL_SIZE\n"
    ) in doctor(limited_dsn).stdout
    smaller = doctor(limited_dsn, PLANKEEPER_POOL_SIZE="2", PLANKEEPER_WEBHOOK_WORKER="off")
    assert "\nok    PostgreSQL allows 30 connections, and a server opens up to 10; " in smaller.stdout


def test_exhausted_connections_are_named(limited_dsn: str, dsn: str, role: str) -> None:
    execute(dsn, f"alter role {role} connection limit 0")
    done = doctor(limited_dsn)
    assert done.returncode == 1
    assert (
        "FAIL  The database is unavailable: the database accepts no more connections: too many connections for role"
    ) in done.stdout


def test_a_read_only_database_is_named(dsn: str) -> None:
    done = doctor(dsn + "&default_transaction_read_only=on")
    assert (done.returncode, "FAIL  The database is read-only, so it can't write\n" in done.stdout) == (1, True)
    assert "FAIL" not in doctor(dsn).stdout


def test_a_variable_that_is_no_setting_is_a_warning(dsn: str) -> None:
    shown = doctor(dsn, PLANKEEPER_WORKER="2", PLANKEEPER_UNHEARD_OF="1").stdout
    assert [line for line in shown.splitlines() if "not a setting" in line] == [
        "warn  PLANKEEPER_UNHEARD_OF is not a setting, and has no effect",
        "warn  PLANKEEPER_WORKER is not a setting, and has no effect: is PLANKEEPER_WORKERS meant?",
    ]
    assert "not a setting" not in doctor(dsn).stdout


def test_events_that_no_server_sequences_are_a_warning_while_servers_run(dsn: str) -> None:
    assert "feed" not in doctor(dsn).stdout
    execute(
        dsn,
        f"insert into plan_managers (id, name) values ('{PLAN_MANAGER}', 'Acacia')",
        f"""insert into event_queue (plan_manager_id, id, event_ids, types, notify)
        values ('{PLAN_MANAGER}', '{UUID(int=1)}', '{{{UUID(int=1)}, {UUID(int=2)}}}', '{{note.created}}', true)""",
    )
    # As after a restore.
    assert ("\nok    events wait for a server to start, which puts them into the feed (2)\n") in doctor(dsn).stdout

    async def look_beside_a_server() -> str:
        async with Database(dsn, pool_size=1).open() as db:
            await db.one(int, "select 1")  # its connection is that of a server whose sequencer does nothing
            return await asyncio.to_thread(lambda: run_program("doctor", PLANKEEPER_DATABASE_URL=dsn).stdout)

    assert (
        "\nwarn  events wait to get into the feed (2), and none did for 2 seconds: look for `sequencer` in the log of"
        " the servers\n"
    ) in asyncio.run(look_beside_a_server())


def test_failing_webhooks_are_warnings(dsn: str) -> None:
    assert "webhook" not in doctor(dsn).stdout.replace("secrets of webhooks", "")
    plan_manager = f"insert into plan_managers (id, name) values ('{PLAN_MANAGER}', 'Acacia')"
    endpoint = """
        insert into webhook_endpoints (plan_manager_id, id, url, event_types, payload, active, disabled_reason,
            created_at, secret, failing_since, last_position)
        values ('{plan_manager}', '{id}', 'https://example.com', '{{}}', 'thin', {active}, {reason}, now(), 'x',
            '2026-01-02T03:04:05Z', 0)
    """
    endpoints = [
        endpoint.format(plan_manager=PLAN_MANAGER, id=UUID(int=number), active=active, reason=reason)
        for number, (active, reason) in enumerate([("true", "null"), ("false", "'failing'"), ("false", "'failing'")])
    ]
    execute(dsn, plan_manager, *endpoints)
    shown = doctor(dsn).stdout
    assert "\nwarn  every attempt to 1 webhook endpoint fails, the first since 2026-01-02T03:04:05Z\n" in shown
    assert "\nwarn  2 webhook endpoints are disabled after failures\n" in shown


def test_only_a_database_on_this_machine_has_a_folder() -> None:
    state = ServerState(connection_limit=1, connections=1, database_bytes=1, data_directory="/var/lib/x")
    hosts = {
        "postgresql://u:p@localhost/d": True, "postgresql://u@127.0.0.1:5432/d": True,
        "postgresql:///d?host=/run": True,
        "postgresql://u@db.example.com/d": False, "postgresql://u@pg1,pg2/d": False,
    }  # fmt: skip
    assert {dsn: database_folder(state, dsn, None) is not None for dsn in hosts} == hosts
    hidden = ServerState(connection_limit=1, connections=1, database_bytes=1, data_directory=None)
    assert database_folder(hidden, "postgresql://u@localhost/d", None) is None
    assert disk_line(None, 3 * 2**20) == (
        "ok", "the database has 3.0 MiB; the free space of its disk can't be seen from here",
    )  # fmt: skip


def test_the_embedded_database_gets_smaller_pools() -> None:
    settings = Settings.read({"PLANKEEPER_WORKERS": "16", "PLANKEEPER_POOL_SIZE": "50"})
    assert connections_needed(settings, is_embedded=False) == 16 * 53 + 5
    assert connections_needed(settings, is_embedded=True) == 16 * 5 + 5


def test_the_checks_are_json_for_other_programs(dsn: str) -> None:
    done = run_plankeeper("doctor", "--json", PLANKEEPER_DATABASE_URL=dsn)
    report = json.loads(done.stdout)
    assert set(report) == {"status", "checks"}
    assert {"status": "ok", "message": "settings are valid"} in report["checks"]
    assert (done.returncode, report["status"]) == (0, "warn")  # there is no key file
    failed = run_plankeeper("doctor", "--json", PLANKEEPER_DATABASE_URL=dsn, PLANKEEPER_WORKERS="none")
    assert (failed.returncode, json.loads(failed.stdout)["status"]) == (1, "fail")
