"""Limits on concurrent work of a worker: downloads, uploads, imports, and checks of passwords and codes."""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from uuid import UUID

from plankeeper.core.errors import DomainError

MAX_CREDENTIAL_CHECKS = 2  # of unknown devices, in progress in one worker
MAX_KNOWN_CREDENTIAL_CHECKS = 2  # of known devices and of people who are signed in
MAX_WAITING = 500
REJECTION_DELAY = 1.0  # seconds
MIN_WAIT, MAX_WAIT = 5.0, 10.0  # seconds; each request waits for a random time, so that not all return at once


class SharedLimitError(Exception):
    """The account or its plan manager has too many downloads, uploads or imports in progress.

    The text is for the person.
    """


class ConcurrencyLimit:
    """A context manager that takes one of `count` slots; raises DomainError if all are in use."""

    def __init__(self, count: int) -> None:
        self._available = count

    def require_available(self) -> None:
        """Raises DomainError if no slot is free."""
        if self._available == 0:
            raise _too_busy()

    def __enter__(self) -> None:
        self.require_available()
        self._available -= 1

    def __exit__(self, *_error: object) -> None:
        self._available += 1


class SharedLimit:
    """Limits concurrent work: one at a time of an account, of a plan manager, and of the worker.

    One plan manager therefore never uses all that a worker has. `noun` names the limited thing.
    """

    def __init__(self, noun: str, *, worker: int, plan_manager: int) -> None:
        self._noun, self._plan_manager = noun, plan_manager
        self._worker = ConcurrencyLimit(worker)
        self._accounts = Counter[UUID]()
        self._plan_managers = Counter[UUID | None]()

    def require_available(self, account_id: UUID, plan_manager_id: UUID | None) -> None:
        """Raises SharedLimitError if the account or the plan manager is at its limit, DomainError if the worker is."""
        if self._accounts[account_id]:
            raise SharedLimitError(f"Another {self._noun} of yours is in progress. Try again when it is finished.")
        if self._plan_managers[plan_manager_id] >= self._plan_manager:
            raise SharedLimitError(
                f"Other people of this plan manager have {self._noun}s in progress. Try again in a moment."
            )
        self._worker.require_available()

    @contextmanager
    def slot(self, account_id: UUID, plan_manager_id: UUID | None) -> Generator[None]:
        """Counts one until it ends."""
        self.require_available(account_id, plan_manager_id)
        with self._worker:
            self._accounts[account_id] += 1
            self._plan_managers[plan_manager_id] += 1
            try:
                yield
            finally:
                self._accounts -= Counter([account_id])  # keeps no zeros
                self._plan_managers -= Counter([plan_manager_id])


class CredentialCheckLimit:
    """Limits the requests that check a password or a code, apart from all others.

    A request waits a few seconds for a slot before it is rejected: waiting costs nothing, and the next attempt would
    follow an immediate rejection at once. Known devices have slots of their own, so that a flood doesn't keep them out.
    """

    def __init__(self) -> None:
        self._unknown = asyncio.Semaphore(MAX_CREDENTIAL_CHECKS)
        self._known = asyncio.Semaphore(MAX_KNOWN_CREDENTIAL_CHECKS)
        self._waiting = 0

    @asynccontextmanager
    async def slot(self, *, known: bool) -> AsyncGenerator[None]:
        """Raises DomainError if there is none within MAX_WAIT seconds."""
        slots = self._known if known else self._unknown
        await self._acquire(slots)
        try:
            yield
        finally:
            slots.release()

    async def _acquire(self, slots: asyncio.Semaphore) -> None:
        if self._waiting >= MAX_WAITING:
            await asyncio.sleep(REJECTION_DELAY)
            raise _too_busy()
        self._waiting += 1
        try:
            async with asyncio.timeout(random.uniform(MIN_WAIT, MAX_WAIT)):  # noqa: S311 - it spreads the load
                await slots.acquire()
        except TimeoutError:
            raise _too_busy() from None
        finally:
            self._waiting -= 1


def _too_busy() -> DomainError:
    return DomainError("service_unavailable", "The server is too busy.", retry_after=5)
