"""The processes of a worker: few at a time, one of each plan manager, few that wait, and none that writes too much."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from plankeeper.core.errors import DomainError
from plankeeper.core.files import single_chunk
from plankeeper.core.processes import MAX_WAITING, MAX_WAITING_PER_PLAN_MANAGER, ProcessSlots, run_process

A, B, C = uuid7(), uuid7(), uuid7()


class Running:
    """Processes that run until the test ends; those that have started, in their order."""

    def __init__(self) -> None:
        self.slots = ProcessSlots(2, "Busy.")
        self.started: list[UUID] = []
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self, *plan_managers: UUID) -> None:
        for each in plan_managers:
            self._tasks.append(asyncio.create_task(self._run(each)))
        await asyncio.sleep(0.01)

    async def end(self, number: int) -> None:
        self._tasks[number].cancel()
        await asyncio.sleep(0.01)

    async def _run(self, plan_manager_id: UUID) -> None:
        async with self.slots.slot(plan_manager_id):
            self.started.append(plan_manager_id)
            await asyncio.Event().wait()

    async def is_rejected(self, plan_manager_id: UUID) -> bool:
        """Whether another one neither starts nor waits."""
        with suppress(TimeoutError):
            async with asyncio.timeout(0.01):
                try:
                    async with self.slots.slot(plan_manager_id):
                        pass
                except DomainError as error:
                    return (error.status, error.detail, error.retry_after) == (503, "Busy.", 5)
        return False


@asynccontextmanager
async def running() -> AsyncGenerator[Running]:
    processes = Running()
    yield processes
    for number in range(len(processes._tasks)):  # noqa: SLF001
        await processes.end(number)


async def test_each_plan_manager_has_one_process_at_a_time() -> None:
    async with running() as processes:
        await processes.start(A, A, B)
        assert processes.started == [A, B]
        assert not processes.slots.is_free(C)
        await processes.start(C)
        await processes.end(0)
        assert processes.started == [A, B, C]  # it waited for any process, and the second of A for A's
        await processes.end(2)
        assert processes.started == [A, B, C, A]


async def test_a_plan_manager_that_waits_for_many_leaves_room_for_others() -> None:
    async with running() as processes:
        await processes.start(*[A] * (1 + MAX_WAITING_PER_PLAN_MANAGER))
        assert await processes.is_rejected(A)
        assert not await processes.is_rejected(B)


async def test_few_wait_in_all() -> None:
    async with running() as processes:
        await processes.start(A, B, *[uuid7() for _ in range(MAX_WAITING)])
        assert await processes.is_rejected(uuid7())
        await processes.end(0)
        assert not await processes.is_rejected(uuid7())


@pytest.mark.parametrize("number", [0, 1, 2])
async def test_one_that_ends_or_stops_waiting_frees_its_place(number: int) -> None:
    async with running() as processes:
        await processes.start(A, A, A)
        await processes.end(number)
        await processes.end(0 if number else 1)
        assert await processes.is_rejected(A) is False


async def test_one_that_writes_too_much_is_killed_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "writes_much.py").write_text("import sys\nsys.stdout.write('x' * 2**20)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    async def output(max_output: int) -> bytes:
        content = single_chunk(b"")
        return await run_process("writes_much", content=content, max_time=3600, max_output=max_output)

    async with asyncio.timeout(60):  # the process would wait until somebody read the rest
        assert await output(2**20) == b"x" * 2**20
        assert await output(2**20 - 1) == b""
        assert await output(1000) == b""
