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

from plankeeper.database.client import Database, Queries, unavailable
from plankeeper.http.rate_limit import WINDOW, Standing
from plankeeper.rate_limits import store
from plankeeper.rate_limits.schemas import Grant, Report

log = logging.getLogger("plankeeper")

PERIOD = 0.5  # seconds between two reports
REFUSING = 0.1  # seconds for which an empty quota is believed to stay empty: another worker may give some back
LEASES = 60  # a lease is at most this part of the quota: a second's worth at an even pace
CAPACITY = 20_000  # subjects remembered by a worker

_LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(slots=True)
class _Share:
    """What a worker has of a subject's quota in the minute that ends at `ends`, on this process's clock."""

    quota: int
    minute: datetime = _LONG_AGO
    asked: float = 0  # when the newest answer was asked for
    ends: float = 0
    left: int = 0  # of the lease
    unreported: int = 0
    used: int = 0  # by all, when last told
    busy: bool = False  # used since the last report
    refusing_until: float = 0
    asking: asyncio.Task[None] | None = None

    def standing(self, now: float, *, refused: bool = False) -> Standing:
        seconds = self.ends - now
        left = 0 if refused else max(0, self.quota - self.used - self.unreported)
        return Standing(self.quota, left, min(max(seconds, 0.0), WINDOW), refused)

    def report(self, subject: str, wanted: int, returned: int) -> Report:
        """What to tell, from now on told: two reports that are on their way never say the same."""
        report = Report(subject, self.minute, self.quota, self.unreported, returned, wanted)
        self.used += self.unreported
        self.unreported = 0
        self.left -= returned
        self.busy = False
        return report

    def told(self, grant: Grant, asked: float) -> None:
        """Take in an answer; meanwhile requests may have used more of the lease, or the next minute have begun."""
        if grant.minute < self.minute and asked < self.asked:
            return
        if grant.minute != self.minute:
            self.left = self.unreported = 0
        self.minute, self.used = grant.minute, grant.used
        self.left += grant.lease
        self.asked = asked
        self.ends = asked + grant.seconds  # from before the question: rather too early than too late


class Limiter:
    """One worker's shares of quotas."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._shares: OrderedDict[str, _Share] = OrderedDict()

    async def take(self, subject: str, quota: int) -> Standing:
        """One request of a subject; raises what asking the database raises."""
        share = self._share(subject, quota)
        share.busy = True
        while True:
            now = time.monotonic()
            if now < share.ends:
                if share.left:
                    share.left -= 1
                    share.unreported += 1
                    return share.standing(now)
                if now < share.refusing_until:
                    return share.standing(now, refused=True)
            await self._ask(subject, share)

    async def watch(self) -> None:
        """Until cancelled: report what was used, and give back what is not needed."""
        while True:
            try:
                # A connection of its own: a busy pool must not make the figures old.
                async with self._db.session() as session:
                    while True:
                        await asyncio.sleep(PERIOD)
                        await self._report(session)
            except Exception as error:
                if not unavailable(error):
                    log.exception("the use of quotas cannot be reported")
            await asyncio.sleep(PERIOD)

    def _share(self, subject: str, quota: int) -> _Share:
        share = self._shares.get(subject)
        if share is None:
            share = self._shares[subject] = _Share(quota)
            if len(self._shares) > CAPACITY:
                self._shares.popitem(last=False)
        self._shares.move_to_end(subject)  # many addresses that come once must not push out a key that is busy
        share.quota = quota
        return share

    async def _ask(self, subject: str, share: _Share) -> None:
        """A lease, asked for once for all requests that wait for it."""
        if share.asking is None:
            share.asking = asyncio.create_task(self._lease(subject, share))
        await asyncio.shield(share.asking)

    async def _lease(self, subject: str, share: _Share) -> None:
        wanted = max(1, share.quota // LEASES)
        try:
            await self._settle(self._db, {subject: share}, [share.report(subject, wanted, 0)])
        finally:
            # Not by a callback when the task is done: who comes in between would wait for it without a pause.
            share.asking = None
        if not share.left:
            share.refusing_until = time.monotonic() + REFUSING

    async def _report(self, session: Queries) -> None:
        now = time.monotonic()
        due: dict[str, _Share] = {}
        reports: list[Report] = []
        for subject, share in list(self._shares.items()):
            if share.asking is not None:
                continue
            if now >= share.ends + WINDOW:
                self._shares.pop(subject, None)
            elif now < share.ends and (share.busy or share.left):
                due[subject] = share
                # Whoever was not seen since the last report gives back its lease.
                reports.append(share.report(subject, 0, 0 if share.busy else share.left))
        if due:
            await self._settle(session, due, reports)

    async def _settle(self, db: Queries, shares: Mapping[str, _Share], reports: Sequence[Report]) -> None:
        """Send reports, and take in the answers."""
        asked = time.monotonic()
        grants = await store.lease(db, reports)
        if len(grants) < len(reports):
            known = {grant.subject for grant in grants}
            new = [report for report in reports if report.subject not in known]
            await store.open_(db, [report.subject for report in new])
            grants += await store.lease(db, new)
        for grant in grants:
            shares[grant.subject].told(grant, asked)
