"""Limits the searches in progress: one that matches many records keeps a core of the database busy."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from uuid import UUID
from weakref import WeakValueDictionary

from plankeeper.core.errors import DomainError

MAX_SEARCHES = 2  # of a plan manager, in progress in one worker
MAX_WAITING = 20  # of a plan manager: each occupies one of the worker's requests
MAX_WAIT = 5.0  # seconds


class _Slots(asyncio.Semaphore):
    """The slots of one plan manager, which exist while a search uses them or waits for one."""

    def __init__(self) -> None:
        super().__init__(MAX_SEARCHES)
        self.waiting = 0


_slots: WeakValueDictionary[UUID, _Slots] = WeakValueDictionary()


@asynccontextmanager
async def search_slot(plan_manager_id: UUID) -> AsyncGenerator[None]:
    """Wait until the plan manager has fewer searches in progress; raises DomainError after MAX_WAIT seconds."""
    slots = _slots.get(plan_manager_id)
    if slots is None:
        slots = _slots[plan_manager_id] = _Slots()
    if slots.locked() and slots.waiting >= MAX_WAITING:
        raise _too_many()
    slots.waiting += 1
    try:
        async with asyncio.timeout(MAX_WAIT):
            await slots.acquire()
    except TimeoutError:
        raise _too_many() from None
    finally:
        slots.waiting -= 1
    try:
        yield
    finally:
        slots.release()


def _too_many() -> DomainError:
    detail = "Too many searches of this plan manager are in progress."
    return DomainError("service_unavailable", detail, retry_after=5)
