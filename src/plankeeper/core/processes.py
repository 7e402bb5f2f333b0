"""Processes for files that can be large, damaged or hostile: a limited number, each of which limits itself.

See `process_limits` for what they limit.
"""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, AsyncIterable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from uuid import UUID
from weakref import WeakValueDictionary

from plankeeper.core.errors import DomainError

MAX_WAITING = 20  # each occupies one of the worker's requests
MAX_WAITING_PER_PLAN_MANAGER = 10
# A process needs none of the worker's variables, among which are passwords.
_ENVIRONMENT_VARIABLES = ("PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH")
# Each thread would reserve address space.
_ENVIRONMENT = {"RAYON_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"}


class _Slots(asyncio.Semaphore):
    """The slots of a worker or of a plan manager, which exist while a process uses them or waits for one."""

    def __init__(self, count: int, max_waiting: int) -> None:
        super().__init__(count)
        self._max_waiting = max_waiting
        self.waiting = 0

    @property
    def is_full(self) -> bool:
        return self.waiting >= self._max_waiting


class ProcessSlots:
    """Limits the processes with one purpose in a worker: `count` in all, and one for each plan manager."""

    def __init__(self, count: int, busy: str) -> None:
        self._count, self._busy = count, busy
        self._slots = WeakValueDictionary[UUID | None, _Slots]()  # by plan manager; null for the worker

    def is_free(self, plan_manager_id: UUID) -> bool:
        """Whether a process can start at once."""
        return not any(each and each.locked() for each in map(self._slots.get, (plan_manager_id, None)))

    @asynccontextmanager
    async def slot(self, plan_manager_id: UUID) -> AsyncGenerator[None]:
        """Wait until a process can start. Raises DomainError 503 with the text `busy` if too many wait already."""
        own = self._slots.setdefault(plan_manager_id, _Slots(1, MAX_WAITING_PER_PLAN_MANAGER))
        both = own, self._slots.setdefault(None, _Slots(self._count, MAX_WAITING))
        if any(each.locked() for each in both) and any(each.is_full for each in both):
            raise DomainError("service_unavailable", self._busy, retry_after=5)
        async with AsyncExitStack() as stack:
            for each in both:
                each.waiting += 1
            try:
                for each in both:
                    await stack.enter_async_context(each)
            finally:
                for each in both:
                    each.waiting -= 1
            yield


async def run_process(
    program: str, *arguments: str, content: AsyncIterable[bytes], max_time: float, max_output: int
) -> bytes:
    """What a module wrote that had `content` as its input.

    Empty if it failed, took more than `max_time` seconds, or wrote more than `max_output` bytes: then it is killed.
    """
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", program, *arguments),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=_ENVIRONMENT | {name: os.environ[name] for name in _ENVIRONMENT_VARIABLES if name in os.environ},
    )
    try:
        async with asyncio.timeout(max_time):
            await _send(process, content)
            output = await _read(process, max_output)
            # One that has written too much waits until somebody reads the rest, so it doesn't end by itself.
            return output if output and await process.wait() == 0 else b""
    except TimeoutError:
        return b""
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.communicate()  # what it has written, so that its pipes are closed


async def _send(process: asyncio.subprocess.Process, content: AsyncIterable[bytes]) -> None:
    stdin = process.stdin
    if stdin is None:
        raise LookupError("the process has no input")
    with suppress(BrokenPipeError, ConnectionResetError):  # the process has ended
        async for chunk in content:
            stdin.write(chunk)
            await stdin.drain()
    stdin.close()


async def _read(process: asyncio.subprocess.Process, max_output: int) -> bytes:
    if process.stdout is None:
        raise LookupError("the process has no output")
    output = bytearray()
    while chunk := await process.stdout.read(2**16):
        output += chunk
        if len(output) > max_output:
            return b""
    return bytes(output)
