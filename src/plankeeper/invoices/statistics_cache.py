"""Keeps the sums of invoices in memory while no invoice changes, because they take some of them longer than a page."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from plankeeper.database.client import Executor
from plankeeper.invoices import statistics_store
from plankeeper.invoices.statistics_store import (
    LastChange,
    OpenInvoices,
    PeriodStatusCount,
    ProviderTotal,
    WarningSummary,
)

# A transaction can commit after a later change was seen: its changes show after this time at the latest.
MAX_AGE = 60.0  # seconds
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
    received: list[PeriodStatusCount]
    providers: list[ProviderTotal]


class _Entry(NamedTuple):
    last_change: LastChange
    periods: StatisticsPeriods
    computed_at: float
    result: InvoiceStatistics


class StatisticsCache:
    """The sums of the plan managers that were asked for last, for everyone or for an account manager."""

    def __init__(self, max_age: float = MAX_AGE, max_entries: int = MAX_ENTRIES) -> None:
        self._entries = OrderedDict[tuple[UUID, UUID | None], _Entry]()
        self._max_age, self._max_entries = max_age, max_entries

    async def get(
        self, db: Executor, plan_manager_id: UUID, account_manager_id: UUID | None, periods: StatisticsPeriods
    ) -> InvoiceStatistics:
        key = (plan_manager_id, account_manager_id)
        last_change = await statistics_store.get_last_change(db, plan_manager_id)
        entry, now = self._entries.get(key), time.monotonic()
        if (
            entry
            and entry.last_change == last_change
            and entry.periods == periods
            and now - entry.computed_at < self._max_age
        ):
            self._entries.move_to_end(key)
            return entry.result
        result = InvoiceStatistics(
            *await asyncio.gather(
                statistics_store.summarize_open(db, *key, periods.ages),
                statistics_store.summarize_warnings(db, *key),
                statistics_store.count_received(db, *key, periods.weeks),
                statistics_store.sum_by_provider(db, *key, periods.spend_start, periods.spend_end),
            )
        )
        self._entries[key] = _Entry(last_change, periods, now, result)
        self._entries.move_to_end(key)
        while len(self._entries) > self._max_entries:
            self._entries.popitem(last=False)
        return result
