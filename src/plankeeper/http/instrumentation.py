"""Access log entries and metrics of each request."""

import asyncio
from bisect import bisect_left
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from itertools import accumulate
from time import perf_counter, time
from uuid import UUID

from msgspec import Struct
from prometheus_client import Counter, Metric
from prometheus_client.core import HistogramMetricFamily
from prometheus_client.registry import Collector

from plankeeper.core import logs
from plankeeper.core.context import RejectedRequest, RequestRecord
from plankeeper.http.requests import RequestState

# Reports a request: its state, method, route (None: unknown path) and response status.
OnResponse = Callable[[RequestState, str, str | None, int], None]


MAX_USER_AGENT_LENGTH = 200  # characters
FLUSH_INTERVAL = 0.05  # seconds between two flushes of log entries and metrics
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)  # seconds
_UPPER_BOUNDS = (*(str(float(bound)) for bound in BUCKETS), "+Inf")  # values of the label `le`

METHODS = {"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"}

REQUESTS = Counter("plankeeper_http_requests", "Responses sent.", ["method", "route", "status"])
# The parts of the request duration histogram, which `DurationHistogramCollector` puts together. A Histogram of the
# library observes single values only, with a search and two writes to shared memory for each; counters take a batch.
DURATION_BUCKETS = Counter(
    "plankeeper_http_request_duration_buckets", "Requests by duration, not cumulative.", ["method", "route", "le"]
)
DURATION_SUM = Counter("plankeeper_http_request_duration_sum", "The sum of the durations.", ["method", "route"])
RATE_LIMIT_REJECTIONS = Counter("plankeeper_rate_limit_rejections", "Requests rejected by a rate limit.")


def declare_requests(method: str, route: str, success: int) -> None:
    """Begin to count the requests of a route with 0: successes, and the errors of the server."""
    for status in (success, 500, 503):
        REQUESTS.labels(method, route, status)


class AccessLogEntry(Struct, gc=False, omit_defaults=True):
    """A request in the log: routes and ids, but no paths, parameters or bodies, which may contain personal data."""

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
    trace_id: str | None = None
    account_id: UUID | None = None


class RequestInstrumentation:
    """Logs and counts the requests of one worker in batches: one by one, this would cost more than the request itself.

    Buffered entries are flushed within FLUSH_INTERVAL seconds. A worker that is killed loses unflushed entries.
    """

    def __init__(
        self,
        *,
        log: bool,
        on_record: Callable[[RequestRecord], None] | None = None,
        on_rejection: Callable[[RejectedRequest], None] | None = None,
    ) -> None:
        """`on_record` is called during each request that has a key and a plan manager, so it must be fast."""
        self._log = log
        self._on_record = on_record
        self._on_rejection = on_rejection
        self._entries: list[AccessLogEntry] = []
        self._histograms: dict[tuple[str, str | None, int], _Histogram] = {}
        self._flush_scheduled = False

    def __call__(self, state: RequestState, method: str, route: str | None, status: int) -> None:
        seconds = perf_counter() - state.started_at
        histogram = self._histograms.get((method, route, status))
        if histogram is None:
            method = method if method in METHODS else "other"
            histogram = self._histograms.setdefault((method, route, status), _Histogram(method, route, status))
        histogram.add(seconds)
        if self._log:
            self._entries.append(_log_entry(state, method, route, status, seconds))
        if self._on_record and state.principal and state.plan_manager_id:
            request = (state.plan_manager_id, time(), state.principal.actor.id, method, route, state.path, status)
            result = (seconds, state.request_id, state.error_code, _user_agent(state), state.field_errors)
            self._on_record((*request, *result))
        elif self._on_rejection and state.rejected_key:
            now, agent = datetime.now(UTC), _user_agent(state)
            self._on_rejection(RejectedRequest(*state.rejected_key, now, method, route, agent, state.request_id))
        if not self._flush_scheduled:
            self._flush_scheduled = True
            asyncio.get_running_loop().call_later(FLUSH_INTERVAL, self.flush)

    def flush(self) -> None:
        """Write the buffered metrics and log entries."""
        self._flush_scheduled = False
        for histogram in self._histograms.values():
            histogram.flush()
        entries, self._entries = self._entries, []
        if entries:
            logs.write(entries)


def _user_agent(state: RequestState) -> bytes | None:
    """Cut already here: the requests that wait for the database must not keep long headers in memory."""
    value = state.headers.get(b"user-agent")
    return value[:MAX_USER_AGENT_LENGTH] if value else None


def _log_entry(state: RequestState, method: str, route: str | None, status: int, seconds: float) -> AccessLogEntry:
    key_id, request_id = state.principal.actor.id if state.principal else None, state.request_id.decode()
    client, duration_ms = (request_id, key_id, state.plan_manager_id), int(seconds * 1_000_000) / 1000
    request = (method, route, status, duration_ms, state.trace_id, state.account_id)
    return AccessLogEntry(datetime.now(UTC), "info", "request", *client, *request)


class _Histogram:
    """The requests of one method, route and status since the last flush."""

    def __init__(self, method: str, route: str | None, status: int) -> None:
        route = route or "none"
        self._requests = REQUESTS.labels(method, route, status)
        self._duration_sum = DURATION_SUM.labels(method, route)
        self._duration_buckets = [DURATION_BUCKETS.labels(method, route, bound) for bound in _UPPER_BOUNDS]
        self._is_rejection = status == 429
        self._clear()

    def _clear(self) -> None:
        self._seconds = 0.0
        self._counts = [0] * len(_UPPER_BOUNDS)

    def add(self, seconds: float) -> None:
        self._seconds += seconds
        self._counts[bisect_left(BUCKETS, seconds)] += 1

    def flush(self) -> None:
        total = sum(self._counts)
        if not total:
            return
        self._requests.inc(total)
        if self._is_rejection:
            RATE_LIMIT_REJECTIONS.inc(total)
        self._duration_sum.inc(self._seconds)
        for counter, count in zip(self._duration_buckets, self._counts, strict=True):
            if count:
                counter.inc(count)
        self._clear()


class DurationHistogramCollector(Collector):
    """The metrics of another collector, with the request duration's counters as one histogram."""

    def __init__(self, source: Collector) -> None:
        self._source = source

    def collect(self) -> Iterable[Metric]:
        counts: dict[tuple[str, str], dict[str, float]] = {}
        sums: dict[tuple[str, str], float] = {}
        for metric in self._source.collect():
            if metric.name == "plankeeper_http_request_duration_buckets":
                for labels, value in _totals(metric):
                    counts.setdefault((labels["method"], labels["route"]), {})[labels["le"]] = value
            elif metric.name == "plankeeper_http_request_duration_sum":
                sums |= {(labels["method"], labels["route"]): value for labels, value in _totals(metric)}
            else:
                yield metric
        histogram = HistogramMetricFamily(
            "plankeeper_http_request_duration_seconds",
            "From the last header of a request to the last byte of its response.",
            labels=["method", "route"],
        )
        for key, by_bound in counts.items():
            cumulative = accumulate(by_bound.get(bound, 0.0) for bound in _UPPER_BOUNDS)
            histogram.add_metric(key, list(zip(_UPPER_BOUNDS, cumulative, strict=True)), sums.get(key, 0.0))
        yield histogram


def _totals(counter: Metric) -> Iterable[tuple[dict[str, str], float]]:
    return ((sample.labels, sample.value) for sample in counter.samples if sample.name.endswith("_total"))
