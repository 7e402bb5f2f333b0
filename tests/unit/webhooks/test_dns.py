"""A slow name delays its own look-ups, and no others."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from plankeeper.webhooks import client
from plankeeper.webhooks.client import WebhookClient


async def test_concurrent_lookups_of_a_name_share_one_query(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look-up holds a thread for as long as the system takes, which may be longer than any attempt."""
    asked: list[str] = []

    async def slow(host: str, port: int) -> list[str]:
        asked.append(f"{host}:{port}")
        await asyncio.sleep(0.05)
        return ["192.0.2.1"]

    monkeypatch.setattr(client, "_getaddrinfo", slow)
    resolve = client.Resolver()
    found = await asyncio.gather(*(resolve("slow.example", 443) for _ in range(300)), resolve("other.example", 443))
    assert found == [["192.0.2.1"]] * 301
    assert asked == ["slow.example:443", "other.example:443"]
    await resolve("slow.example", 443)
    assert len(asked) == 3  # nothing is cached


async def test_a_cancelled_lookup_does_not_cancel_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = asyncio.Event()

    async def slow(_host: str, _port: int) -> list[str]:
        await answered.wait()
        raise socket.gaierror

    monkeypatch.setattr(client, "_getaddrinfo", slow)
    resolve = client.Resolver()
    first, second = (asyncio.create_task(resolve("slow.example", 443)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.sleep(0)
    answered.set()
    with pytest.raises(socket.gaierror):
        await second


SLOW = "slow"  # the beginning of names whose name server doesn't respond
OTHER_NAMES = 100  # more than there are threads
HOSTILE, OTHER = uuid4(), uuid4()


class NameServer:
    """Stands for the system's resolver: slow names get no result until the test ends."""

    def __init__(self) -> None:
        self.released = threading.Event()
        self.lock = threading.Lock()
        self.under_way = self.most = 0

    def getaddrinfo(self, host: str, port: int, **_: Any) -> list[tuple[Any, ...]]:
        with self.lock:
            self.under_way += 1
            self.most = max(self.most, self.under_way)
        if host.startswith(SLOW):
            assert self.released.wait(60)
        with self.lock:
            self.under_way -= 1
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.1", port))]


@pytest.fixture
def name_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[NameServer]:
    server = NameServer()
    monkeypatch.setattr(socket, "getaddrinfo", server.getaddrinfo)
    yield server
    server.released.set()


async def look_up(resolve: client.Resolver, plan_manager_id: Any, host: str) -> Any:
    """The addresses, or the error."""
    client.lookup_plan_manager.set(plan_manager_id)
    try:
        return await resolve(host, 443)
    except OSError as error:
        return error


async def test_slow_names_of_a_plan_manager_do_not_delay_others(name_server: NameServer) -> None:
    resolve = client.Resolver()
    slow = [asyncio.create_task(look_up(resolve, HOSTILE, f"{SLOW}{number}.example")) for number in range(OTHER_NAMES)]
    await asyncio.sleep(0.1)
    started = time.monotonic()
    found = await asyncio.gather(*(look_up(resolve, OTHER, f"good{number}.example") for number in range(20)))
    assert found == [["192.0.2.1"]] * 20
    assert time.monotonic() - started < client.LOOKUP_TIMEOUT
    # Those of the hostile plan manager and of the other.
    assert name_server.most <= 2 * client.MAX_LOOKUPS_PER_PLAN_MANAGER
    name_server.released.set()
    await asyncio.gather(*slow)


async def test_a_slow_name_fails_in_time_and_still_counts(
    name_server: NameServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "LOOKUP_TIMEOUT", 0.1)
    resolve = client.Resolver()
    async with asyncio.timeout(10):
        for number in range(5):
            failed = await look_up(resolve, HOSTILE, f"{SLOW}{number}.example")
            assert isinstance(failed, socket.gaierror)
    assert name_server.most == client.MAX_LOOKUPS_PER_PLAN_MANAGER
    assert isinstance(await look_up(resolve, HOSTILE, "good.example"), socket.gaierror)
    monkeypatch.setattr(client, "LOOKUP_TIMEOUT", 10)
    assert await look_up(resolve, OTHER, "good.example") == ["192.0.2.1"]
    name_server.released.set()
    assert await look_up(resolve, HOSTILE, "good.example") == ["192.0.2.1"]


async def test_lookups_do_not_use_the_default_threads(name_server: NameServer) -> None:
    """Other work of the process, such as reading files, uses them."""
    resolve = client.Resolver()
    slow = [asyncio.create_task(look_up(resolve, uuid4(), f"{SLOW}{number}.example")) for number in range(40)]
    async with asyncio.timeout(10):
        while name_server.under_way < 40:
            await asyncio.sleep(0.01)
        assert await asyncio.to_thread(lambda: 1) == 1
    name_server.released.set()
    await asyncio.gather(*slow)


async def test_names_of_the_hosts_file_are_found() -> None:
    assert await look_up(client.Resolver(), OTHER, "localhost") in (
        ["127.0.0.1"],
        ["::1"],
        ["127.0.0.1", "::1"],
        ["::1", "127.0.0.1"],
    )


async def test_an_attempt_looks_up_its_name_for_its_plan_manager() -> None:
    seen: list[Any] = []

    async def resolve(_host: str, _port: int) -> list[str]:
        seen.append(client.lookup_plan_manager.get())
        return []

    webhook_client = WebhookClient((), resolve)
    results = await asyncio.gather(
        *(webhook_client.post("https://name.example/", [], b"", each) for each in (HOSTILE, OTHER, HOSTILE))
    )
    assert sorted(seen) == sorted([HOSTILE, OTHER, HOSTILE])
    assert {each.error for each in results} == {"the host has no public address"}
    await webhook_client.close()
