"""The statements that Plankeeper's own stores run, caught on their way to the database."""

import contextlib
from collections.abc import Coroutine
from typing import Any, NamedTuple
from uuid import UUID

from benchmarks.data import TENANT
from plankeeper.participants import queries, store
from plankeeper.participants.schemas import ParticipantListQuery

_MARK = "0199a000-0000-7000-8000-00000000beef"  # stands for the id that each request brings
_LIMIT = 7  # stands for the limit


class Statement(NamedTuple):
    """A statement and its values; at `id_at` and `limit_at` stand those that change."""

    text: str
    values: list[Any]
    id_at: int
    limit_at: int | None = None

    def filled(self, id_: str, limit: int = 0) -> list[Any]:
        values = list(self.values)
        values[self.id_at] = id_
        if self.limit_at is not None:
            values[self.limit_at] = limit + 1
        return values


class _Catcher:
    """In place of the database: keeps the statement, and finds nothing."""

    def __init__(self) -> None:
        self.caught: list[tuple[str, list[Any]]] = []

    async def rows(self, _shape: type, statement: str, *values: object) -> list[Any]:
        self.caught.append((statement, list(values)))
        return []

    async def one_or_none(self, _shape: type, statement: str, *values: object) -> None:
        self.caught.append((statement, list(values)))


def get_one() -> Statement:
    catcher: Any = _Catcher()
    _run(store.fetch_basic(catcher, UUID(TENANT), UUID(_MARK)))
    return _made(catcher)


def page() -> Statement:
    """A page by cursor, without filters."""
    catcher: Any = _Catcher()
    _run(queries.page(catcher, UUID(TENANT), ParticipantListQuery(limit=_LIMIT, after=_MARK)))
    return _made(catcher)


def _run(work: Coroutine[Any, Any, Any]) -> None:
    """To its end, which is one step away: the catcher never waits. A loop may run or not."""
    with contextlib.suppress(StopIteration):
        work.send(None)


def _made(catcher: _Catcher) -> Statement:
    [(text, values)] = catcher.caught
    plain = [str(value) for value in values]
    limit = str(_LIMIT + 1)
    return Statement(text, values, plain.index(_MARK), plain.index(limit) if limit in plain else None)
