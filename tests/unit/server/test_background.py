"""The periodic tasks of all servers."""

import asyncio
import gc
import multiprocessing
import os
import signal
from types import SimpleNamespace
from typing import Any

import asyncpg
import pytest

from plankeeper.server import background


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


async def test_a_process_that_is_no_longer_the_leader_runs_no_further_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "PERIODIC_TASK_INTERVAL", 0)
    leader: Any = SimpleNamespace(is_leader=True)
    have_run: list[str] = []

    async def first(_db: object) -> None:
        have_run.append("first")
        leader.is_leader = False

    async def second(_db: object) -> None:
        have_run.append("second")

    db: Any = None
    running = asyncio.create_task(background.run_periodic_tasks(db, leader, [first, second]))
    for _ in range(20):
        await asyncio.sleep(0)
    running.cancel()
    assert have_run == ["first"]


@pytest.mark.parametrize(
    "error, level",
    [(asyncpg.ConnectionDoesNotExistError("lost"), "WARNING"), (LookupError("a bug"), "ERROR")],
    ids=["lost connection", "bug"],
)
async def test_an_exception_that_nobody_awaited_is_an_error_unless_a_connection_was_lost(
    error: Exception, level: str, caplog: pytest.LogCaptureFixture
) -> None:
    background.report_lost_connections_once()
    future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    future.set_exception(error)
    gc.collect()  # what other tests have left behind is reported now
    caplog.clear()
    del future
    gc.collect()
    assert [each.levelname for each in caplog.records] == [level]


async def test_a_process_whose_parent_has_ended_is_stopped_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sentinel of an ended process stays readable."""
    sentinel, writer = os.pipe()
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(multiprocessing, "parent_process", lambda: SimpleNamespace(sentinel=sentinel))
    monkeypatch.setattr(os, "kill", lambda *arguments: sent.append(arguments))
    background.exit_with_parent()
    os.close(writer)
    for _ in range(20):
        await asyncio.sleep(0.01)
    assert sent == [(os.getpid(), signal.SIGTERM)]
    os.close(sentinel)
