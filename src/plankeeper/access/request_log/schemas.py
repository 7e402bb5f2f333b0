"""Logged requests, stored in batches."""

from datetime import UTC, date, datetime
from uuid import UUID

from msgspec import Struct

MAX_KEPT_REQUESTS = 10_000  # per plan manager


class LoggedFieldError(Struct, array_like=True, gc=False):
    """An error of a field or a parameter, without its message and the value."""

    location: str
    field: str
    code: str

    def __str__(self) -> str:
        return f"{self.field} {self.code}"


class LoggedRequest(Struct, array_like=True, gc=False):
    """A request and its response status, without parameters and bodies.

    Stored as an array: a new field is the last one and has a default, so that older rows can be read, and servers of
    the release before can read newer ones.
    """

    timestamp: float  # seconds since 1970
    key_id: str
    method: str
    route: str | None
    path: str  # as the client sent it, percent-encoded, without the query string
    status: int
    duration_ms: float
    request_id: str
    error_code: str | None = None
    user_agent: str | None = None
    field_errors: list[LoggedFieldError] = []  # the first of them
    errors_total: int = 0

    @property
    def responded_at(self) -> datetime:
        return datetime.fromtimestamp(self.timestamp, UTC)


class KeyRejection(Struct):
    """The requests of a key that were rejected for one reason, with the details of the latest one."""

    api_key_id: UUID
    reason: str
    requests: int
    first_at: datetime
    last_at: datetime
    method: str
    route: str | None
    user_agent: str | None
    request_id: str


class RequestBatchInsert(Struct):
    """A row of the table: the requests of one plan manager that one worker handled in about a second."""

    plan_manager_id: UUID
    id: UUID
    ended_at: datetime
    count: int
    requests: str  # an array, oldest first


class RequestBatch(Struct):
    """A batch for reading."""

    id: UUID
    requests: list[LoggedRequest]


class MinuteCount(Struct):
    """The requests of a plan manager's keys in a minute: those with a status of 400 to 499, and with a higher one."""

    plan_manager_id: UUID
    minute: datetime
    requests: int
    rejected: int
    failed: int


class KeyDayCount(Struct):
    """The requests of a key for a plan manager on a day, with one status and one code of an error."""

    plan_manager_id: UUID
    api_key_id: UUID
    day: date
    status: int
    error_code: str  # empty without one
    requests: int
