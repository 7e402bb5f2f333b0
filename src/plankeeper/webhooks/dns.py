"""Resolve host names, without a cache: every attempt gets the current addresses."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence

# `resolve(host, port)` returns the addresses of a host name.
ResolveHost = Callable[[str, int], Awaitable[Sequence[str]]]


class Resolver:
    """Resolves names with the system's resolver. Concurrent look-ups of the same name share one thread.

    A look-up occupies its thread until it ends, even after the attempt has timed out. Sharing keeps one slow name
    from occupying every thread.
    """

    def __init__(self) -> None:
        self._pending: dict[tuple[str, int], asyncio.Task[Sequence[str]]] = {}

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        key = host, port
        task = self._pending.get(key)
        if task is None:
            task = self._pending[key] = asyncio.create_task(_getaddrinfo(host, port))
            task.add_done_callback(lambda finished: self._on_done(key, finished))
        return await asyncio.shield(task)

    def _on_done(self, key: tuple[str, int], task: asyncio.Task[Sequence[str]]) -> None:
        del self._pending[key]
        if not task.cancelled():
            task.exception()  # marks the exception as retrieved: asyncio logs a warning otherwise


async def _getaddrinfo(host: str, port: int) -> Sequence[str]:
    results = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for _, _, _, _, address in results]
