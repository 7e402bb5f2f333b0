"""Resolve host names with the system's resolver, but in threads of our own, with a time limit and fair shares.

There is no cache: every attempt gets the current addresses.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from functools import cache
from uuid import UUID
from weakref import WeakValueDictionary

# `resolve(host, port)` returns the addresses of a host name.
ResolveHost = Callable[[str, int], Awaitable[Sequence[str]]]

LOOKUP_TIMEOUT = 5.0  # seconds that an attempt waits for addresses
MAX_LOOKUPS_PER_PLAN_MANAGER = 2  # at the same time: slow name servers of one plan manager don't delay the others
THREADS = 64
# Read by the C library. A look-up occupies its thread for about this long per name server, whatever we do.
RESOLVER_OPTIONS = "timeout:2 attempts:2"

# The plan manager for whose endpoint names are looked up.
lookup_plan_manager: ContextVar[UUID | None] = ContextVar("lookup_plan_manager", default=None)


class Resolver:
    """Resolves names with the system's resolver. Concurrent look-ups of a plan manager for the same name are one.

    A look-up counts for the limit of its plan manager until it ends, even after the attempt has timed out.
    """

    def __init__(self) -> None:
        self._pending: dict[tuple[UUID | None, str, int], asyncio.Task[Sequence[str]]] = {}
        self._limits: WeakValueDictionary[UUID | None, asyncio.Semaphore] = WeakValueDictionary()

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        """The addresses. Raises OSError if there are none, or if they aren't known in time."""
        key = lookup_plan_manager.get(), host, port
        task = self._pending.get(key)
        if task is None:
            task = self._pending[key] = asyncio.create_task(self._look_up(*key))
            task.add_done_callback(lambda finished: self._on_done(key, finished))
        try:
            async with asyncio.timeout(LOOKUP_TIMEOUT):
                return await asyncio.shield(task)
        except TimeoutError:
            raise socket.gaierror(socket.EAI_AGAIN, "the look-up took too long") from None

    async def _look_up(self, plan_manager_id: UUID | None, host: str, port: int) -> Sequence[str]:
        limit = self._limits.get(plan_manager_id)
        if limit is None:
            limit = self._limits[plan_manager_id] = asyncio.Semaphore(MAX_LOOKUPS_PER_PLAN_MANAGER)
        async with limit:
            return await _getaddrinfo(host, port)

    def _on_done(self, key: tuple[UUID | None, str, int], task: asyncio.Task[Sequence[str]]) -> None:
        del self._pending[key]
        if not task.cancelled():
            task.exception()  # marks the exception as retrieved: asyncio logs a warning otherwise


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS, "dns")


async def _getaddrinfo(host: str, port: int) -> Sequence[str]:
    def look_up() -> list[str]:
        results = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return [str(address[0]) for _, _, _, _, address in results]

    return await asyncio.get_running_loop().run_in_executor(_threads(), look_up)
