"""Checks of passwords and codes: a few at a time, a short wait, and a share for known devices."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from plankeeper.console.shell import concurrency
from plankeeper.console.shell.concurrency import (
    MAX_CREDENTIAL_CHECKS,
    MAX_KNOWN_CREDENTIAL_CHECKS,
    CredentialCheckLimit,
)
from plankeeper.core.errors import DomainError


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"MIN_WAIT": 0.05, "MAX_WAIT": 0.05, "REJECTION_DELAY": 0.0}.items():
        monkeypatch.setattr(concurrency, name, value)


async def occupy(limit: CredentialCheckLimit, stack: AsyncExitStack, count: int, *, known: bool) -> None:
    for _ in range(count):
        await stack.enter_async_context(limit.slot(known=known))


async def test_unknown_devices_keep_no_known_device_out() -> None:
    limit = CredentialCheckLimit()
    async with AsyncExitStack() as stack:
        await occupy(limit, stack, MAX_CREDENTIAL_CHECKS, known=False)
        with pytest.raises(DomainError) as rejected:
            async with limit.slot(known=False):
                pass
        assert (rejected.value.status, rejected.value.retry_after) == (503, 5)
        await occupy(limit, stack, MAX_KNOWN_CREDENTIAL_CHECKS, known=True)
        with pytest.raises(DomainError):
            async with limit.slot(known=True):
                pass


async def test_a_request_waits_for_a_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concurrency, "MIN_WAIT", 60)
    monkeypatch.setattr(concurrency, "MAX_WAIT", 60)
    limit = CredentialCheckLimit()

    async def check() -> bool:
        async with limit.slot(known=False):
            return True

    async with AsyncExitStack() as stack:
        await occupy(limit, stack, MAX_CREDENTIAL_CHECKS, known=False)
        cancelled, waiting = asyncio.create_task(check()), asyncio.create_task(check())
        await asyncio.sleep(0.01)
        cancelled.cancel()
        assert not waiting.done()
    assert await waiting
    async with AsyncExitStack() as stack:  # what was cancelled took no slot
        await occupy(limit, stack, MAX_CREDENTIAL_CHECKS, known=False)


async def test_a_queue_that_is_full_rejects_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(concurrency, "MAX_WAITING", 0)
    with pytest.raises(DomainError):
        async with CredentialCheckLimit().slot(known=False):
            pass
