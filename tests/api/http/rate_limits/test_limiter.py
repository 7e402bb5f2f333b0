"""Servers share rate limits: never exceeded, almost fully usable, and reported correctly."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from msgspec import structs
from uuid_utils.compat import uuid7

from plankeeper.database.client import Database, Executor
from plankeeper.http.admission import RateLimitStatus
from plankeeper.http.rate_limits import limiter as limits
from plankeeper.http.rate_limits import store
from plankeeper.http.rate_limits.limiter import LeasedRateLimiter
from plankeeper.http.rate_limits.store import Lease, UsageReport
from support.cluster import SharedCluster
from support.quotas import hold_minute, minute_of

MINUTE = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
async def db(cluster: SharedCluster) -> AsyncIterator[Database]:
    async with Database(cluster.dsn, pool_size=8).open() as opened:
        yield opened


async def new_subject(db: Database) -> str:
    """A new subject, whose minute does not end during a test."""
    name = f"key:{uuid7()}"
    await hold_minute(db, name)
    return name


async def hit_times(worker: LeasedRateLimiter, name: str, limit: int, times: int) -> list[RateLimitStatus]:
    return [await worker.hit(name, limit) for _ in range(times)]


def accepted_count(standings: list[RateLimitStatus]) -> int:
    return sum(not each.exceeded for each in standings)


async def report_usage(*workers: LeasedRateLimiter, db: Database) -> None:
    for worker in workers:
        await worker._report_usage(db)  # noqa: SLF001 - what `watch` does twice a second


@pytest.mark.parametrize("limit", [1, 7, 60, 600, 5000])
async def test_one_worker_can_use_exactly_the_whole_limit(db: Database, limit: int) -> None:
    standings = await hit_times(LeasedRateLimiter(db), await new_subject(db), limit, limit + 20)
    assert [each.exceeded for each in standings] == [False] * limit + [True] * 20
    assert [each.remaining for each in standings[:limit]] == list(range(limit - 1, -1, -1))
    assert all(0 < each.reset_after <= 60 for each in standings)


@pytest.mark.parametrize("limit", [13, 600, 2000])
async def test_concurrent_workers_use_exactly_the_whole_limit(
    db: Database, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "EMPTY_LEASE_SECONDS", 0.01)
    name, workers = await new_subject(db), [LeasedRateLimiter(db) for _ in range(4)]
    many = await asyncio.gather(*(hit_times(worker, name, limit, limit) for worker in workers for _ in range(3)))
    total = sum(accepted_count(each) for each in many)
    assert total <= limit
    # What the last worker to be asked may still hold goes to whoever asks next.
    for _ in range(10):
        await report_usage(*workers, db=db)
        await asyncio.sleep(limits.EMPTY_LEASE_SECONDS)
        total += sum([accepted_count(await hit_times(worker, name, limit, 20)) for worker in workers])
    assert total == limit


async def test_unused_leases_of_an_idle_worker_go_to_the_others(db: Database) -> None:
    name, (silent, busy) = await new_subject(db), (LeasedRateLimiter(db), LeasedRateLimiter(db))
    assert accepted_count(await hit_times(silent, name, 600, 1)) == 1
    first = accepted_count(await hit_times(busy, name, 600, 700))
    assert 580 <= first < 599
    await report_usage(silent, db=db)  # it was busy since the last report
    await report_usage(silent, db=db)  # and now it was not
    await asyncio.sleep(limits.EMPTY_LEASE_SECONDS)
    assert first + accepted_count(await hit_times(busy, name, 600, 100)) == 599


async def test_a_report_does_not_return_a_lease_that_a_request_waits_for(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker, name = LeasedRateLimiter(db), await new_subject(db)
    renew = worker._renew_lease  # noqa: SLF001 - requests wait for it

    async def renew_and_report(*given: Any) -> None:
        await renew(*given)
        await report_usage(worker, db=db)

    monkeypatch.setattr(worker, "_renew_lease", renew_and_report)
    standings = await asyncio.wait_for(hit_times(worker, name, 2, 3), 30)
    assert [each.exceeded for each in standings] == [False, False, True]


async def test_an_overtaken_report_forgets_no_requests(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    worker, name = LeasedRateLimiter(db), await new_subject(db)
    exchange, is_reported, is_overtaken = store.lease, asyncio.Event(), asyncio.Event()

    async def delay_reports(db: Executor, reports: Sequence[UsageReport]) -> list[Lease]:
        leases = await exchange(db, reports)
        if not reports[0].requested:
            is_reported.set()
            await is_overtaken.wait()
        return leases

    monkeypatch.setattr(store, "lease", delay_reports)
    standings = await hit_times(worker, name, 600, 1)
    report = asyncio.create_task(report_usage(worker, db=db))
    await is_reported.wait()
    standings += await hit_times(worker, name, 600, 51)  # with new leases
    is_overtaken.set()
    await report
    standings += await hit_times(worker, name, 600, 1)
    assert [each.remaining for each in standings] == list(range(599, 546, -1))


async def test_every_worker_knows_the_total_usage(db: Database) -> None:
    name, (one, two) = await new_subject(db), (LeasedRateLimiter(db), LeasedRateLimiter(db))
    await hit_times(one, name, 1000, 300)
    await hit_times(two, name, 1000, 200)
    await report_usage(one, two, db=db)
    await report_usage(one, two, db=db)
    [standing] = await hit_times(one, name, 1000, 1)
    assert standing.remaining == 499
    [standing] = await hit_times(two, name, 1000, 1)
    assert standing.remaining in (498, 499)


async def test_the_minute_never_ends_later_than_reported(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    lease, ends = store.lease, list[float]()

    async def slow(*given: Any) -> list[Lease]:
        await asyncio.sleep(0.2)
        leases = await lease(*given)
        ends.append(time.monotonic() + 30)
        await asyncio.sleep(0.2)
        return [structs.replace(each, seconds=30.0) for each in leases]

    monkeypatch.setattr(store, "lease", slow)
    standing = await LeasedRateLimiter(db).hit(await new_subject(db), 600)
    assert time.monotonic() + standing.reset_after >= ends[-1]


async def test_concurrent_requests_share_one_lease_query(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    lease = store.lease

    async def counting(*given: Any) -> Any:
        asked.append(1)
        return await lease(*given)

    monkeypatch.setattr(store, "lease", counting)
    worker, name = LeasedRateLimiter(db), await new_subject(db)
    standings = await asyncio.gather(*(worker.hit(name, 60_000) for _ in range(1000)))
    assert accepted_count(list(standings)) == 1000
    assert len(asked) <= 3  # the row is opened between the first two


async def test_leases_that_expire_immediately_do_not_loop_forever(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As at the end of a minute: what is granted is over when it arrives, while requests keep coming."""
    asked: list[int] = []

    async def lease(_db: Any, reports: list[UsageReport]) -> list[Lease]:
        asked.append(1)
        over = len(asked) < 50
        return [Lease(each.subject, MINUTE, 0, 0 if over else each.requested, 0 if over else 30) for each in reports]

    monkeypatch.setattr(store, "lease", lease)
    worker, name, coming = LeasedRateLimiter(db), await new_subject(db), []
    for _ in range(300):
        coming.append(asyncio.create_task(worker.hit(name, 60_000)))
        await asyncio.sleep(0)
    assert accepted_count(await asyncio.gather(*coming)) == 300


async def test_a_minute_ends_within_a_minute(db: Database) -> None:
    [standing] = await hit_times(LeasedRateLimiter(db), f"key:{uuid7()}", 10, 1)
    assert 0 < standing.reset_after <= 60


@pytest.mark.parametrize(
    "moved", ["- interval '2 minutes'", "+ interval '1 hour'"], ids=["new minute", "clock set back"]
)
async def test_a_new_minute_is_a_new_quota_also_after_a_clock_was_set_back(db: Database, moved: str) -> None:
    for _ in range(5):
        name = await new_subject(db)
        assert accepted_count(await hit_times(LeasedRateLimiter(db), name, 10, 12)) == 10
        await db.execute(f"update rate_limits set minute = minute {moved} where subject = $1", name)
        before = await minute_of(db)
        standings = await hit_times(LeasedRateLimiter(db), name, 10, 12)
        if await minute_of(db) == before:
            break
    assert accepted_count(standings) == 10
    assert all(each.reset_after <= 60 for each in standings)


def test_the_rest_of_a_lease_is_not_used_in_the_next_minute() -> None:
    state = limits._LeaseState(600)  # noqa: SLF001
    for minutes in range(2):
        state.update(Lease("key", MINUTE + timedelta(minutes=minutes), 0, 10, 60.0), 60 * minutes, 60 * minutes)
    assert state.remaining == 10


async def test_a_late_report_for_an_earlier_minute_changes_nothing(db: Database) -> None:
    name = await new_subject(db)
    [now] = await store.lease(db, [UsageReport(name, limits._LONG_AGO, 100, 0, 0, 10)])  # noqa: SLF001
    [late] = await store.lease(db, [UsageReport(name, limits._LONG_AGO, 100, 50, 50, 0)])  # noqa: SLF001
    assert (now.used, now.lease) == (0, 10)
    assert (late.used, late.lease) == (0, 0)
    assert await db.one(int, "select granted from rate_limits where subject = $1", name) == 10


async def test_memory_is_bounded(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_SUBJECTS", 50)
    worker = LeasedRateLimiter(db)
    for _ in range(120):
        await worker.hit(await new_subject(db), 5)
    assert len(worker._states) == 50  # noqa: SLF001


async def test_frequent_subjects_are_kept_among_many_rare_ones(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_SUBJECTS", 20)
    worker, name = LeasedRateLimiter(db), await new_subject(db)
    await worker.hit(name, 600)
    share = worker._states[name]  # noqa: SLF001
    for _ in range(6):
        for _ in range(10):
            await worker.hit(await new_subject(db), 5)
        await worker.hit(name, 600)
    assert worker._states[name] is share  # noqa: SLF001


async def test_a_lease_being_requested_is_not_evicted(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    worker, name, lease = LeasedRateLimiter(db), await new_subject(db), store.lease

    async def interrupted(_db: Database, reports: list[UsageReport]) -> list[Lease]:
        await report_usage(worker, db=db)
        return await lease(db, reports)

    monkeypatch.setattr(store, "lease", interrupted)
    await worker.hit(name, 600)
    assert name in worker._states  # noqa: SLF001


async def test_idle_subjects_are_deleted(db: Database) -> None:
    old, young = await new_subject(db), await new_subject(db)
    await store.ensure_rows(db, [old, young])
    await db.execute("update rate_limits set minute = minute - interval '10 minutes' where subject = $1", old)
    await store.purge(db)
    assert await db.rows(str, "select subject from rate_limits where subject = any ($1)", [old, young]) == [young]
