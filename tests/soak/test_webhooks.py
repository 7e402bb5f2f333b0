"""Webhooks in bulk: whatever is slow, dead or killed, every healthy endpoint has every event; and what that costs."""

import asyncio
import random
import sys
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import asynccontextmanager, suppress
from contextlib import closing as closing_at_end
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any
from uuid import UUID

import pytest

from plankeeper.database import schema
from plankeeper.database.client import Database
from plankeeper.embedded_postgres.cluster import Cluster
from soak.load import Connection, closing, new_key, percentile
from soak.webhook_load import Receivers, Sending, creates, post, until
from support.client import Client
from support.folder import open_folder
from support.program import Serving, plankeeper

HEALTHY = [f"healthy-{number}" for number in range(7)]
ILL = ["dead", "slow", "third"]
WRITERS = 16
LEASE = 60.0  # seconds until what a killed worker had is taken over


class Tenant:
    """A plan manager with a database and a client of its own."""

    def __init__(self, db: Database, dsn: str, url: str, plan_manager_id: UUID, key: str) -> None:
        self.db = db
        self.id = plan_manager_id
        self._dsn = dsn
        self._client = Client(url, key, plan_manager_id)
        self.write = post("/providers", key, plan_manager_id, b'{"entity_name": "Soaked"}')
        self.endpoints: dict[str, UUID] = {}

    def close(self) -> None:
        self._client.http.close()

    async def listen(self, url: str, name: str) -> None:
        body = {"url": f"{url}/{name}", "event_types": ["provider.*"]}
        made = await asyncio.to_thread(self._client.made, "/webhook-endpoints", body)
        self.endpoints[name] = UUID(made["id"])

    async def change(self, **change: Any) -> None:
        for each in self.endpoints.values():
            answer = await asyncio.to_thread(self._client.put, f"/webhook-endpoints/{each}", change)
            assert answer.status_code == 200, answer.text

    async def load(self, rows: int) -> None:
        lines = b"".join(b'{"entity_name": "Imported %d"}\n' % number for number in range(rows))
        arguments = ("import", "providers", "-", "--plan-manager", str(self.id), "--notify")
        done = await asyncio.to_thread(plankeeper, *arguments, stdin=lines, PLANKEEPER_DATABASE_URL=self._dsn)
        assert done.returncode == 0, done.stderr

    async def events(self) -> list[str]:
        return await self.db.rows(
            str,
            "select id::text from events where plan_manager_id = $1 and type = 'provider.created' order by id",
            self.id,
        )

    async def waiting(self, name: str) -> set[str]:
        """The events that an endpoint has still to get."""
        found = await self.db.rows(
            str,
            """
            select event_id::text from webhook_deliveries
            where plan_manager_id = $1 and webhook_endpoint_id = $2 and status = 'pending'
            union all
            select event.id::text from events event
            join webhook_endpoints endpoint on endpoint.plan_manager_id = event.plan_manager_id and endpoint.id = $2
            where event.plan_manager_id = $1 and event.type = 'provider.created'
                and coalesce(event.position > endpoint.fanned_out_to, true)
            """,
            self.id, self.endpoints[name],
        )  # fmt: skip
        return set(found)

    async def bring_forward(self, names: list[str]) -> None:
        """What waits for its next attempt, or for the lease of a dead worker, waits no more."""
        await self.db.execute(
            """
            update webhook_deliveries set next_attempt_at = now()
            where plan_manager_id = $1 and webhook_endpoint_id = any ($2) and status = 'pending'
            """,
            self.id, [self.endpoints[each] for each in names],
        )  # fmt: skip


@pytest.fixture
def folder() -> Iterator[Path]:
    with open_folder() as found:
        yield found


@pytest.fixture
def dsn(folder: Path) -> Iterator[str]:
    """A database of its own: no other test's sequencer or worker has a hand in it."""
    with Cluster(folder) as running:
        schema.migrate(running.dsn)
        yield running.dsn


@asynccontextmanager
async def serving(folder: Path, dsn: str, *arguments: str, workers: int) -> AsyncIterator[tuple[Serving, Tenant]]:
    plan_manager_id, key = await new_key(dsn)
    running = Serving(folder, *arguments, workers=workers, **settings(dsn), PLANKEEPER_WORKER="on")
    try:
        async with Database(dsn, pool_size=1).open() as db:
            tenant = Tenant(db, dsn, running.url, plan_manager_id, key)
            with closing_at_end(tenant):
                yield running, tenant
    finally:
        code = await asyncio.to_thread(running.stop)
    assert code == 0


def settings(dsn: str) -> dict[str, str]:
    return {"PLANKEEPER_DATABASE_URL": dsn, "PLANKEEPER_WEBHOOK_ALLOWED_NETWORKS": "127.0.0.1"}


async def test_every_event_comes_to_every_healthy_endpoint_whatever_is_ill_or_killed(
    folder: Path, dsn: str, full: bool
) -> None:
    events, kills, writes = (10_000, 20, 100) if full else (200, 2, 10)
    async with Receivers().opened() as receivers, serving(folder, dsn, "--no-worker", workers=1) as (running, tenant):
        for name in HEALTHY:
            await tenant.listen(receivers.url, name)
        sending = Sending(folder / "worker.log", **settings(dsn))
        try:
            await quiet(running, tenant, receivers, writes)
            for name in ILL:
                await tenant.listen("http://127.0.0.1:1025" if name == "dead" else receivers.url, name)
            before, began, old = receivers.total(), time.time(), set(await tenant.events())
            await tenant.load(events)
            await until(lambda: receivers.total() - before > events, 120)
            told(f"before the first kill: {rate(receivers, began):.0f} deliveries/s")
            await kill(sending, tenant, receivers, kills, full=full)
            wanted = set(await tenant.events()) - old
            await until(lambda: all(receivers.good(each).keys() == wanted | old for each in HEALTHY), LEASE + 240)
            told(f"{events} events, {kills} kills: {rate(receivers, began):.0f} deliveries/s to all endpoints together")
            await settled(tenant, receivers, wanted)
        finally:
            sending.end()
    assert "Traceback" not in (folder / "worker.log").read_text()


async def quiet(running: Serving, tenant: Tenant, receivers: Receivers, writes: int) -> None:
    """Nothing else goes on: how long after a write its event is here."""
    connection = await Connection.to(running.url)
    sent: list[float] = []
    async with closing([connection]):
        for _ in range(writes + 1):
            answer = await connection.ask(tenant.write)
            assert answer.status == 200, answer
            sent.append(answer.sent)
            await asyncio.sleep(random.uniform(0.05, 0.15))
    events = await tenant.events()
    await until(lambda: all(receivers.good(each).keys() == set(events) for each in HEALTHY), LEASE + 30)
    at = dict(zip(events, sent, strict=True))
    arrivals = [each for came in receivers.arrivals.values() for each in came]
    # The first came when the worker had just started.
    delays = [each.at - at[each.event_id] for each in arrivals if at[each.event_id] != sent[0]]
    told(
        f"from before a write to the arrival of its event, {writes} writes, {len(HEALTHY)} endpoints:"
        f" p50 {percentile(delays, 0.5) * 1000:.0f} ms, p99 {percentile(delays, 0.99) * 1000:.0f} ms"
    )


async def kill(sending: Sending, tenant: Tenant, receivers: Receivers, kills: int, *, full: bool) -> None:
    """Kill -9 at random moments while deliveries arrive."""
    for _ in range(kills):
        before = receivers.total()
        # What is left after many kills may be leased, and not come before a minute is over.
        with suppress(TimeoutError):
            await until(lambda before=before: receivers.total() > before, 15)
        await asyncio.sleep(random.uniform(0, 2) if full else 0.1)
        await asyncio.to_thread(sending.kill)
        if not full:
            await tenant.bring_forward([*HEALTHY, "third"])


async def settled(tenant: Tenant, receivers: Receivers, wanted: set[str]) -> None:
    """Nothing is lost: what an endpoint has not taken in waits for it."""
    async with asyncio.timeout(LEASE + 120):
        while len(wanted - receivers.good("third").keys()) > len(wanted) / 50:
            # The retries of five minutes and more are made now.
            await tenant.bring_forward(["third"])
            before = len(receivers.arrivals["third"])
            with suppress(TimeoutError):
                await until(lambda before=before: len(receivers.arrivals["third"]) > before + len(wanted) / 10, 2)
    for name in [*HEALTHY, *ILL]:
        waiting, taken = await tenant.waiting(name), receivers.good(name)
        assert wanted <= taken.keys() | waiting, name
        told(
            f"{name}: {len(wanted)} events, {len(taken.keys() & wanted)} taken in, {len(wanted - taken.keys())} wait,"
            f" {sum(taken.values()) - len(taken)} duplicates"
        )


def rate(receivers: Receivers, began: float) -> float:
    """Deliveries a second since a moment."""
    times = [each.at for came in receivers.arrivals.values() for each in came if each.at > began]
    return len(times) / (max(times) - min(times))


async def test_creates_are_as_quick_with_endpoints_as_without(folder: Path, dsn: str, full: bool) -> None:
    rounds, seconds = (8, 5.0) if full else (1, 0.5)
    async with Receivers().opened() as receivers, serving(folder, dsn, workers=2) as (running, tenant):
        for number in range(10):
            await tenant.listen(receivers.url, f"healthy-{number}")
        found: dict[bool, list[float]] = {True: [], False: []}
        sent: list[float] = []
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as other:
            work = other, creates, running.url, tenant.write, WRITERS, seconds
            await asyncio.get_running_loop().run_in_executor(*work)  # what is made once is made
            for number in range(2 * rounds):
                listened = number % 4 in (0, 3)  # neither is always the first of two
                await tenant.change(active=listened)
                before = receivers.total()
                found[listened].append(await asyncio.get_running_loop().run_in_executor(*work))
                if listened:
                    sent.append((receivers.total() - before) / seconds)
                    await until(lambda before=before: receivers.total() > before, 30)
        with_, without = median(found[True]), median(found[False])
        told(
            f"creates a second, 10 endpoints and none by turns: {with_:.0f} and {without:.0f} (ratio"
            f" {with_ / without:.2f}); {figures(found[True])} and {figures(found[False])};"
            f" deliveries a second meanwhile: {figures(sent)}"
        )


def figures(values: list[float]) -> str:
    return ", ".join(f"{each:.0f}" for each in values)


def told(line: str) -> None:
    sys.stdout.write(f"{line}\n")
