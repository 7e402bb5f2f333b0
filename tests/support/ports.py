"""Ports for programs that have to be told one before they listen on it, and that keep it when they start again."""

import atexit
import socket
from functools import cache

# Below the ports that the system gives to connections: one of those could be taken before the program listens on it.
FIRST, END = 20_000, 32_700
BLOCK = 50

_unused: list[int] = []


def free_port() -> int:
    """A port of this process's own that nobody listens on, on any address."""
    return free_ports(1)[0]


def free_ports(count: int) -> list[int]:
    """Consecutive ones. No other process of a test gets them; this process gets them again only after all others."""
    for _ in range(BLOCK):
        if len(_unused) < count:
            first = _own_block()
            _unused[:] = range(first + 1, first + BLOCK)
        found = _unused[:count]
        del _unused[:count]
        if all(_is_free(port) for port in found):
            return found
    raise AssertionError("no ports are free")


@cache
def _own_block() -> int:
    """The first port of a block: the block belongs to the process that listens on it."""
    for first in range(FIRST, END, BLOCK):
        try:
            owner = socket.create_server(("127.0.0.1", first))
        except OSError:
            continue
        atexit.register(owner.close)
        return first
    raise AssertionError("all ports are taken")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True
