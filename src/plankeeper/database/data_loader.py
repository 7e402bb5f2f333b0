"""Reads single records in batches: concurrent reads of one plan manager share a statement, as in a GraphQL data loader.

The first read sends its statement in the next turn of the event loop, together with the reads of this turn. Reads that
come while the statement is in flight wait for the next one. An idle server therefore responds without a delay, and a
busy one runs fewer and larger statements.

A read joins only a statement that is not sent yet, so it sees every write that was acknowledged before it began.
"""

import asyncio
from asyncio import Future
from collections.abc import Awaitable, Callable, Hashable, Iterator, Sequence
from contextvars import Context, copy_context
from typing import Any, NamedTuple, Protocol, TypeVar
from uuid import UUID


class Record(Protocol):
    """A row with an id."""

    @property
    def id(self) -> Hashable: ...


R = TypeVar("R", bound=Record)
# The function of a store that reads the records with these ids in one statement, in any order, without unknown ones.
GetMany = Callable[[Any, UUID, Sequence[Any]], Awaitable[Sequence[R]]]
Kind = tuple[GetMany[Any], UUID]  # the reads that can share a statement


class Batch(NamedTuple):
    """The reads of the next statement: those that wait for each id, and the context of the first one, for its trace."""

    context: Context
    waiting: dict[Hashable, list[Future[Any]]]


class DataLoader:
    """Reads records through one statement at a time for each store function and plan manager."""

    __slots__ = ("_db", "_next", "_running")

    def __init__(self, db: object) -> None:
        self._db = db
        self._next: dict[Kind, Batch] = {}
        self._running: dict[Kind, asyncio.Task[None]] = {}

    async def load(self, get_many: GetMany[R], plan_manager_id: UUID, record_id: Hashable) -> R | None:
        """The record with this id, or null. Raises the errors of the statement."""
        loop = asyncio.get_running_loop()
        kind = get_many, plan_manager_id
        batch = self._next.get(kind)
        if batch is None:
            batch = self._next[kind] = Batch(copy_context(), {})
            if kind not in self._running:
                loop.call_soon(self._send, kind)
        record: Future[R | None] = loop.create_future()
        batch.waiting.setdefault(record_id, []).append(record)
        return await record

    def _send(self, kind: Kind) -> None:
        batch = self._next.pop(kind)
        self._running[kind] = asyncio.get_running_loop().create_task(self._read(kind, batch), context=batch.context)

    async def _read(self, kind: Kind, batch: Batch) -> None:
        get_many, plan_manager_id = kind
        ids = list(dict.fromkeys(id_ for id_, _ in _waiting(batch)))
        try:
            records = await get_many(self._db, plan_manager_id, ids) if ids else ()
            found = {each.id: each for each in records}
            for id_, read in _waiting(batch):
                read.set_result(found.get(id_))
        except Exception as error:  # noqa: BLE001 - each read raises it
            for _, read in _waiting(batch):
                read.set_exception(error)
        except asyncio.CancelledError:
            for _, read in _waiting(batch):
                read.cancel()
            raise
        finally:
            del self._running[kind]
            if kind in self._next:
                self._send(kind)


def _waiting(batch: Batch) -> Iterator[tuple[Hashable, Future[Any]]]:
    """The reads with their ids, without those whose requests have ended."""
    return ((id_, each) for id_, reads in batch.waiting.items() for each in reads if not each.done())
