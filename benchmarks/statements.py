"""Records the SQL statements that Plankeeper's stores run."""

import contextlib
from collections.abc import Coroutine
from typing import Any, NamedTuple
from uuid import UUID

from benchmarks.data import TENANT
from benchmarks.scenarios import GET, Scenario
from plankeeper.resources.participants import queries, store
from plankeeper.resources.participants.schemas import ParticipantListQuery

_ID_PLACEHOLDER = "0199a000-0000-7000-8000-00000000beef"  # replaced by the id of each request
_LIMIT_PLACEHOLDER = 7  # replaced by the limit
# The row of the API, and its event without a place in the feed: the least that a create writes.
INSERT_PARTICIPANT = """
    insert into participants (
        plan_manager_id, id, first_name, last_name, participant_number, email, state,
        created_at, status, approval_required, is_pace_plan, postal_statement, participant_receives_statements
    )
    values ($1, $2, $3, $4, $5, $6, $7, $8, 'Active', false, false, false, false)
"""
INSERT_EVENT = """
    insert into events (plan_manager_id, id, type, created_at, actor_kind, resource_kind, resource_id, data)
    values ($1, $2, 'participant.created', $3, 'system', 'participant', $4, $5)
"""


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


def statement(scenario: Scenario) -> Statement:
    """The statement of a get, or of a page after a cursor without filters."""
    return _get_statement() if scenario is GET else _list_statement()


def _get_statement() -> Statement:
    recorder: Any = _StatementRecorder()
    _run(store.get(recorder, UUID(TENANT), UUID(_ID_PLACEHOLDER)))
    [(text, values)] = recorder.statements
    return Statement(text, values, id_at=1)


def _list_statement() -> Statement:
    recorder: Any = _StatementRecorder()
    query = ParticipantListQuery(limit=_LIMIT_PLACEHOLDER, after=_ID_PLACEHOLDER)
    _run(queries.list_page(recorder, UUID(TENANT), query))
    [(text, values)] = recorder.statements
    texts = [str(value) for value in values]
    return Statement(text, values, texts.index(_ID_PLACEHOLDER), texts.index(str(_LIMIT_PLACEHOLDER + 1)))


def _run(coroutine: Coroutine[Any, Any, Any]) -> None:
    """Run a coroutine that never waits, with or without an event loop."""
    with contextlib.suppress(StopIteration):
        coroutine.send(None)
