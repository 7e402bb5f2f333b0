"""Metrics of the database: deliveries, keys, whether it responds."""

import asyncio
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import pytest

from plankeeper.server import monitoring
from plankeeper.server.monitoring import measure
from support.client import Client
from support.metrics import current_value
from support.receiver import Receiver
from support.server import RunningServer
from support.webhooks import poll_once, wait_for_deliveries


@pytest.fixture(autouse=True)
def only_measured_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gauges are those of the process, whose servers measure every five seconds, each its own database."""

    async def do_nothing(_: object) -> None:
        pass

    monkeypatch.setattr(monitoring, "measure", do_nothing)


@pytest.fixture(autouse=True)
def no_leftover_endpoints(server: RunningServer) -> Iterator[None]:
    """The values are those of all plan managers."""
    server.run(server.db.execute("delete from webhook_endpoints"))
    yield
    server.run(server.db.execute("delete from webhook_endpoints"))


def measured(server: RunningServer, name: str) -> float:
    server.run(measure(server.db))
    return current_value(name)


def test_due_deliveries_wait_and_those_to_a_failing_endpoint_fail(
    server: RunningServer, api: Client, receiver: Receiver
) -> None:
    endpoint = api.create("/webhook-endpoints", {"url": receiver.url, "event_types": ["note_type.*"]})
    api.create("/note-types", {"note_type": "Visit"})
    wait_for_deliveries(api, endpoint, 1)
    assert measured(server, "plankeeper_webhook_deliveries_waiting") == 1
    assert measured(server, "plankeeper_webhook_delivery_lag_seconds") > 0
    assert measured(server, "plankeeper_webhook_deliveries_failing") == 0

    receiver.respond = lambda *_: (500, {}, b"")
    assert poll_once(server) == 1
    assert measured(server, "plankeeper_webhook_deliveries_waiting") == 0
    assert measured(server, "plankeeper_webhook_delivery_lag_seconds") == 0
    assert measured(server, "plankeeper_webhook_deliveries_failing") == 1
    assert measured(server, "plankeeper_webhook_endpoints_failing") == 1


def test_keys_that_expire_within_14_days_are_counted(
    server: RunningServer, plan_manager_id: UUID, new_key: Callable[..., str]
) -> None:
    before = measured(server, "plankeeper_api_keys_expiring")
    new_key(plan_manager_id, lasts=timedelta(days=13))
    new_key(plan_manager_id, lasts=timedelta(days=15))
    new_key(plan_manager_id)
    assert measured(server, "plankeeper_api_keys_expiring") == before + 1


def test_one_worker_of_a_server_measures_and_another_takes_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    monkeypatch.setattr(monitoring, "INTERVAL", 0.01)
    measuring: list[str] = []

    async def measure(db: Any) -> None:
        if isinstance(db, str):  # and not the server of other tests
            measuring.append(db)

    monkeypatch.setattr(monitoring, "measure", measure)

    async def work() -> None:
        first = asyncio.create_task(monitoring.run(cast("Any", "first")))
        while measuring.count("first") < 2:
            await asyncio.sleep(0.01)
        second = asyncio.create_task(monitoring.run(cast("Any", "second")))
        while measuring.count("first") < 20:
            await asyncio.sleep(0.01)
        assert set(measuring) == {"first"}
        first.cancel()
        while "second" not in measuring:
            await asyncio.sleep(0.01)
        second.cancel()
        await asyncio.gather(first, second, return_exceptions=True)

    asyncio.run(work())
