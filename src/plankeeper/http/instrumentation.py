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
from plankeeper.http.requests import Visit

# Tells of a request: its method, its route (null: none of ours), and the status of its answer.
Tell = Callable[[Visit, str, str | None, int], None]

# A request that a key sent for a plan manager: whose, when it was answered, the key, method, route, path, status,
# seconds, request id. A plain tuple, for each request makes one.
Answered = tuple[UUID, float, str | None, str, str | None, bytes, int, float, bytes]

PERIOD = 0.05  # seconds for which lines and figures are gathered
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)  # seconds

_METHODS = {"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"}

REQUESTS = Counter("plankeeper_requests", "Requests answered.", ["method", "route", "status"])
SECONDS = Histogram(
    "plankeeper_request_seconds", "From the last header of a request to the last byte of its answer.",
    ["method", "route"], buckets=BUCKETS,
)  # fmt: skip
REFUSED = Counter("plankeeper_rate_limit_refusals", "Requests refused because a quota was used up.")


class Line(Struct, gc=False):
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
    """Tells of the requests of one worker: many at a time, for each one would cost more than a request's own steps.

    What is told is told within PERIOD seconds; of a worker that is killed, what is younger is lost.
    """

    def __init__(self, *, log: bool, answered: Callable[[Answered], None] | None = None) -> None:
        """`answered` is told of what keys asked for a plan manager, at once: it must take no time."""
        self._log = log
        self._answered = answered
        self._lines: list[Line] = []
        self._tallies: dict[tuple[str, str | None, int], _Tally] = {}
        self._waits = False

    def __call__(self, visit: Visit, method: str, route: str | None, status: int) -> None:
        seconds = perf_counter() - visit.started
        tally = self._tallies.get((method, route, status))
        if tally is None:
            method = method if method in _METHODS else "other"
            tally = self._tallies.setdefault((method, route, status), _Tally(method, route, status))
        tally.add(seconds)
        if self._log:
            key_id = visit.grant.actor.id if visit.grant else None
            self._lines.append(
                Line(
                    datetime.now(UTC), "info", "request", visit.request_id.decode(), key_id, visit.plan_manager_id,
                    method, route, status, int(seconds * 1_000_000) / 1000,
                )
            )  # fmt: skip
        if self._answered and visit.grant and visit.plan_manager_id:
            self._answered((
                visit.plan_manager_id, time(), visit.grant.actor.id, method, route, visit.path, status, seconds,
                visit.request_id,
            ))  # fmt: skip
        if not self._waits:
            self._waits = True
            asyncio.get_running_loop().call_later(PERIOD, self.flush)

    def flush(self) -> None:
        """Tell what waits to be told."""
        self._waits = False
        lines, self._lines = self._lines, []
        logs.write(lines)
        for tally in self._tallies.values():
            tally.flush()


class _Tally:
    """The requests of one method, route and status since the last flush."""

    def __init__(self, method: str, route: str | None, status: int) -> None:
        self._requests = REQUESTS.labels(method, route or "none", status)
        self._timed: Any = SECONDS.labels(method, route or "none")
        self._refused = status == 429
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
        if self._refused:
            REFUSED.inc(count)
        # The library observes one by one only, with a search and two writes into shared memory for each.
        self._timed._sum.inc(self._seconds)  # noqa: SLF001
        for number, found in enumerate(self._buckets):
            if found:
                self._timed._buckets[number].inc(found)  # noqa: SLF001
        self._clear()
