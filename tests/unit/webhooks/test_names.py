"""A slow name delays those who ask for it, and nobody else."""

import asyncio
import socket

import pytest

from plankeeper.webhooks import dns


async def test_concurrent_lookups_of_a_name_share_one_query(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look-up holds a thread for as long as the system takes, which may be longer than any attempt."""
    asked: list[str] = []

    async def slow(host: str, port: int) -> list[str]:
        asked.append(f"{host}:{port}")
        await asyncio.sleep(0.05)
        return ["192.0.2.1"]

    monkeypatch.setattr(dns, "_getaddrinfo", slow)
    resolve = dns.Resolver()
    found = await asyncio.gather(*(resolve("slow.example", 443) for _ in range(300)), resolve("other.example", 443))
    assert found == [["192.0.2.1"]] * 301
    assert asked == ["slow.example:443", "other.example:443"]
    await resolve("slow.example", 443)
    assert len(asked) == 3  # nothing is kept


async def test_a_cancelled_lookup_does_not_cancel_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = asyncio.Event()

    async def slow(_host: str, _port: int) -> list[str]:
        await answered.wait()
        raise socket.gaierror

    monkeypatch.setattr(dns, "_getaddrinfo", slow)
    resolve = dns.Resolver()
    first, second = (asyncio.create_task(resolve("slow.example", 443)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.sleep(0)
    answered.set()
    with pytest.raises(socket.gaierror):
        await second
