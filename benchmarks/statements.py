"""Records the SQL statements that Plankeeper's stores run."""

import contextlib
from collections.abc import Coroutine
from typing import Any, NamedTuple
from uuid import UUID

from benchmarks.data import TENANT
from plankeeper.participants import queries, store
from plankeeper.participants.schemas import ParticipantListQuery

_ID_PLACEHOLDER = "0199a000-0000-7000-8000-00000000beef"  # replaced by the id of each request
_LIMIT_PLACEHOLDER = 7  # replaced by the limit


class Statement(NamedTuple):
    """A statement and its values. `id_at` and `limit_at` are the indexes of the values that change."""

    text: str
    values: list[Any]
    id_at: int
    limit_at: int | None = None

    def bind(self, id_: str, limit: int = 0) -> list[Any]:
        values = list(self.values)
        values[self.id_at] = id_
        if self.limit_at is not None:
            values[self.limit_at] = limit + 1
        return values


class _StatementRecorder:
    """A stand-in for the database that records the statement and returns no rows."""

    def __init__(self) -> None:
        self.statements: list[tuple[str, list[Any]]] = []

    async def rows(self, _row_type: type, statement: str, *values: object) -> list[Any]:
        self.statements.append((statement, list(values)))
        return []

    async def one_or_none(self, _row_type: type, statement: str, *values: object) -> None:
        self.statements.append((statement, list(values)))


def get_statement() -> Statement:
    recorder: Any = _StatementRecorder()
    _run(store.get_summary(recorder, UUID(TENANT), UUID(_ID_PLACEHOLDER)))
    return _to_statement(recorder)


def list_statement() -> Statement:
    """A page after a cursor, without filters."""
    recorder: Any = _StatementRecorder()
    _run(
        queries.list_page(recorder, UUID(TENANT), ParticipantListQuery(limit=_LIMIT_PLACEHOLDER, after=_ID_PLACEHOLDER))
    )
    return _to_statement(recorder)


def _run(coroutine: Coroutine[Any, Any, Any]) -> None:
    """Run a coroutine that never waits, with or without an event loop."""
    with contextlib.suppress(StopIteration):
        coroutine.send(None)


def _to_statement(recorder: _StatementRecorder) -> Statement:
    [(text, values)] = recorder.statements
    texts = [str(value) for value in values]
    limit = str(_LIMIT_PLACEHOLDER + 1)
    return Statement(text, values, texts.index(_ID_PLACEHOLDER), texts.index(limit) if limit in texts else None)
