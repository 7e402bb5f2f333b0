"""What is told of each request: a line in the log, and metrics."""

import asyncio
from bisect import bisect_left
from collections.abc import Callable
from datetime import UTC, datetime
from time import perf_counter, time
from typing import Any
from uuid import UUID

from msgspec import Struct
from prometheus_client import Counter, Histogram

from plankeeper import logs
from plankeeper.http.requests import RequestState

# Tells of a request: its method, its route (null: none of ours), and the status of its answer.
OnResponse = Callable[[RequestState, str, str | None, int], None]

# A request that a key sent for a plan manager: whose, when it was answered, the key, method, route, path, status,
# seconds, request id. A plain tuple, for each request makes one.
RequestRecord = tuple[UUID, float, str | None, str, str | None, bytes, int, float, bytes]

FLUSH_INTERVAL = 0.05  # seconds for which lines and figures are gathered
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)  # seconds

_METHODS = {"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"}

REQUESTS = Counter("plankeeper_http_requests", "Requests answered.", ["method", "route", "status"])
REQUEST_DURATION = Histogram(
    "plankeeper_http_request_duration_seconds",
    "From the last header of a request to the last byte of its answer.",
    ["method", "route"],
    buckets=BUCKETS,
)
RATE_LIMIT_REJECTIONS = Counter("plankeeper_rate_limit_rejections", "Requests refused because a quota was used up.")


class AccessLogEntry(Struct, gc=False):
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


class RequestInstrumentation:
    """Tells of the requests of one worker: many at a time, for each one would cost more than a request's own steps.

    What is told is told within PERIOD seconds; of a worker that is killed, what is younger is lost.
    """

    def __init__(self, *, log: bool, on_record: Callable[[RequestRecord], None] | None = None) -> None:
        """`on_record` is told of what keys asked for a plan manager, at once: it must take no time."""
        self._log = log
        self._on_record = on_record
        self._entries: list[AccessLogEntry] = []
        self._histograms: dict[tuple[str, str | None, int], _Histogram] = {}
        self._flush_scheduled = False

    def __call__(self, state: RequestState, method: str, route: str | None, status: int) -> None:
        seconds = perf_counter() - state.started_at
        histogram = self._histograms.get((method, route, status))
        if histogram is None:
            method = method if method in _METHODS else "other"
            histogram = self._histograms.setdefault((method, route, status), _Histogram(method, route, status))
        histogram.add(seconds)
        if self._log:
            key_id = state.principal.actor.id if state.principal else None
            self._entries.append(
                AccessLogEntry(
                    datetime.now(UTC),
                    "info",
                    "request",
                    state.request_id.decode(),
                    key_id,
                    state.plan_manager_id,
                    method,
                    route,
                    status,
                    int(seconds * 1_000_000) / 1000,
                )
            )
        if self._on_record and state.principal and state.plan_manager_id:
            self._on_record(
                (
                    state.plan_manager_id,
                    time(),
                    state.principal.actor.id,
                    method,
                    route,
                    state.path,
                    status,
                    seconds,
                    state.request_id,
                )
            )
        if not self._flush_scheduled:
            self._flush_scheduled = True
            asyncio.get_running_loop().call_later(FLUSH_INTERVAL, self.flush)

    def flush(self) -> None:
        """Tell what waits to be told."""
        self._flush_scheduled = False
        entries, self._entries = self._entries, []
        logs.write(entries)
        for histogram in self._histograms.values():
            histogram.flush()


class _Histogram:
    """The requests of one method, route and status since the last flush."""

    def __init__(self, method: str, route: str | None, status: int) -> None:
        self._requests = REQUESTS.labels(method, route or "none", status)
        self._duration: Any = REQUEST_DURATION.labels(method, route or "none")
        self._is_rejection = status == 429
        self._clear()

    def _clear(self) -> None:
        self._seconds = 0.0
        self._buckets = [0] * (len(BUCKETS) + 1)

    def add(self, seconds: float) -> None:
        self._seconds += seconds
        self._buckets[bisect_left(BUCKETS, seconds)] += 1

    def flush(self) -> None:
        count = sum(self._buckets)
        if not count:
            return
        self._requests.inc(count)
        if self._is_rejection:
            RATE_LIMIT_REJECTIONS.inc(count)
        # The library observes one by one only, with a search and two writes into shared memory for each.
        self._duration._sum.inc(self._seconds)  # noqa: SLF001
        for bucket, observed in enumerate(self._buckets):
            if observed:
                self._duration._buckets[bucket].inc(observed)  # noqa: SLF001
        self._clear()
