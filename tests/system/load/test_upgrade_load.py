"""An upgrade under load: the schema of the next release is applied and two servers are replaced, and no write fails."""

import asyncio
import json
import random
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple
from uuid import UUID, uuid4

import httpx
import pytest

from plankeeper.database.client import Database
from plankeeper.database.unavailability import SENTENCES
from plankeeper.server.embedded_postgres.cluster import Cluster
from plankeeper.server.embedded_postgres.creation import SERVING_ROLE
from support import next_release
from support.cluster import as_owner
from support.folder import temporary_folder
from support.program import ServeProcess, environment
from support.server import readiness
from system.load.client import Connection, create_plan_manager_and_key, percentile

# What the clients do, and how often.
WRITES, READS = ("create", "update"), ("get", "list")
WEIGHTS = (4, 3, 2, 1)


@pytest.fixture
def folder() -> Iterator[Path]:
    with temporary_folder() as found:
        yield found


@pytest.fixture
def dsn(folder: Path, copy_migrated_data: Callable[[Path], None]) -> Iterator[str]:
    """A database of its own, as durable as that of a production."""
    copy_migrated_data(folder)
    with Cluster(folder) as running:
        yield running.dsn


class Attempt(NamedTuple):
    """A request that was sent once; the status is 0 without a response."""

    kind: str
    began: float
    seconds: float
    status: int


class Load:
    """Clients of two servers. A request that fails is sent once more, to the other server if there was no response."""

    def __init__(self, urls: list[str], key: str, plan_manager_id: UUID, ids: list[str]) -> None:
        self.urls = urls
        self.attempts: list[Attempt] = []
        self.created: list[str] = []
        self.failures: list[Attempt] = []
        self.retries = 0
        self._headers = f"Host: localhost\r\nAuthorization: Bearer {key}\r\nX-Plan-Manager-Id: {plan_manager_id}\r\n"
        self._ids = ids
        self._stopping = False

    @asynccontextmanager
    async def running(self, clients: int) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as group:
            for number in range(clients):
                group.create_task(self._run_client(number))
            try:
                yield
            finally:
                self._stopping = True

    async def _run_client(self, number: int) -> None:
        chance, client = random.Random(number), _Client(self.urls, number % 2)
        while not self._stopping:
            [kind] = chance.choices((*WRITES, *READS), WEIGHTS)
            name = f"client {number} {uuid4()}"
            if await self._complete(client, kind, self._request(kind, name, chance)) and kind == "create":
                self.created.append(name)
            await asyncio.sleep(chance.uniform(0, 0.02))  # the servers share the machine with the clients
        client.close()

    async def _complete(self, client: "_Client", kind: str, request: bytes) -> bool:
        """Send a request at most twice, and return whether it succeeded."""
        for _ in range(2):
            began = time.monotonic()
            attempt = Attempt(kind, began, 0.0, await client.send(request))
            self.attempts.append(attempt._replace(seconds=time.monotonic() - began))
            if attempt.status == 200:
                return True
            self.retries += 1
        self.failures.append(self.attempts[-1])
        return False

    def _request(self, kind: str, name: str, chance: random.Random) -> bytes:
        path = "/participants" if kind == "create" else f"/participants/{chance.choice(self._ids)}"
        if kind == "list":
            path = f"/participants?limit=50&after={chance.choice(self._ids)}"
        method = {"create": "POST", "update": "PUT"}.get(kind, "GET")
        body = json.dumps({"first_name": name}).encode() if kind in WRITES else b""
        extra = f"Idempotency-Key: {uuid4()}\r\n" if kind == "create" else ""
        head = f"{method} /api/public/v1{path} HTTP/1.1\r\n{self._headers}{extra}"
        return f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body

    def describe(self, name: str, since: float, until: float) -> str:
        """The requests of a period that began in it."""
        seconds = [each.seconds for each in self.attempts if since <= each.began < until]
        return (
            f"{name}: {until - since:.1f} s, {len(seconds) / (until - since):.0f} requests a second,"
            f" p50 {percentile(seconds, 0.5) * 1000:.0f} ms, p99 {percentile(seconds, 0.99) * 1000:.0f} ms,"
            f" longest {max(seconds, default=0) * 1000:.0f} ms"
        )


class _Client:
    """A client that stays with a server until that doesn't respond."""

    def __init__(self, urls: list[str], server: int) -> None:
        self._urls = urls
        self._server = server
        self._connection: Connection | None = None

    async def send(self, request: bytes) -> int:
        try:
            async with asyncio.timeout(60):
                self._connection = self._connection or await Connection.open(self._urls[self._server])
                return (await self._connection.send(request)).status
        except (OSError, EOFError, TimeoutError):
            self.close()
            self._server = 1 - self._server
            return 0

    def close(self) -> None:
        if self._connection:
            self._connection.close()
        self._connection = None


async def insert_participants(db: Database, plan_manager_id: UUID, rows: int) -> list[str]:
    """Insert many participants, and return the ids of some of them."""
    await db.execute(
        """
        insert into participants (plan_manager_id, id, first_name, state, status, approval_required, created_at,
            is_pace_plan, postal_statement, participant_receives_statements)
        select $1, time_ordered_uuid(), 'Inserted ' || number, case when number % 3 > 0 then 'NSW' end, 'Active', false,
            now(), false, false, true
        from generate_series(1, $2::bigint) number
        """,
        plan_manager_id,
        rows,
    )
    await db.execute(
        """
        insert into stored_counts (plan_manager_id, list, status, second_status, count)
        values ($1, 'participants', 'Active', 'NSW', $2)
        """,
        plan_manager_id,
        rows,
    )
    await db.execute("analyze participants")
    return await db.rows(str, "select id::text from participants order by id limit 5000")


async def migrate(dsn: str, release: dict[str, str]) -> str:
    """Run `plankeeper migrate` of a release, and return its output."""
    urls = {"PLANKEEPER_DATABASE_URL": dsn, "PLANKEEPER_OWNER_DATABASE_URL": as_owner(dsn)}
    variables = environment(urls | release)
    command = (sys.executable, "-m", "plankeeper", "migrate")
    process = await asyncio.create_subprocess_exec(
        *command, env=variables, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    output, _ = await process.communicate()
    assert process.returncode == 0, output
    return output.decode()


async def watch_readiness(urls: list[str], statuses: list[int], *, is_alone: bool) -> None:
    """The readiness of a server, as a load balancer checks it."""
    async with httpx.AsyncClient(timeout=30) as client:
        while True:
            for url in urls:
                response = await client.get(f"{url}/readyz")
                # Beside other tests, a server can be late to ask PostgreSQL.
                if is_alone or SENTENCES["down"] not in response.text:
                    statuses.append(response.status_code)
            await asyncio.sleep(0.1)


async def replace_servers(load: Load, servers: list[ServeProcess], folder: Path, settings: dict[str, str]) -> None:
    """Restart one server after the other with other settings, as an operator does."""
    for number, old in enumerate(servers):
        assert await asyncio.to_thread(old.stop) == 0
        servers[number] = await asyncio.to_thread(lambda: ServeProcess(folder, **settings))
        load.urls[number] = servers[number].url
        assert (await asyncio.to_thread(readiness, servers[number].url)).status_code == 200


async def test_no_write_fails_while_the_schema_and_the_servers_are_upgraded(
    folder: Path, dsn: str, is_full_run: bool
) -> None:
    rows, clients, seconds = (200_000, 20, 20) if is_full_run else (20_000, 2, 2)
    release = next_release.copy_package(folder / "next")
    plan_manager_id, key = await create_plan_manager_and_key(dsn)
    settings = {"PLANKEEPER_DATABASE_URL": dsn}
    servers = [ServeProcess(folder, **settings) for _ in range(2)]
    statuses: list[int] = []
    try:
        async with Database(dsn, pool_size=1, statement_timeout=600).open() as db:
            ids = await insert_participants(db, plan_manager_id, rows)
            load = Load([each.url for each in servers], key, plan_manager_id, ids)
            times = [time.monotonic()]
            async with load.running(clients):
                await asyncio.sleep(seconds)
                times.append(time.monotonic())
                watching = asyncio.create_task(watch_readiness(load.urls, statuses, is_alone=is_full_run))
                output = await migrate(dsn, release)
                watching.cancel()
                times.append(time.monotonic())
                await replace_servers(load, servers, folder, settings | release)
                times.append(time.monotonic())
                await asyncio.sleep(seconds)
            times.append(time.monotonic())
            await check_results(load, db, plan_manager_id, rows)
    finally:
        for each in servers:
            each.stop()
    assert output.splitlines()[-2:] == [
        f"The schema is now {next_release.REVISION}.", f"The role {SERVING_ROLE} has its privileges.",
    ]  # fmt: skip
    assert set(statuses) == {200}
    for name, since, until in zip(("before", "migration", "replacement", "after"), times, times[1:], strict=False):
        print_line(load.describe(name, since, until))
    print_line(
        f"{rows} participants: {len(load.attempts)} requests, {load.retries} retries, {len(load.failures)} failed"
    )


async def check_results(load: Load, db: Database, plan_manager_id: UUID, rows: int) -> None:
    assert load.failures == []
    assert len(load.created) > 0
    names = await db.rows(
        str,
        "select first_name from participants where plan_manager_id = $1 and first_name like 'client %'",
        plan_manager_id,
    )
    # Updates give the same kind of name to the inserted participants.
    assert len(names) == len(set(names))
    assert set(load.created) <= set(names)
    assert await db.one(int, "select count(*) from participants") == rows + len(load.created)
    assert await db.one(int, "select count(*) from participants where region is not null") >= rows
    assert await db.one(bool, "select indisvalid from pg_index where indexrelid = 'participants_by_region'::regclass")
    # The release that brings a table also lists its privileges, which this one doesn't.
    assert await db.one(bool, "select to_regclass('regions') is not null")


def print_line(line: str) -> None:
    sys.stdout.write(f"{line}\n")
