"""Requests as they are kept: many in a row."""

from datetime import UTC, datetime
from uuid import UUID

from msgspec import Struct

KEPT = 10_000  # requests of a plan manager


class Request(Struct, array_like=True, gc=False):
    """A request that was answered: what it was, and nothing that it carried. Kept without the members' names."""

    answered_at: float  # seconds since 1970
    key_id: str
    method: str
    route: str | None
    path: str  # as it was sent, percent-encoded, without the query
    status: int
    ms: float
    request_id: str

    @property
    def at(self) -> datetime:
        return datetime.fromtimestamp(self.answered_at, UTC)


class Batch(Struct):
    """What one worker answered to one plan manager's keys in about a second: the columns of the table."""

    plan_manager_id: UUID
    id: UUID
    ended_at: datetime
    count: int
    requests: str  # an array, oldest first


class BatchRead(Struct):
    """A batch as it is looked at."""

    id: UUID
    requests: list[Request]
