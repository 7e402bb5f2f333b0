"""What is told of each request: a line in the log, and metrics."""

from collections.abc import Callable
from datetime import UTC, datetime
from time import perf_counter
from uuid import UUID

from msgspec import Struct
from prometheus_client import Counter, Histogram

from plankeeper import logs
from plankeeper.edge.request import Visit

# Tells of a request: its method, its route (null: none of ours), and the status of its answer.
Tell = Callable[[Visit, str, str | None, int], None]

_METHODS = {"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"}

REQUESTS = Counter("plankeeper_requests", "Requests answered.", ["method", "route", "status"])
SECONDS = Histogram(
    "plankeeper_request_seconds", "From the last header of a request to the last byte of its answer.",
    ["method", "route"], buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)  # fmt: skip
REFUSED = Counter("plankeeper_rate_limit_refusals", "Requests refused because a quota was used up.")


class Line(Struct):
    """A request in the log: routes and ids, and nothing of what it is about."""

    time: datetime
    level: str
    event: str
    request_id: str
    key_id: str | None
    plan_manager_id: UUID | None
    method: str
    route: str | None
    status: int
    duration_ms: float


class Telling:
    """Tells of the requests of one worker."""

    def __init__(self, *, log: bool) -> None:
        self._log = logs.Writer() if log else None
        self._counted: dict[tuple[str, str | None, int], Counter] = {}
        self._timed: dict[tuple[str, str | None], Histogram] = {}

    def __call__(self, visit: Visit, method: str, route: str | None, status: int) -> None:
        seconds = perf_counter() - visit.started
        method = method if method in _METHODS else "other"
        self._count(method, route, status).inc()
        self._time(method, route).observe(seconds)
        if status == 429:
            REFUSED.inc()
        if self._log:
            key_id = visit.grant.actor.id if visit.grant else None
            self._log.write(
                Line(
                    datetime.now(UTC), "info", "request", visit.request_id.decode(), key_id, visit.plan_manager_id,
                    method, route, status, round(seconds * 1000, 3),
                )
            )  # fmt: skip

    def close(self) -> None:
        """Write what waits to be written."""
        if self._log:
            self._log.flush()

    def _count(self, method: str, route: str | None, status: int) -> Counter:
        found = self._counted.get((method, route, status))
        if found is None:
            found = self._counted[method, route, status] = REQUESTS.labels(method, route or "none", status)
        return found

    def _time(self, method: str, route: str | None) -> Histogram:
        found = self._timed.get((method, route))
        if found is None:
            found = self._timed[method, route] = SECONDS.labels(method, route or "none")
        return found
