"""A rate limiter for all workers of all servers that does not query the database for each request.

A worker leases a number of requests, uses them, and then leases more. Twice a second it reports its usage and returns
leases that it does not use, so that all workers know the remaining quota and can use all of it.
"""

import asyncio
import logging
import math
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from plankeeper.database.client import Database, Executor
from plankeeper.database.errors import is_unavailable
from plankeeper.http.admission import WINDOW_SECONDS, RateLimitStatus
from plankeeper.http.rate_limits import store
from plankeeper.http.rate_limits.store import Lease, UsageReport

log = logging.getLogger("plankeeper")

REPORT_INTERVAL = 0.5  # seconds
EMPTY_LEASE_SECONDS = 0.1  # until a worker asks again after an empty lease: another worker may return some requests
LEASE_DIVISOR = 60  # a lease is at most this fraction of the quota: one second's share at an even rate
MAX_SUBJECTS = 20_000  # subjects in the memory of a worker

_LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class _LeaseState:
    """A worker's lease of a subject's quota.

    On this process's monotonic clock, the minute ends between `expires_at` and `resets_at`: a query takes time.
    A lease is not used after the earlier one. Responses contain the later one, so that clients never retry too early.
    """

    limit: int
    minute: datetime = _LONG_AGO
    requested_at: float = 0  # when the latest lease was requested
    expires_at: float = 0
    resets_at: float = 0
    remaining: int = 0  # of the lease
    unreported: int = 0
    used: int = 0  # by all workers, at the latest lease
    used_since_report: bool = False
    rejecting_until: float = 0
    pending_request: asyncio.Task[None] | None = None

    def status(self, now: float, *, exceeded: bool = False) -> RateLimitStatus:
        reset_after = self.resets_at - now
        remaining = 0 if exceeded else max(0, self.limit - self.used - self.unreported)
        return RateLimitStatus(self.limit, remaining, min(max(reset_after, 0.0), WINDOW_SECONDS), exceeded)

    def report(self, subject: str, requested: int, returned: int) -> UsageReport:
        """The usage since the last report. It counts as reported at once, so that concurrent reports do not overlap."""
        report = UsageReport(subject, self.minute, self.limit, self.unreported, returned, requested)
        self.used += self.unreported
        self.unreported = 0
        self.remaining -= returned
        self.used_since_report = False
        return report

    def update(self, lease: Lease, requested_at: float, received_at: float) -> None:
        """Add a new lease. Requests may have used the old one since, or the next minute may have begun."""
        if lease.minute < self.minute and requested_at < self.requested_at:
            return
        if lease.minute != self.minute:
            self.remaining = self.unreported = self.used = 0
            self.expires_at, self.resets_at = 0, math.inf
        # A lease can overtake another one, and doesn't count what that one reports.
        self.minute, self.used = lease.minute, max(self.used, lease.used)
        self.remaining += lease.lease
        self.requested_at = requested_at
        # Each query bounds the end of the minute from both sides. The fastest one has the closest bounds.
        self.expires_at = max(self.expires_at, requested_at + lease.seconds)
        self.resets_at = min(self.resets_at, received_at + lease.seconds)


class LeasedRateLimiter:
    """The leases of one worker."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._states: OrderedDict[str, _LeaseState] = OrderedDict()

    async def hit(self, subject: str, limit: int) -> RateLimitStatus:
        """Count a request of a subject; raises the errors of the database."""
        state = self._get_state(subject, limit)
        state.used_since_report = True
        while True:
            now = time.monotonic()
            if now < state.expires_at:
                if state.remaining:
                    state.remaining -= 1
                    state.unreported += 1
                    return state.status(now)
                if now < state.rejecting_until:
                    return state.status(now, exceeded=True)
            await self._request_lease(subject, state)

    async def watch(self) -> None:
        """Report usage and return unused leases, until cancelled."""
        while True:
            try:
                # A dedicated connection: a busy pool must not delay the reports.
                async with self._db.dedicated_connection() as connection:
                    while True:
                        await asyncio.sleep(REPORT_INTERVAL)
                        await self._report_usage(connection)
            except Exception as error:
                if not is_unavailable(error):
                    log.exception("rate limit usage cannot be reported")
            await asyncio.sleep(REPORT_INTERVAL)

    def _get_state(self, subject: str, limit: int) -> _LeaseState:
        state = self._states.get(subject)
        if state is None:
            state = self._states[subject] = _LeaseState(limit)
            if len(self._states) > MAX_SUBJECTS:
                self._states.popitem(last=False)
        self._states.move_to_end(subject)  # a busy key must not be evicted by many addresses that appear once
        state.limit = limit
        return state

    async def _request_lease(self, subject: str, state: _LeaseState) -> None:
        """Request one lease for all requests that wait for it."""
        if state.pending_request is None:
            state.pending_request = asyncio.create_task(self._renew_lease(subject, state))
        await asyncio.shield(state.pending_request)

    async def _renew_lease(self, subject: str, state: _LeaseState) -> None:
        requested = max(1, state.limit // LEASE_DIVISOR)
        try:
            await self._exchange(self._db, {subject: state}, [state.report(subject, requested, 0)])
            state.used_since_report = True  # a report that comes before the waiting requests must not return the lease
        finally:
            # Not in a done callback: a request that comes before it would wait for the finished task in a busy loop.
            state.pending_request = None
        if not state.remaining:
            state.rejecting_until = time.monotonic() + EMPTY_LEASE_SECONDS

    async def _report_usage(self, connection: Executor) -> None:
        now = time.monotonic()
        due_states: dict[str, _LeaseState] = {}
        reports: list[UsageReport] = []
        for subject, state in list(self._states.items()):
            if state.pending_request is not None:
                continue
            if now >= state.expires_at + WINDOW_SECONDS:
                self._states.pop(subject, None)
            elif now < state.expires_at and (state.used_since_report or state.remaining):
                due_states[subject] = state
                # Subjects without requests since the last report return their lease.
                reports.append(state.report(subject, 0, 0 if state.used_since_report else state.remaining))
        if due_states:
            await self._exchange(connection, due_states, reports)

    async def _exchange(self, db: Executor, states: Mapping[str, _LeaseState], reports: Sequence[UsageReport]) -> None:
        """Send reports, and add the returned leases."""
        requested_at = time.monotonic()
        leases = await store.lease(db, reports)
        if len(leases) < len(reports):
            known = {lease.subject for lease in leases}
            new = [report for report in reports if report.subject not in known]
            await store.ensure_rows(db, [report.subject for report in new])
            leases += await store.lease(db, new)
        received_at = time.monotonic()
        for lease in leases:
            states[lease.subject].update(lease, requested_at, received_at)
