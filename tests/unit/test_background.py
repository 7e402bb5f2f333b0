"""The periodic tasks of all servers."""

import asyncio
from types import SimpleNamespace
from typing import Any

import asyncpg
import pytest

from plankeeper import background


@pytest.mark.parametrize(
    "error, logged",
    [(asyncpg.PostgresConnectionError("a node is unavailable"), 0), (LookupError("a bug"), 1)],
    ids=["unavailable", "bug"],
)
async def test_a_task_that_fails_does_not_stop_the_others(
    error: Exception, logged: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(background, "PERIODIC_TASK_INTERVAL", 0)
    leader: Any = SimpleNamespace(is_leader=True)
    has_run = asyncio.Event()

    async def fail(_db: object) -> None:
        raise error

    async def run(_db: object) -> None:
        leader.is_leader = False
        has_run.set()

    db: Any = None
    running = asyncio.create_task(background.run_periodic_tasks(db, leader, [fail, run]))
    async with asyncio.timeout(10):
        await has_run.wait()
    running.cancel()
    assert [each.message for each in caplog.records] == ["a periodic task failed"] * logged
