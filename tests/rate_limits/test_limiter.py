"""Quotas are shared: never exceeded, nearly all of it usable by whoever asks, told truly."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
from uuid_utils.compat import uuid7

from plankeeper.database.client import Database
from plankeeper.embedded_postgres.cluster import Cluster
from plankeeper.http.rate_limit import RateLimitStatus
from plankeeper.rate_limits import limiter as limits
from plankeeper.rate_limits import store
from plankeeper.rate_limits.limiter import LeasedRateLimiter
from plankeeper.rate_limits.schemas import Lease, UsageReport

MINUTE = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
async def db(cluster: Cluster) -> AsyncIterator[Database]:
    async with Database(cluster.dsn, pool_size=8).open() as opened:
        yield opened


@pytest.fixture
async def whole_minute(db: Database) -> None:
    """A test that takes a few seconds must not run into the next minute."""
    left = await db.one(float, "select 60 - extract(second from clock_timestamp())::float8")
    if left < 15:
        await asyncio.sleep(left + 0.1)


def subject() -> str:
    return f"key:{uuid7()}"


async def taken(worker: LeasedRateLimiter, name: str, quota: int, times: int) -> list[RateLimitStatus]:
    return [await worker.hit(name, quota) for _ in range(times)]


def accepted(standings: list[RateLimitStatus]) -> int:
    return sum(not each.exceeded for each in standings)


async def reported(*workers: LeasedRateLimiter, db: Database) -> None:
    for worker in workers:
        await worker._report_usage(db)  # noqa: SLF001 - what `watch` does twice a second


@pytest.mark.usefixtures("whole_minute")
@pytest.mark.parametrize("quota", [1, 7, 60, 600, 5000])
async def test_one_worker_uses_the_whole_quota_and_no_more(db: Database, quota: int) -> None:
    standings = await taken(LeasedRateLimiter(db), subject(), quota, quota + 20)
    assert [each.exceeded for each in standings] == [False] * quota + [True] * 20
    assert [each.remaining for each in standings[:quota]] == list(range(quota - 1, -1, -1))
    assert all(0 < each.reset_after <= 60 for each in standings)


@pytest.mark.usefixtures("whole_minute")
@pytest.mark.parametrize("quota", [13, 600, 2000])
async def test_several_workers_at_once_never_exceed_it_and_waste_nothing(db: Database, quota: int) -> None:
    name, workers = subject(), [LeasedRateLimiter(db) for _ in range(4)]
    many = await asyncio.gather(*(taken(worker, name, quota, quota) for worker in workers for _ in range(3)))
    total = sum(accepted(each) for each in many)
    assert total <= quota
    # What the last worker to be asked may still hold goes to whoever asks next.
    for _ in range(10):
        await reported(*workers, db=db)
        await asyncio.sleep(limits.EMPTY_LEASE_SECONDS)
        total += sum([accepted(await taken(worker, name, quota, 20)) for worker in workers])
    assert total == quota


@pytest.mark.usefixtures("whole_minute")
async def test_what_a_silent_worker_holds_goes_to_the_others(db: Database) -> None:
    name, (silent, busy) = subject(), (LeasedRateLimiter(db), LeasedRateLimiter(db))
    assert accepted(await taken(silent, name, 600, 1)) == 1
    first = accepted(await taken(busy, name, 600, 700))
    assert 580 <= first < 599
    await reported(silent, db=db)  # it was busy since the last report
    await reported(silent, db=db)  # and now it was not
    await asyncio.sleep(limits.EMPTY_LEASE_SECONDS)
    assert first + accepted(await taken(busy, name, 600, 100)) == 599


@pytest.mark.usefixtures("whole_minute")
async def test_every_worker_knows_what_all_have_used(db: Database) -> None:
    name, (one, two) = subject(), (LeasedRateLimiter(db), LeasedRateLimiter(db))
    await taken(one, name, 1000, 300)
    await taken(two, name, 1000, 200)
    await reported(one, two, db=db)
    await reported(one, two, db=db)
    [standing] = await taken(one, name, 1000, 1)
    assert standing.remaining == 499
    [standing] = await taken(two, name, 1000, 1)
    assert standing.remaining in (498, 499)


@pytest.mark.usefixtures("whole_minute")
async def test_requests_wait_for_one_question_together(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    lease = store.lease

    async def counting(*given: Any) -> Any:
        asked.append(1)
        return await lease(*given)

    monkeypatch.setattr(store, "lease", counting)
    worker, name = LeasedRateLimiter(db), subject()
    standings = await asyncio.gather(*(worker.hit(name, 60_000) for _ in range(1000)))
    assert accepted(list(standings)) == 1000
    assert len(asked) <= 3  # the row is opened between the first two


async def test_leases_that_end_at_once_keep_no_worker_busy_for_ever(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As at the end of a minute: what is granted is over when it arrives, while requests keep coming."""
    asked: list[int] = []

    async def lease(_db: Any, reports: list[UsageReport]) -> list[Lease]:
        asked.append(1)
        over = len(asked) < 50
        return [Lease(each.subject, MINUTE, 0, 0 if over else each.requested, 0 if over else 30) for each in reports]

    monkeypatch.setattr(store, "lease", lease)
    worker, name, coming = LeasedRateLimiter(db), subject(), []
    for _ in range(300):
        coming.append(asyncio.create_task(worker.hit(name, 60_000)))
        await asyncio.sleep(0)
    assert accepted(await asyncio.gather(*coming)) == 300


@pytest.mark.usefixtures("whole_minute")
async def test_a_new_minute_is_a_new_quota(db: Database) -> None:
    name, worker = subject(), LeasedRateLimiter(db)
    await taken(worker, name, 10, 12)
    await db.execute("update rate_limits set minute = minute - interval '1 minute' where subject = $1", name)
    fresh = LeasedRateLimiter(db)
    assert accepted(await taken(fresh, name, 10, 12)) == 10


@pytest.mark.usefixtures("whole_minute")
async def test_a_clock_that_was_set_back_does_not_stop_a_quota(db: Database) -> None:
    name = subject()
    await taken(LeasedRateLimiter(db), name, 10, 12)
    await db.execute("update rate_limits set minute = minute + interval '1 hour' where subject = $1", name)
    [standing] = await taken(LeasedRateLimiter(db), name, 10, 1)
    assert not standing.exceeded
    assert standing.reset_after <= 60


async def test_a_late_report_of_an_earlier_minute_changes_nothing(db: Database) -> None:
    name = subject()
    await store.ensure_rows(db, [name])
    [now] = await store.lease(db, [UsageReport(name, limits._LONG_AGO, 100, 0, 0, 10)])  # noqa: SLF001
    [late] = await store.lease(db, [UsageReport(name, limits._LONG_AGO, 100, 50, 50, 0)])  # noqa: SLF001
    assert (now.used, now.lease) == (0, 10)
    assert (late.used, late.lease) == (0, 0)
    assert await db.one(int, "select granted from rate_limits where subject = $1", name) == 10


async def test_memory_is_bounded(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_SUBJECTS", 50)
    worker = LeasedRateLimiter(db)
    for _ in range(120):
        await worker.hit(subject(), 5)
    assert len(worker._states) == 50  # noqa: SLF001


async def test_who_comes_often_is_remembered_among_many_that_come_once(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_SUBJECTS", 20)
    worker, name = LeasedRateLimiter(db), subject()
    await worker.hit(name, 600)
    share = worker._states[name]  # noqa: SLF001
    for _ in range(6):
        for _ in range(10):
            await worker.hit(subject(), 5)
        await worker.hit(name, 600)
    assert worker._states[name] is share  # noqa: SLF001


async def test_a_share_that_is_just_being_asked_for_is_not_forgotten(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker, name, lease = LeasedRateLimiter(db), subject(), store.lease

    async def interrupted(_db: Database, reports: list[UsageReport]) -> list[Lease]:
        await reported(worker, db=db)
        return await lease(db, reports)

    monkeypatch.setattr(store, "lease", interrupted)
    await worker.hit(name, 600)
    assert name in worker._states  # noqa: SLF001


async def test_subjects_long_unseen_are_forgotten(db: Database) -> None:
    old, young = subject(), subject()
    await store.ensure_rows(db, [old, young])
    await db.execute("update rate_limits set minute = minute - interval '10 minutes' where subject = $1", old)
    await store.purge(db)
    assert await db.rows(str, "select subject from rate_limits where subject = any ($1)", [old, young]) == [young]
