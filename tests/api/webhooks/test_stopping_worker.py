"""A worker that stops while the database is unavailable."""

from typing import Any

import asyncpg
import pytest

from plankeeper.webhooks import worker as webhook_worker
from plankeeper.webhooks.attempts import record_attempts
from support.client import Client
from support.server import RunningServer
from support.webhooks import NewEndpoint, emit_events, list_deliveries, poll_once, wait_for_deliveries


@pytest.mark.parametrize("failures", [1, 1000])
def test_a_stopping_worker_waits_out_a_failure_of_the_database(
    server: RunningServer,
    api: Client,
    new_endpoint: NewEndpoint,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    failures: int,
) -> None:
    endpoint = new_endpoint()
    emit_events(server, api)
    wait_for_deliveries(api, endpoint, 1)
    errors = [asyncpg.DeadlockDetectedError()] * failures

    async def fail_at_first(*args: Any) -> None:
        if errors:
            raise errors.pop()
        await record_attempts(*args)

    monkeypatch.setattr(webhook_worker, "record_attempts", fail_at_first)
    if failures > 1:
        monkeypatch.setattr(webhook_worker, "FLUSH_TIMEOUT", 0.2)
    assert poll_once(server) == 1
    is_saved = failures == 1
    assert [each["status"] for each in list_deliveries(api, endpoint)] == ["succeeded" if is_saved else "pending"]
    lost = "the last results of webhook deliveries are lost: the database is unavailable"
    assert [each.getMessage() for each in caplog.records] == ([] if is_saved else [lost])
