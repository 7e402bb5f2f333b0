"""Requests as they are kept: many in a row."""

from datetime import UTC, datetime
from uuid import UUID

from msgspec import Struct

MAX_KEPT_REQUESTS = 10_000  # requests of a plan manager


class LoggedRequest(Struct, array_like=True, gc=False):
    """A request that was answered: what it was, and nothing that it carried. Kept without the members' names."""

    timestamp: float  # seconds since 1970
    key_id: str
    method: str
    route: str | None
    path: str  # as it was sent, percent-encoded, without the query
    status: int
    duration_ms: float
    request_id: str

    @property
    def responded_at(self) -> datetime:
        return datetime.fromtimestamp(self.timestamp, UTC)


class RequestBatchInsert(Struct):
    """What one worker answered to one plan manager's keys in about a second: the columns of the table."""

    plan_manager_id: UUID
    id: UUID
    ended_at: datetime
    count: int
    requests: str  # an array, oldest first


class RequestBatch(Struct):
    """A batch as it is looked at."""

    id: UUID
    requests: list[LoggedRequest]
