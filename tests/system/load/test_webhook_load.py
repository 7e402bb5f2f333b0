"""Webhooks in bulk: whatever is slow, dead or killed, every healthy endpoint has every event; and what that costs."""

import asyncio
import random
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import asynccontextmanager, suppress
from contextlib import closing as closing_at_end
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any
from uuid import UUID

import pytest

from plankeeper.database.client import Database
from plankeeper.server.embedded_postgres.cluster import Cluster
from support.client import Client
from support.folder import temporary_folder
from support.program import ServeProcess, run_program
from system.load.client import Connection, closing, create_plan_manager_and_key, percentile, write_request
from system.load.webhooks import Receivers, WebhookWorker, create_for, wait_for

HEALTHY = [f"healthy-{number}" for number in range(7)]
UNHEALTHY = ["dead", "slow", "third"]
WRITERS = 16
LEASE = 60.0  # seconds until what a killed worker had is taken over


class SoakTenant:
    """A plan manager with a database and a client of its own."""

    def __init__(self, db: Database, dsn: str, url: str, plan_manager_id: UUID, key: str) -> None:
        self.db = db
        self.id = plan_manager_id
        self._dsn = dsn
        self._client = Client(url, key, plan_manager_id)
        self.create_request = write_request("POST", "/providers", key, plan_manager_id, b'{"entity_name": "Soaked"}')
        self.endpoints: dict[str, UUID] = {}

    def close(self) -> None:
        self._client.http.close()

    async def create_endpoint(self, url: str, name: str) -> None:
        body = {"url": f"{url}/{name}", "event_types": ["provider.*"]}
        endpoint = await asyncio.to_thread(self._client.create, "/webhook-endpoints", body)
        self.endpoints[name] = UUID(endpoint["id"])

    async def update_endpoints(self, **change: Any) -> None:
        for each in self.endpoints.values():
            answer = await asyncio.to_thread(self._client.put, f"/webhook-endpoints/{each}", change)
            assert answer.status_code == 200, answer.text

    async def import_providers(self, rows: int) -> None:
        lines = b"".join(b'{"entity_name": "Imported %d"}\n' % number for number in range(rows))
        arguments = ("import", "providers", "-", "--plan-manager", str(self.id), "--notify")
        done = await asyncio.to_thread(run_program, *arguments, stdin=lines, PLANKEEPER_DATABASE_URL=self._dsn)
        assert done.returncode == 0, done.stderr

    async def event_ids(self) -> list[str]:
        return await self.db.rows(
            str,
            "select id::text from events where plan_manager_id = $1 and type = 'provider.created' order by id",
            self.id,
        )

    async def pending(self, name: str) -> set[str]:
        """The events that an endpoint has still to get."""
        found = await self.db.rows(
            str,
            """
            select event_id::text from webhook_deliveries
            where plan_manager_id = $1 and webhook_endpoint_id = $2 and status = 'pending'
            union all
            select event.id::text from events event
            join webhook_endpoints endpoint on endpoint.plan_manager_id = event.plan_manager_id and endpoint.id = $2
            left join event_order placed on placed.plan_manager_id = $1 and placed.event_id = event.id
            where event.plan_manager_id = $1 and event.type = 'provider.created'
                and coalesce(placed.position > endpoint.last_position, true)
            """,
            self.id, self.endpoints[name],
        )  # fmt: skip
        return set(found)

    async def make_due(self, names: list[str]) -> None:
        """Deliveries that wait for their next attempt, or for the lease of a dead worker, are due now."""
        await self.db.execute(
            """
            update webhook_deliveries set next_attempt_at = now()
            where plan_manager_id = $1 and id in (
                select id from webhook_deliveries
                where plan_manager_id = $1 and webhook_endpoint_id = any ($2) and status = 'pending'
                for no key update skip locked -- a worker that saves attempts meanwhile locks them in another order
            )
            """,
            self.id, [self.endpoints[each] for each in names],
        )  # fmt: skip


@pytest.fixture
def folder() -> Iterator[Path]:
    with temporary_folder() as found:
        yield found


@pytest.fixture
def dsn(folder: Path, copy_migrated_data: Callable[[Path], None]) -> Iterator[str]:
    """A database of its own: no other test's sequencer or worker has a hand in it."""
    copy_migrated_data(folder)
    with Cluster(folder) as running:
        yield running.dsn


@asynccontextmanager
async def serve_with_tenant(
    folder: Path, dsn: str, *arguments: str, workers: int
) -> AsyncIterator[tuple[ServeProcess, SoakTenant]]:
    plan_manager_id, key = await create_plan_manager_and_key(dsn)
    running = ServeProcess(folder, *arguments, workers=workers, **server_settings(dsn), PLANKEEPER_WEBHOOK_WORKER="on")
    try:
        async with Database(dsn, pool_size=1).open() as db:
            tenant = SoakTenant(db, dsn, running.url, plan_manager_id, key)
            with closing_at_end(tenant):
                yield running, tenant
    finally:
        code = await asyncio.to_thread(running.stop)
    assert code == 0


def server_settings(dsn: str) -> dict[str, str]:
    return {"PLANKEEPER_DATABASE_URL": dsn, "PLANKEEPER_WEBHOOK_ALLOWED_NETWORKS": "127.0.0.1"}


async def test_every_event_reaches_every_healthy_endpoint_despite_failures_and_kills(
    folder: Path, dsn: str, is_full_run: bool
) -> None:
    events, kills, writes = (10_000, 20, 100) if is_full_run else (200, 2, 10)
    async with (
        Receivers().opened() as receivers,
        serve_with_tenant(folder, dsn, "--no-webhook-worker", workers=1) as (running, tenant),
    ):
        for name in HEALTHY:
            await tenant.create_endpoint(receivers.url, name)
        sending = WebhookWorker(folder / "worker.log", **server_settings(dsn))
        try:
            await measure_idle_latency(running, tenant, receivers, writes)
            for name in UNHEALTHY:
                await tenant.create_endpoint("http://127.0.0.1:1025" if name == "dead" else receivers.url, name)
            before, began, old = receivers.total(), time.time(), set(await tenant.event_ids())
            await tenant.import_providers(events)
            await wait_for(lambda: receivers.total() - before > events, 120)
            print_line(f"before the first kill: {delivery_rate(receivers, began):.0f} deliveries/s")
            await kill_repeatedly(sending, tenant, receivers, kills, full=is_full_run)
            wanted = set(await tenant.event_ids()) - old
            await wait_for(
                lambda: all(receivers.delivered(each).keys() == wanted | old for each in HEALTHY), LEASE + 240
            )
            print_line(
                f"{events} events, {kills} kills:"
                f" {delivery_rate(receivers, began):.0f} deliveries/s to all endpoints together"
            )
            await wait_until_settled(tenant, receivers, wanted)
        finally:
            sending.end()
    assert "Traceback" not in (folder / "worker.log").read_text()


async def measure_idle_latency(running: ServeProcess, tenant: SoakTenant, receivers: Receivers, writes: int) -> None:
    """Nothing else goes on: how long after a write its event is here."""
    connection = await Connection.open(running.url)
    sent: list[float] = []
    async with closing([connection]):
        for _ in range(writes + 1):
            answer = await connection.send(tenant.create_request)
            assert answer.status == 200, answer
            sent.append(answer.sent)
            await asyncio.sleep(random.uniform(0.05, 0.15))
    events = await tenant.event_ids()
    await wait_for(lambda: all(receivers.delivered(each).keys() == set(events) for each in HEALTHY), LEASE + 30)
    at = dict(zip(events, sent, strict=True))
    arrivals = [each for came in receivers.arrivals.values() for each in came]
    # The first came when the worker had just started.
    delays = [each.at - at[each.event_id] for each in arrivals if at[each.event_id] != sent[0]]
    print_line(
        f"from before a write to the arrival of its event, {writes} writes, {len(HEALTHY)} endpoints:"
        f" p50 {percentile(delays, 0.5) * 1000:.0f} ms, p99 {percentile(delays, 0.99) * 1000:.0f} ms"
    )


async def kill_repeatedly(
    sending: WebhookWorker, tenant: SoakTenant, receivers: Receivers, kills: int, *, full: bool
) -> None:
    """Kill -9 at random moments while deliveries arrive."""
    for _ in range(kills):
        before = receivers.total()
        # What is left after many kills may be leased, and not come before a minute is over.
        with suppress(TimeoutError):
            await wait_for(lambda before=before: receivers.total() > before, 15)
        await asyncio.sleep(random.uniform(0, 2) if full else 0.1)
        await asyncio.to_thread(sending.kill)
        if not full:
            await tenant.make_due([*HEALTHY, "third"])


async def wait_until_settled(tenant: SoakTenant, receivers: Receivers, expected: set[str]) -> None:
    """Nothing is lost: what an endpoint has not taken in waits for it."""
    async with asyncio.timeout(LEASE + 120):
        while len(expected - receivers.delivered("third").keys()) > len(expected) / 50:
            # The retries of five minutes and more are made now.
            await tenant.make_due(["third"])
            before = len(receivers.arrivals["third"])
            with suppress(TimeoutError):
                await wait_for(lambda before=before: len(receivers.arrivals["third"]) > before + len(expected) / 10, 2)
    for name in [*HEALTHY, *UNHEALTHY]:
        waiting, taken = await tenant.pending(name), receivers.delivered(name)
        assert expected <= taken.keys() | waiting, name
        print_line(
            f"{name}: {len(expected)} events, {len(taken.keys() & expected)} taken in,"
            f" {len(expected - taken.keys())} wait,"
            f" {sum(taken.values()) - len(taken)} duplicates"
        )


def delivery_rate(receivers: Receivers, since: float) -> float:
    """Deliveries a second since a moment."""
    times = [each.at for came in receivers.arrivals.values() for each in came if each.at > since]
    return len(times) / (max(times) - min(times))


async def test_creates_are_as_fast_with_endpoints_as_without(folder: Path, dsn: str, is_full_run: bool) -> None:
    rounds, seconds = (8, 5.0) if is_full_run else (1, 0.5)
    async with Receivers().opened() as receivers, serve_with_tenant(folder, dsn, workers=2) as (running, tenant):
        for number in range(10):
            await tenant.create_endpoint(receivers.url, f"healthy-{number}")
        found: dict[bool, list[float]] = {True: [], False: []}
        sent: list[float] = []
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as other:
            work = other, create_for, running.url, tenant.create_request, WRITERS, seconds
            await asyncio.get_running_loop().run_in_executor(*work)  # what is made once is made
            for number in range(2 * rounds):
                listened = number % 4 in (0, 3)  # neither is always the first of two
                await tenant.update_endpoints(active=listened)
                before = receivers.total()
                found[listened].append(await asyncio.get_running_loop().run_in_executor(*work))
                if listened:
                    sent.append((receivers.total() - before) / seconds)
                    await wait_for(lambda before=before: receivers.total() > before, 30)
        with_, without = median(found[True]), median(found[False])
        print_line(
            f"creates a second, 10 endpoints and none by turns: {with_:.0f} and {without:.0f} (ratio"
            f" {with_ / without:.2f}); {join_rounded(found[True])} and {join_rounded(found[False])};"
            f" deliveries a second meanwhile: {join_rounded(sent)}"
        )


def join_rounded(values: list[float]) -> str:
    return ", ".join(f"{each:.0f}" for each in values)


def print_line(line: str) -> None:
    sys.stdout.write(f"{line}\n")
