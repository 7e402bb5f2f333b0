"""A database that can't write, accepts no connection or has another schema: clients and operators learn which it is."""

import asyncio
import json
import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import asyncpg
import httpx
import pytest
from uuid_utils.compat import uuid7

from plankeeper.access.api_keys import service
from plankeeper.access.plan_managers import store as plan_managers
from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.core.logs import JsonFormatter
from plankeeper.database import unavailability
from plankeeper.database.unavailability import (
    CHECK_INTERVAL,
    SENTENCES,
    USE_LITTLE_MEMORY,
    WRITE_TEMPORARY_FILE,
    WriteCheck,
)
from plankeeper.http.public import health
from plankeeper.server.embedded_postgres.creation import SERVING_ROLE
from support.client import NO_TLS, Client, check_response
from support.cluster import SharedCluster, execute
from support.server import RunningServer, wait_until

ROLE = "limited"


class Faulty:
    """A server with a database and a role of its own, whose faults are PostgreSQL's."""

    def __init__(self, cluster: SharedCluster) -> None:
        own = cluster.new_database()
        self._cluster = cluster
        self.name = urlsplit(own).path.removeprefix("/")
        self.role = f"{ROLE}_{self.name}"
        execute(own, f"create role {self.role} login in role {SERVING_ROLE}")
        self.dsn = own.replace(f"user={SERVING_ROLE}", f"user={self.role}")
        # The leases of rate limits are written, so with limits a read-only database rejects reads, too.
        self.server = RunningServer(self.dsn, rate_limit=0).start()
        self.client = self.server.run(self._create_client())

    async def _create_client(self) -> Client:
        async with self.server.db.transaction() as tx:
            plan_manager = await plan_managers.insert(tx, uuid7(), "Faulty")
            assert plan_manager is not None
            ctx = WriteContext(tx, plan_manager.id, self.server.settings, SYSTEM)
            key = await service.create(ctx, "k", [plan_manager.id], ("read", "write"), None)
        return Client(self.server.url, key, plan_manager.id)

    def apply(self, *statements: str) -> None:
        """Run statements as the superuser, then end the role's sessions."""
        self.administer(*statements)
        self.administer(f"select pg_terminate_backend(pid, 60000) from pg_stat_activity where usename = '{self.role}'")

    def administer(self, *statements: str) -> None:
        named = (each.format(database=self.name, role=self.role) for each in statements)
        execute(self._cluster.dsn_of(self.name), "set default_transaction_read_only = off", *named)

    def is_ready(self) -> bool:
        return self.client.http.get("/readyz").status_code == 200

    def wait_until_unready(self, sentence: str) -> None:
        def is_reported() -> bool:
            response = self.client.http.get("/readyz")
            check_response(response)
            return response.status_code == 503 and response.json()["detail"] == sentence

        wait_until(is_reported)

    def assert_rejected(self, response: httpx.Response, detail: str) -> None:
        assert response.headers["retry-after"].isdecimal()
        assert (response.status_code, response.json()) == (503, {
            "success": False, "error": "service_unavailable", "detail": detail,
            "request_id": response.headers["x-request-id"],
            "documentation_url": "/docs/api/errors#service_unavailable",
        })  # fmt: skip

    def stop(self) -> None:
        self.client.http.close()
        self.server.stop()
        self._cluster.drop(self._cluster.dsn_of(self.name))
        execute(self._cluster.dsn_of("postgres"), f"drop role {self.role}")


@pytest.fixture(scope="module")
def module_faulty(cluster: SharedCluster) -> Iterator[Faulty]:
    made = Faulty(cluster)
    yield made
    made.stop()


@pytest.fixture
def faulty(module_faulty: Faulty, monkeypatch: pytest.MonkeyPatch) -> Iterator[Faulty]:
    monkeypatch.setattr(unavailability, "CHECK_INTERVAL", 0.1)
    wait_until(module_faulty.is_ready)
    yield module_faulty
    module_faulty.apply(
        "alter database {database} reset all",
        "alter role {role} connection limit -1",
        "alter table if exists was_providers rename to providers",
    )
    wait_until(module_faulty.is_ready)


def logged(caplog: pytest.LogCaptureFixture, response: httpx.Response) -> dict[str, Any]:
    lines = [json.loads(JsonFormatter().format(each)) for each in caplog.records if each.name == "plankeeper"]
    [line] = [each for each in lines if each.get("request_id") == response.headers["x-request-id"]]
    return {name: line[name] for name in ("level", "event", "reason", "error", "sqlstate")}


def test_a_read_only_database(faulty: Faulty, caplog: pytest.LogCaptureFixture) -> None:
    faulty.apply("alter database {database} set default_transaction_read_only = on")
    faulty.wait_until_unready("The database is read-only, so it can't write.")
    wait_until(lambda: faulty.client.get("/providers").status_code == 200)
    rejected = faulty.client.post("/providers", {"entity_name": "x"})
    faulty.assert_rejected(
        rejected,
        "The database is read-only, so it can't write. Nothing was written. Retry after `Retry-After` seconds.",
    )
    assert logged(caplog, rejected) == {
        "level": "warning", "event": "the database is unavailable", "reason": "read_only",
        "error": "ReadOnlySQLTransactionError", "sqlstate": "25006",
    }  # fmt: skip
    # Without an end of its sessions: each connection that turns out to be read-only is replaced.
    faulty.administer("alter database {database} reset all")
    wait_until(faulty.is_ready)
    wait_until(lambda: faulty.client.post("/providers", {"entity_name": "x"}).status_code == 200)


def test_no_connection_is_left(faulty: Faulty, caplog: pytest.LogCaptureFixture) -> None:
    faulty.apply("alter role {role} connection limit 0")
    faulty.wait_until_unready("The database accepts no more connections.")
    wait_until(lambda: faulty.client.get("/providers").status_code == 503)
    rejected = faulty.client.get("/providers")
    faulty.assert_rejected(
        rejected, "The database accepts no more connections. Nothing was written. Retry after `Retry-After` seconds."
    )
    assert logged(caplog, rejected) == {
        "level": "warning", "event": "the database is unavailable", "reason": "connections_exhausted",
        "error": "TooManyConnectionsError", "sqlstate": "53300",
    }  # fmt: skip


def test_the_schema_of_another_version(faulty: Faulty, caplog: pytest.LogCaptureFixture) -> None:
    faulty.apply("alter table providers rename to was_providers")
    wait_until(lambda: faulty.client.get("/note-types").status_code == 200)
    rejected = faulty.client.get("/providers")
    faulty.assert_rejected(
        rejected,
        "The database's schema belongs to another version of Plankeeper. Nothing was written."
        " Retry after `Retry-After` seconds.",
    )
    assert logged(caplog, rejected) == {
        "level": "error", "event": "the database is unavailable", "reason": "wrong_schema",
        "error": "UndefinedTableError", "sqlstate": "42P01",
    }  # fmt: skip


def test_the_console_explains_it_too(faulty: Faulty) -> None:
    faulty.apply("alter role {role} connection limit 0")
    faulty.wait_until_unready(SENTENCES["connections_exhausted"])
    page = faulty.client.http.get("/console/participants", headers={"Cookie": f"plankeeper={'x' * 43}"})
    assert page.status_code == 503
    assert "The database accepts no more connections. Try again in a moment." in page.text


async def _explain(server: RunningServer, statement: Any) -> str:
    async with server.db.transaction() as tx:
        await tx.one(str, USE_LITTLE_MEMORY)
        return "\n".join(await tx.rows(str, f"explain (analyze, buffers) {statement}"))


def test_the_check_writes_a_temporary_file(server: RunningServer) -> None:
    plan = server.run(_explain(server, WRITE_TEMPORARY_FILE))
    blocks = re.search(r"Buffers:.* temp written=(\d+)", plan)
    assert blocks, plan
    assert int(blocks[1]) > 40


async def test_however_often_clients_ask_writes_are_checked_rarely(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Callable[[], Any]] = []

    class Db:
        def transaction(self) -> Any:
            calls.append(self.transaction)
            raise OSError

    check = WriteCheck(Db())  # type: ignore[arg-type]
    for _ in range(2):
        with pytest.raises(OSError):  # noqa: PT011 - a failed check is repeated
            await check.cause()
    assert len(calls) == 2
    assert server.run(_count_checks(server)) == 1
    assert CHECK_INTERVAL >= 1


async def _count_checks(server: RunningServer) -> int:
    opened = 0

    class Counting:
        def transaction(self) -> Any:
            nonlocal opened
            opened += 1
            return server.db.transaction()

    check = WriteCheck(Counting())  # type: ignore[arg-type]
    for _ in range(10):
        assert await check.cause() is None
    return opened


def test_readiness_responds_while_the_database_hangs(faulty: Faulty, monkeypatch: pytest.MonkeyPatch) -> None:
    assert health.READINESS_TIMEOUT < 2
    monkeypatch.setattr(health, "READINESS_TIMEOUT", 0.5)
    http = httpx.Client(base_url=faulty.server.url, verify=NO_TLS, timeout=15)
    url = "/readyz"
    pids = set[int]()

    def hanging_response() -> httpx.Response | None:
        """None from a connection that was opened at the moment at which the others were stopped."""
        for pid in backends(faulty.server.dsn):
            os.kill(pid, signal.SIGSTOP)
            pids.add(pid)
        # The time is for a busy machine: a statement may take 30 seconds.
        response = http.get(url)
        return response if response.status_code != 200 else None

    try:
        stopped = wait_until(hanging_response)
    finally:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
    assert pids
    assert (stopped.status_code, stopped.json()["detail"]) == (503, SENTENCES["down"])
    wait_until(lambda: http.get(url).status_code == 200)
    http.close()


def backends(dsn: str) -> list[int]:
    """The processes of PostgreSQL that serve the connections of a server."""
    name = urlsplit(dsn).path.removeprefix("/")

    async def read() -> list[int]:
        connection = await asyncpg.connect(dsn)
        try:
            rows = await connection.fetch(
                "select pid from pg_stat_activity where datname = $1 and pid <> pg_backend_pid()", name
            )
        finally:
            await connection.close()
        return [row["pid"] for row in rows]

    return asyncio.run(read())
