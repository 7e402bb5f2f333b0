"""Keeps sums in memory while no invoice and no plan changes, because those of many records take longer than a page.

After a change, sums of many records are returned once more, and new ones are computed in the meantime.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Generic, NamedTuple, Protocol, TypeVar
from uuid import UUID

from plankeeper.database.client import Database
from plankeeper.resources.invoices import review_store, statistics_store
from plankeeper.resources.invoices.review_store import AssigneeCount
from plankeeper.resources.invoices.statistics_store import (
    InvoiceSummary,
    LastChange,
    OpenInvoices,
    PeriodStatusCount,
    ProviderTotal,
    WarningSummary,
)

# A transaction can commit after a later change was seen: its changes are shown after this time at the latest.
MAX_AGE = 60.0  # seconds
MANY = 20_000  # invoices, whose sums take about 50 ms. Those of fewer are computed again before a page is shown
MAX_OLD_AGE = 600.0  # seconds since sums were computed that are returned after a change
MAX_ENTRIES = 500


class StatisticsPeriods(NamedTuple):
    """The times that the sums refer to: the limits of ages, the beginnings of weeks and their end, the provider's, and
    the service standard's.
    """

    ages: Sequence[datetime]
    weeks: Sequence[datetime]
    spend_start: datetime
    spend_end: datetime
    late_before: datetime  # the receipt of invoices that are late if they aren't claimed


class InvoiceStatistics(NamedTuple):
    """All sums of invoices that the home page shows."""

    open: list[OpenInvoices]
    warnings: list[WarningSummary]
    on_hold_with_warnings: InvoiceSummary
    received: list[PeriodStatusCount]
    providers: list[ProviderTotal]
    late: InvoiceSummary
    waiting: list[AssigneeCount]  # everyone's, also for an account manager

    @property
    def is_empty(self) -> bool:
        """Whether no invoice is unpaid and none was received lately."""
        return not (self.open or self.received or self.providers)

    @property
    def read_count(self) -> int:
        """About how many invoices the sums were computed from."""
        return sum(each.count for each in self.open) + sum(each.count for each in self.received)


async def compute_invoice_statistics(
    db: Database, plan_manager_id: UUID, account_manager_id: UUID | None, periods: StatisticsPeriods
) -> InvoiceStatistics:
    """All sums of invoices, for everyone or for an account manager."""
    place = (db, plan_manager_id, account_manager_id)
    sums, (late, waiting) = await asyncio.gather(
        asyncio.gather(
            statistics_store.summarize_open(*place, periods.ages),
            statistics_store.summarize_warnings(*place),
            statistics_store.summarize_on_hold_with_warnings(*place),
            statistics_store.count_received(*place, periods.weeks),
            statistics_store.sum_by_provider(*place, periods.spend_start, periods.spend_end),
        ),
        asyncio.gather(
            statistics_store.summarize_late(*place, periods.late_before),
            review_store.count_by_assignee(db, plan_manager_id),
        ),
    )
    return InvoiceStatistics(*sums, late, waiting)


class Sums(Protocol):
    """The result of a computation. `read_count`: about how many records it was computed from."""

    @property
    def read_count(self) -> int: ...


P = TypeVar("P")
S = TypeVar("S", bound=Sums)


class DatedStatistics(NamedTuple, Generic[S]):
    """Sums, and when they were computed. `is_current`: nothing has changed since, as far as is known."""

    sums: S
    computed_at: datetime
    is_current: bool = True


class _State(NamedTuple, Generic[P]):
    """The inputs of the sums: equal states have the same sums."""

    last_change: LastChange
    periods: P


class _Entry(NamedTuple, Generic[P, S]):
    state: _State[P]
    started: float
    result: DatedStatistics[S]


_Key = tuple[UUID, UUID | None]


class StatisticsCache(Generic[P, S]):
    """The sums of the plan managers that were asked for last, for everyone or for an account manager.

    `compute` returns them for the days or times that they refer to. Sums of `many` records are returned once more, and
    not computed again within `min_age` seconds.
    """

    def __init__(
        self,
        compute: Callable[[Database, UUID, UUID | None, P], Awaitable[S]],
        max_age: float = MAX_AGE,
        many: int = MANY,
        max_entries: int = MAX_ENTRIES,
        min_age: float = 0,
    ) -> None:
        self._entries = OrderedDict[_Key, _Entry[P, S]]()
        self._computations = dict[tuple[_Key, _State[P]], asyncio.Task[DatedStatistics[S]]]()
        self._compute_sums, self._max_age, self._many, self._max_entries = compute, max_age, many, max_entries
        self._min_age = min_age

    async def get(
        self, db: Database, plan_manager_id: UUID, account_manager_id: UUID | None, periods: P
    ) -> DatedStatistics[S]:
        key = (plan_manager_id, account_manager_id)
        state = _State(await statistics_store.get_last_change(db, plan_manager_id), periods)
        entry, now = self._entries.get(key), time.monotonic()
        if entry and entry.state == state and now - entry.started < self._max_age:
            self._entries.move_to_end(key)
            return entry.result
        is_many = entry and entry.state.periods == periods and entry.result.sums.read_count >= self._many
        if entry and is_many and now - entry.started < self._min_age:
            return entry.result._replace(is_current=False)
        computation = self._start(db, key, state)
        if entry and is_many and now - entry.started < MAX_OLD_AGE:
            return entry.result._replace(is_current=False)
        return await asyncio.shield(computation)

    async def get_within(
        self, seconds: float, db: Database, plan_manager_id: UUID, account_manager_id: UUID | None, periods: P
    ) -> DatedStatistics[S] | None:
        """The same, or null if it takes longer; the computation goes on."""
        try:
            return await asyncio.wait_for(self.get(db, plan_manager_id, account_manager_id, periods), seconds)
        except TimeoutError:
            return None

    def _start(self, db: Database, key: _Key, state: _State[P]) -> "asyncio.Task[DatedStatistics[S]]":
        """The computation of the sums, which everyone who asks for them at the same time awaits."""
        name = (key, state)
        if name not in self._computations:
            task = asyncio.create_task(self._compute(db, key, state))
            self._computations[name] = task
            task.add_done_callback(lambda done: self._finish(name, done))
        return self._computations[name]

    def _finish(self, name: tuple[_Key, _State[P]], task: "asyncio.Task[DatedStatistics[S]]") -> None:
        del self._computations[name]
        if not task.cancelled():
            task.exception()  # those who await the task get it; without them, the next request computes the sums again

    async def _compute(self, db: Database, key: _Key, state: _State[P]) -> DatedStatistics[S]:
        started, computed_at = time.monotonic(), datetime.now(UTC)
        result = DatedStatistics(await self._compute_sums(db, *key, state.periods), computed_at)
        self._entries[key] = _Entry(state, started, result)
        self._entries.move_to_end(key)
        while len(self._entries) > self._max_entries:
            self._entries.popitem(last=False)
        return result
