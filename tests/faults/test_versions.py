"""Several programs and one schema: two that migrate at once, and one that is older than the schema."""

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from uuid_utils.compat import uuid7

from faults.access import ask, new_access
from plankeeper.database import schema
from plankeeper.embedded_postgres.cluster import Cluster
from support.client import PREFIX
from support.program import Serving, environment, plankeeper

LATER = "9999"


@pytest.fixture
def empty(cluster: Cluster) -> Iterator[str]:
    """The address of a database that has nothing yet."""
    name = f"faults_{uuid7().hex}"
    ask(cluster.dsn, f"create database {name}")
    yield urlsplit(cluster.dsn)._replace(path=f"/{name}").geturl()
    ask(cluster.dsn, f"drop database {name} with (force)")


def migrating(dsn: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "plankeeper", "migrate"]
    settings = environment({"PLANKEEPER_DATABASE_URL": dsn})
    return subprocess.Popen(command, env=settings, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def test_of_programs_that_migrate_one_database_at_once_one_does_it_and_all_succeed(empty: str) -> None:
    programs = [migrating(empty) for _ in range(2)]
    said = [program.communicate(timeout=60)[0] for program in programs]
    assert [program.returncode for program in programs] == [0, 0], said
    for each in said:
        assert each.strip() in (
            f"The schema is {schema.LATEST_REVISION}.",
            f"The schema is {schema.LATEST_REVISION} already.",
        )
    assert [tuple(each) for each in ask(empty, "select version_num from alembic_version")] == [
        (schema.LATEST_REVISION,)
    ]
    assert [tuple(each) for each in ask(empty, "select count(*) from permissions")] == [(6,)]


def test_two_servers_started_at_once_on_one_new_folder_share_its_database(
    in_full: None, folder: Path, serve: Callable[..., Serving]
) -> None:
    servers: list[Serving] = []
    starts = [threading.Thread(target=lambda: servers.append(serve())) for _ in range(2)]
    for start in starts:
        start.start()
    for start in starts:
        start.join(90)
    shared = Cluster(folder)
    assert not shared.ensure()
    access = new_access(shared.dsn)
    one, other = (httpx.Client(base_url=each.url + PREFIX, headers=access.headers) for each in servers)
    with one, other:
        made = one.post("/participants", json={"first_name": "Shared"}).json()
        assert other.get(f"/participants/{made['id']}").json() == made
    assert [server.stop() for server in servers] == [0, 0]


def test_a_server_that_is_older_than_the_schema_goes_on_and_a_new_start_is_refused(
    empty: str, serve: Callable[..., Serving]
) -> None:
    migrated = plankeeper("migrate", PLANKEEPER_DATABASE_URL=empty)
    assert migrated.returncode == 0, migrated.stderr
    serving = serve(PLANKEEPER_DATABASE_URL=empty)
    assert httpx.get(f"{serving.url}/readyz").json() == {"status": "ok"}
    ask(empty, "update alembic_version set version_num = $1", LATER)

    with httpx.Client(base_url=serving.url + PREFIX, headers=new_access(empty).headers) as client:
        made = client.post("/participants", json={"first_name": "Still here"})
        assert made.status_code == 200
        assert client.get(f"/participants/{made.json()['id']}").json() == made.json()
    ready = httpx.get(f"{serving.url}/readyz")
    assert (ready.status_code, ready.json()["error"]) == (503, "service_unavailable")
    assert f"The schema is {LATER}, and this server needs {schema.LATEST_REVISION}" in ready.json()["detail"]
    assert serving.stop() == 0

    for command in (["serve", "--port", "0"], ["migrate"], ["doctor"]):
        refused = plankeeper(*command, PLANKEEPER_DATABASE_URL=empty)
        assert refused.returncode == 1, command
        assert f"The database's schema is {LATER}, of a newer Plankeeper" in refused.stdout + refused.stderr, command
        assert "Run the newer one" in refused.stdout + refused.stderr
    assert [tuple(each) for each in ask(empty, "select version_num from alembic_version")] == [(LATER,)]
