"""The addresses of names. Nothing is kept: a name is asked for at every attempt."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence

# Finds the addresses of a name: `resolve(host, port)`.
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


class Names:
    """Asks the system. Who asks for a name that is being asked for waits for the same answer: a look-up holds a
    thread until it is over, however long after the attempt has given up, and a slow name must not hold them all.
    """

    def __init__(self) -> None:
        self._asking: dict[tuple[str, int], asyncio.Task[Sequence[str]]] = {}

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        name = host, port
        asking = self._asking.get(name)
        if asking is None:
            asking = self._asking[name] = asyncio.create_task(_ask(host, port))
            asking.add_done_callback(lambda done: self._answered(name, done))
        return await asyncio.shield(asking)

    def _answered(self, name: tuple[str, int], done: asyncio.Task[Sequence[str]]) -> None:
        del self._asking[name]
        if not done.cancelled():
            done.exception()  # whoever still waits is told; where nobody does, nobody need be warned


async def _ask(host: str, port: int) -> Sequence[str]:
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(each[4][0]) for each in found]
