"""Keeps the sums of invoices in memory while no invoice changes, because many invoices take longer than a page.

After a change, sums of many invoices are returned once more, and new ones are computed in the meantime.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

from plankeeper.database.client import Database
from plankeeper.resources.invoices import statistics_store
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
    """The times that the sums refer to: the limits of ages, the beginnings of weeks and their end, the provider's."""

    ages: Sequence[datetime]
    weeks: Sequence[datetime]
    spend_start: datetime
    spend_end: datetime


class InvoiceStatistics(NamedTuple):
    """All sums of invoices that the home page shows."""

    open: list[OpenInvoices]
    warnings: list[WarningSummary]
    on_hold_with_warnings: InvoiceSummary
    received: list[PeriodStatusCount]
    providers: list[ProviderTotal]

    @property
    def is_empty(self) -> bool:
        """Whether no invoice is unpaid and none was received lately."""
        return not (self.open or self.received or self.providers)

    @property
    def read_count(self) -> int:
        """About how many invoices the sums were computed from."""
        return sum(each.count for each in self.open) + sum(each.count for each in self.received)


class DatedStatistics(NamedTuple):
    """Sums, and when they were computed. `is_current`: no invoice has changed since, as far as is known."""

    sums: InvoiceStatistics
    computed_at: datetime
    is_current: bool = True


class _State(NamedTuple):
    """The inputs of the sums: equal states have the same sums."""

    last_change: LastChange
    periods: StatisticsPeriods


class _Entry(NamedTuple):
    state: _State
    started: float
    result: DatedStatistics


_Key = tuple[UUID, UUID | None]


class StatisticsCache:
    """The sums of the plan managers that were asked for last, for everyone or for an account manager."""

    def __init__(self, max_age: float = MAX_AGE, many: int = MANY, max_entries: int = MAX_ENTRIES) -> None:
        self._entries = OrderedDict[_Key, _Entry]()
        self._computations = dict[tuple[_Key, _State], asyncio.Task[DatedStatistics]]()
        self._max_age, self._many, self._max_entries = max_age, many, max_entries

    async def get(
        self, db: Database, plan_manager_id: UUID, account_manager_id: UUID | None, periods: StatisticsPeriods
    ) -> DatedStatistics:
        key = (plan_manager_id, account_manager_id)
        state = _State(await statistics_store.get_last_change(db, plan_manager_id), periods)
        entry, now = self._entries.get(key), time.monotonic()
        if entry and entry.state == state and now - entry.started < self._max_age:
            self._entries.move_to_end(key)
            return entry.result
        computation = self._start(db, key, state)
        if (
            entry
            and entry.state.periods == periods
            and entry.result.sums.read_count >= self._many
            and now - entry.started < MAX_OLD_AGE
        ):
            return entry.result._replace(is_current=False)
        return await asyncio.shield(computation)

    def _start(self, db: Database, key: _Key, state: _State) -> "asyncio.Task[DatedStatistics]":
        """The computation of the sums, which everyone who asks for them at the same time awaits."""
        name = (key, state)
        if name not in self._computations:
            task = asyncio.create_task(self._compute(db, key, state))
            self._computations[name] = task
            task.add_done_callback(lambda done: self._finish(name, done))
        return self._computations[name]

    def _finish(self, name: tuple[_Key, _State], task: "asyncio.Task[DatedStatistics]") -> None:
        del self._computations[name]
        if not task.cancelled():
            task.exception()  # those who await the task get it; without them, the next request computes the sums again

    async def _compute(self, db: Database, key: _Key, state: _State) -> DatedStatistics:
        started, periods = time.monotonic(), state.periods
        computed_at = datetime.now(UTC)
        sums = InvoiceStatistics(
            *await asyncio.gather(
                statistics_store.summarize_open(db, *key, periods.ages),
                statistics_store.summarize_warnings(db, *key),
                statistics_store.summarize_on_hold_with_warnings(db, *key),
                statistics_store.count_received(db, *key, periods.weeks),
                statistics_store.sum_by_provider(db, *key, periods.spend_start, periods.spend_end),
            )
        )
        result = DatedStatistics(sums, computed_at)
        self._entries[key] = _Entry(state, started, result)
        self._entries.move_to_end(key)
        while len(self._entries) > self._max_entries:
            self._entries.popitem(last=False)
        return result
