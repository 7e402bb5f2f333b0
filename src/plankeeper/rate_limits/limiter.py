"""A quota for all workers of all servers, without a question to the database for each request.

A worker takes a lease of so many requests, uses it up, and takes the next. Twice a second it reports what it has used,
and gives back what it does not need: so all know how much is left, and nothing lies idle while another refuses.
"""

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from plankeeper.database.client import Database, Executor, is_unavailable
from plankeeper.http.rate_limit import WINDOW_SECONDS, RateLimitStatus
from plankeeper.rate_limits import store
from plankeeper.rate_limits.schemas import Lease, UsageReport

log = logging.getLogger("plankeeper")

REPORT_INTERVAL = 0.5  # seconds between two reports
EMPTY_LEASE_SECONDS = (
    0.1  # seconds for which an empty quota is believed to stay empty: another worker may give some back
)
LEASE_DIVISOR = 60  # a lease is at most this part of the quota: a second's worth at an even pace
MAX_SUBJECTS = 20_000  # subjects remembered by a worker

_LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class _LeaseState:
    """What a worker has of a subject's quota in the minute that ends at `ends`, on this process's clock."""

    limit: int
    minute: datetime = _LONG_AGO
    requested_at: float = 0  # when the newest answer was asked for
    expires_at: float = 0
    remaining: int = 0  # of the lease
    unreported: int = 0
    used: int = 0  # by all, when last told
    used_since_report: bool = False  # used since the last report
    rejecting_until: float = 0
    pending_request: asyncio.Task[None] | None = None

    def status(self, now: float, *, exceeded: bool = False) -> RateLimitStatus:
        reset_after = self.expires_at - now
        remaining = 0 if exceeded else max(0, self.limit - self.used - self.unreported)
        return RateLimitStatus(self.limit, remaining, min(max(reset_after, 0.0), WINDOW_SECONDS), exceeded)

    def report(self, subject: str, requested: int, returned: int) -> UsageReport:
        """What to tell, from now on told: two reports that are on their way never say the same."""
        report = UsageReport(subject, self.minute, self.limit, self.unreported, returned, requested)
        self.used += self.unreported
        self.unreported = 0
        self.remaining -= returned
        self.used_since_report = False
        return report

    def update(self, lease: Lease, requested_at: float) -> None:
        """Take in an answer; meanwhile requests may have used more of the lease, or the next minute have begun."""
        if lease.minute < self.minute and requested_at < self.requested_at:
            return
        if lease.minute != self.minute:
            self.remaining = self.unreported = 0
        self.minute, self.used = lease.minute, lease.used
        self.remaining += lease.lease
        self.requested_at = requested_at
        self.expires_at = requested_at + lease.seconds  # from before the question: rather too early than too late


class LeasedRateLimiter:
    """One worker's shares of quotas."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._states: OrderedDict[str, _LeaseState] = OrderedDict()

    async def hit(self, subject: str, limit: int) -> RateLimitStatus:
        """One request of a subject; raises what asking the database raises."""
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
        """Until cancelled: report what was used, and give back what is not needed."""
        while True:
            try:
                # A connection of its own: a busy pool must not make the figures old.
                async with self._db.dedicated_connection() as session:
                    while True:
                        await asyncio.sleep(REPORT_INTERVAL)
                        await self._report_usage(session)
            except Exception as error:
                if not is_unavailable(error):
                    log.exception("the use of quotas cannot be reported")
            await asyncio.sleep(REPORT_INTERVAL)

    def _get_state(self, subject: str, limit: int) -> _LeaseState:
        state = self._states.get(subject)
        if state is None:
            state = self._states[subject] = _LeaseState(limit)
            if len(self._states) > MAX_SUBJECTS:
                self._states.popitem(last=False)
        self._states.move_to_end(subject)  # many addresses that come once must not push out a key that is busy
        state.limit = limit
        return state

    async def _request_lease(self, subject: str, state: _LeaseState) -> None:
        """A lease, asked for once for all requests that wait for it."""
        if state.pending_request is None:
            state.pending_request = asyncio.create_task(self._renew_lease(subject, state))
        await asyncio.shield(state.pending_request)

    async def _renew_lease(self, subject: str, state: _LeaseState) -> None:
        requested = max(1, state.limit // LEASE_DIVISOR)
        try:
            await self._exchange(self._db, {subject: state}, [state.report(subject, requested, 0)])
        finally:
            # Not by a callback when the task is done: who comes in between would wait for it without a pause.
            state.pending_request = None
        if not state.remaining:
            state.rejecting_until = time.monotonic() + EMPTY_LEASE_SECONDS

    async def _report_usage(self, session: Executor) -> None:
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
                # Whoever was not seen since the last report gives back its lease.
                reports.append(state.report(subject, 0, 0 if state.used_since_report else state.remaining))
        if due_states:
            await self._exchange(session, due_states, reports)

    async def _exchange(self, db: Executor, states: Mapping[str, _LeaseState], reports: Sequence[UsageReport]) -> None:
        """Send reports, and take in the answers."""
        requested_at = time.monotonic()
        leases = await store.lease(db, reports)
        if len(leases) < len(reports):
            known = {lease.subject for lease in leases}
            new = [report for report in reports if report.subject not in known]
            await store.ensure_rows(db, [report.subject for report in new])
            leases += await store.lease(db, new)
        for lease in leases:
            states[lease.subject].update(lease, requested_at)
