"""Several programs and one schema: two that migrate at once, and servers that are older than the schema."""

import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import httpx

from plankeeper.database import schema
from plankeeper.server.embedded_postgres.cluster import Cluster
from support.client import PREFIX
from support.program import ServeProcess, environment, run_program
from support.server import readiness
from system.faults.access import Credentials, create_credentials, query

NEWER_REVISION = "9999"


def start_migration(dsn: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "plankeeper", "migrate"]
    settings = environment({"PLANKEEPER_DATABASE_URL": dsn})
    return subprocess.Popen(command, env=settings, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_concurrent_migrations_run_once_and_all_succeed(empty_dsn: str) -> None:
    programs = [start_migration(empty_dsn) for _ in range(2)]
    said = [program.communicate(timeout=60)[0] for program in programs]
    assert [program.returncode for program in programs] == [0, 0], said
    for each in said:
        *progress, result = each.splitlines()  # the progress of what takes long, such as the wait for the other one
        assert all(re.match(r"Migrating the schema|\d{4} \w", line) for line in progress), each
        assert result in (
            f"The schema is now {schema.LATEST_REVISION}.",
            f"The schema is already {schema.LATEST_REVISION}.",
        )
    assert [tuple(each) for each in query(empty_dsn, "select version_num from alembic_version")] == [
        (schema.LATEST_REVISION,)
    ]
    assert [tuple(each) for each in query(empty_dsn, "select count(*) from permissions")] == [(6,)]


def test_two_servers_starting_concurrently_on_a_new_folder_share_its_database(
    full_run_only: None, folder: Path, serve: Callable[..., ServeProcess]
) -> None:
    servers: list[ServeProcess] = []
    starts = [threading.Thread(target=lambda: servers.append(serve(folder / "new"))) for _ in range(2)]
    for start in starts:
        start.start()
    for start in starts:
        start.join(90)
    shared = Cluster(folder / "new")
    assert not shared.ensure()
    access = create_credentials(shared.dsn)
    one, other = (httpx.Client(base_url=each.url + PREFIX, headers=access.headers) for each in servers)
    with one, other:
        made = one.post("/participants", json={"first_name": "Shared"}).json()
        assert other.get(f"/participants/{made['id']}").json() == made
    assert [server.stop() for server in servers] == [0, 0]


def test_a_server_older_than_a_compatible_schema_stays_ready_and_restarts(
    empty_dsn: str, serve: Callable[..., ServeProcess]
) -> None:
    migrated = run_program("migrate", PLANKEEPER_DATABASE_URL=empty_dsn)
    assert migrated.returncode == 0, migrated.stderr
    access = create_credentials(empty_dsn)
    first = serve(PLANKEEPER_DATABASE_URL=empty_dsn)
    assert readiness(first.url).json() == {"status": "ok"}
    query(empty_dsn, "update alembic_version set version_num = $1", NEWER_REVISION)
    restarted = serve(PLANKEEPER_DATABASE_URL=empty_dsn)
    for each in (first, restarted):
        assert_serves(each, access)
        assert readiness(each.url).json() == {"status": "ok"}
        assert each.stop() == 0


def assert_serves(server: ServeProcess, access: Credentials) -> None:
    with httpx.Client(base_url=server.url + PREFIX, headers=access.headers) as client:
        made = client.post("/participants", json={"first_name": "Still here"})
        assert made.status_code == 200
        assert client.get(f"/participants/{made.json()['id']}").json() == made.json()


def test_a_server_that_is_too_old_for_the_schema_keeps_running_and_cannot_restart(
    empty_dsn: str, serve: Callable[..., ServeProcess]
) -> None:
    migrated = run_program("migrate", PLANKEEPER_DATABASE_URL=empty_dsn)
    assert migrated.returncode == 0, migrated.stderr
    serving = serve(PLANKEEPER_DATABASE_URL=empty_dsn)
    assert readiness(serving.url).json() == {"status": "ok"}
    query(empty_dsn, "update alembic_version set version_num = $1", NEWER_REVISION)
    query(empty_dsn, "update schema_compatibility set oldest_compatible = $1", NEWER_REVISION)

    assert_serves(serving, create_credentials(empty_dsn))
    ready = readiness(serving.url)
    assert (ready.status_code, ready.json()["error"]) == (503, "service_unavailable")
    assert (
        f"The database has schema {NEWER_REVISION}, and this server requires {schema.LATEST_REVISION}"
        in ready.json()["detail"]
    )
    assert serving.stop() == 0

    for command in (["serve", "--port", "0"], ["migrate"], ["doctor"]):
        rejected = run_program(*command, PLANKEEPER_DATABASE_URL=empty_dsn)
        assert rejected.returncode == 1, command
        assert (
            f"The database's schema is {NEWER_REVISION}, but this Plankeeper supports"
            in rejected.stdout + rejected.stderr
        ), command
        assert "Run the newer version of Plankeeper" in rejected.stdout + rejected.stderr
    assert [tuple(each) for each in query(empty_dsn, "select version_num from alembic_version")] == [(NEWER_REVISION,)]
