"""The addresses of names. Nothing is kept: a name is asked for at every attempt."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence

# Finds the addresses of a name: `resolve(host, port)`.
ResolveHost = Callable[[str, int], Awaitable[Sequence[str]]]


class Resolver:
    """Asks the system. Who asks for a name that is being asked for waits for the same answer: a look-up holds a
    thread until it is over, however long after the attempt has given up, and a slow name must not hold them all.
    """

    def __init__(self) -> None:
        self._pending: dict[tuple[str, int], asyncio.Task[Sequence[str]]] = {}

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        key = host, port
        task = self._pending.get(key)
        if task is None:
            task = self._pending[key] = asyncio.create_task(_getaddrinfo(host, port))
            task.add_done_callback(lambda done: self._on_done(key, done))
        return await asyncio.shield(task)

    def _on_done(self, key: tuple[str, int], task: asyncio.Task[Sequence[str]]) -> None:
        del self._pending[key]
        if not task.cancelled():
            task.exception()  # whoever still waits is told; where nobody does, nobody need be warned


async def _getaddrinfo(host: str, port: int) -> Sequence[str]:
    results = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(each[4][0]) for each in results]
