"""The sums of invoices that are kept: for how long, and what a change does to them."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from plankeeper.resources.invoices.statistics_cache import (
    DatedStatistics,
    InvoiceStatistics,
    StatisticsCache,
    StatisticsPeriods,
    compute_invoice_statistics,
)
from support.client import Client
from support.server import RunningServer, wait_until

Statistics = DatedStatistics[InvoiceStatistics]
Cache = StatisticsCache[StatisticsPeriods, InvoiceStatistics]
Read = Callable[..., Statistics]


@pytest.fixture
def api(new_client: Callable[..., Client], plan_manager_id: UUID) -> Client:
    return new_client(plan_manager_id)


@pytest.fixture
def import_invoice(api: Client, import_rows: Callable[..., Any]) -> Callable[[], None]:
    def import_one() -> None:
        row = {"id": str(uuid7()), "invoice_number": "INV-1", "total": 10, "claim_status": "on_hold"}
        assert not import_rows(api, "invoices", [row]).errors

    return import_one


@pytest.fixture
def read(server: RunningServer, plan_manager_id: UUID) -> Read:
    """The cached sums for everyone, received until some days from now."""

    def read_one(cache: Cache, days: int = 1) -> Statistics:
        now = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        end = now + timedelta(days=days)
        periods = StatisticsPeriods((), (now - timedelta(days=7), end), now - timedelta(days=7), end, now)
        return server.run(cache.get(server.db, plan_manager_id, None, periods))

    return read_one


def on_hold(statistics: Statistics) -> int:
    return sum(each.on_hold.count for each in statistics.sums.open)


def test_sums_are_kept_until_an_invoice_changes(read: Read, import_invoice: Callable[[], None]) -> None:
    cache = StatisticsCache(compute_invoice_statistics, many=100)
    import_invoice()
    first = read(cache)
    assert (on_hold(first), first.is_current) == (1, True)
    assert read(cache) is first
    import_invoice()
    assert on_hold(read(cache)) == 2


def test_sums_of_many_invoices_are_returned_once_more(read: Read, import_invoice: Callable[[], None]) -> None:
    cache = StatisticsCache(compute_invoice_statistics, many=1)
    import_invoice()
    first = read(cache)
    import_invoice()
    old = read(cache)
    assert old == first._replace(is_current=False)
    new = wait_until(lambda: (found := read(cache)).is_current and found)
    assert on_hold(new) == 2
    assert new.computed_at > first.computed_at


def test_sums_of_other_days_are_never_returned(read: Read, import_invoice: Callable[[], None]) -> None:
    cache = StatisticsCache(compute_invoice_statistics, many=1)
    import_invoice()
    first, other = read(cache), read(cache, days=2)
    assert other.is_current
    assert other.computed_at > first.computed_at


def test_sums_are_computed_again_after_some_time(read: Read) -> None:
    cache = StatisticsCache(compute_invoice_statistics, max_age=0, many=100)
    assert read(cache).computed_at < read(cache).computed_at


def test_only_the_latest_sums_are_kept(read: Read) -> None:
    cache = StatisticsCache(compute_invoice_statistics, max_entries=0)
    assert read(cache).computed_at < read(cache).computed_at
