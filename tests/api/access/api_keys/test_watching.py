"""The last use of keys, and the warnings before they expire."""

import asyncio
import random
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from plankeeper.access.api_keys import service, store
from plankeeper.access.api_keys.cache import ApiKeyCache
from plankeeper.access.api_keys.format import new_key
from plankeeper.access.api_keys.schemas import ApiKey
from plankeeper.access.plan_managers import store as plan_managers
from plankeeper.access.tokens import hash_token
from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.core.encryption.cipher import create_key_file
from plankeeper.core.errors import DomainError
from plankeeper.core.settings import Settings
from plankeeper.database.client import Database
from support.client import Client
from support.cluster import SharedCluster, execute
from support.program import run_plankeeper
from support.server import RunningServer, wait_until

MINUTE = timedelta(minutes=1)


@pytest.fixture
def short_periods(monkeypatch: pytest.MonkeyPatch) -> None:
    """Caches report usage each time they poll, and poll often."""
    monkeypatch.setattr("plankeeper.access.api_keys.cache.POLL_INTERVAL", 0.02)
    monkeypatch.setattr("plankeeper.access.api_keys.cache.REPORT_INTERVAL", 0.0)


# No server sequences events: `plankeeper doctor` would wait for that.
DELETE_QUEUED = "delete from event_queue"
DELETE_KEYS = f"delete from api_key_plan_managers; delete from api_keys; {DELETE_QUEUED}; delete from events"


@pytest.fixture(scope="module")
def dsn(cluster: SharedCluster) -> str:
    """A database that no server watches."""
    return cluster.new_database()


@pytest.fixture
async def db(dsn: str) -> AsyncIterator[Database]:
    """That database, without keys."""
    async with Database(dsn, pool_size=8).open() as opened:
        execute(dsn, DELETE_KEYS)
        yield opened


@asynccontextmanager
async def running_cache(db: Database) -> AsyncGenerator[ApiKeyCache]:
    key_cache = ApiKeyCache(db)
    watching = asyncio.create_task(key_cache.watch())
    try:
        yield key_cache
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


async def create_plan_manager(db: Database) -> UUID:
    async with db.transaction() as tx:
        made = await plan_managers.insert(tx, uuid7(), "Watched")
        assert made
        return made.id


async def create_key(db: Database, *owners: UUID, lasts: timedelta | None = None) -> str:
    async with db.transaction() as tx:
        ctx = WriteContext(tx, owners[0], Settings.read({}), SYSTEM)
        return await service.create(ctx, "watched", owners, ["read"], lasts)


async def get_key(db: Database, key: str) -> ApiKey:
    api_key = await store.get_by_hash(db, hash_token(key))
    assert api_key
    return api_key


async def last_used(db: Database, key: str) -> datetime | None:
    return (await get_key(db, key)).last_used_at


async def wait_until_used(db: Database, key: str) -> datetime:
    async with asyncio.timeout(60):
        while not (moment := await last_used(db, key)):
            await asyncio.sleep(0.02)
    return moment


@pytest.mark.usefixtures("short_periods")
async def test_the_last_use_of_a_key_is_recorded_to_the_minute(db: Database) -> None:
    mine = await create_plan_manager(db)
    used, idle = [await create_key(db, mine) for _ in range(2)]
    async with running_cache(db) as key_cache:
        begun = datetime.now(UTC)
        await key_cache.authenticate(used)
        moment = await wait_until_used(db, used)
        assert (moment.second, moment.microsecond) == (0, 0)
        assert begun - MINUTE < moment <= datetime.now(UTC)
        assert await last_used(db, idle) is None


@pytest.mark.usefixtures("short_periods")
async def test_a_rejected_key_is_not_recorded_as_used(db: Database) -> None:
    mine = await create_plan_manager(db)
    good, revoked = [await create_key(db, mine) for _ in range(2)]
    async with db.transaction() as tx:
        await service.revoke(WriteContext(tx, mine, Settings.read({}), SYSTEM), (await get_key(db, revoked)).id)
    async with running_cache(db) as key_cache:
        for key in (revoked, new_key()):
            with suppress(DomainError):
                await key_cache.authenticate(key)
        await key_cache.authenticate(good)
        await wait_until_used(db, good)
    assert await last_used(db, revoked) is None


async def test_usage_is_reported_a_few_times_a_minute_and_not_with_every_request() -> None:
    from plankeeper.access.api_keys import cache

    assert 10 <= cache.REPORT_INTERVAL <= 20


async def test_an_older_report_that_arrives_late_changes_nothing(db: Database) -> None:
    key = await create_key(db, await create_plan_manager(db))
    ident = (await get_key(db, key)).id
    moment = datetime(2026, 7, 1, 12, 30, 40, tzinfo=UTC)
    to_the_minute = moment.replace(second=0)
    for each in (moment, moment - timedelta(hours=1), moment - timedelta(seconds=30)):
        await store.record_usage(db, [ident], [each])
        assert await last_used(db, key) == to_the_minute
    await store.record_usage(db, [ident], [moment + MINUTE])
    assert await last_used(db, key) == to_the_minute + MINUTE


async def test_concurrent_reports_of_the_same_keys_neither_deadlock_nor_go_backwards(db: Database) -> None:
    mine = await create_plan_manager(db)
    ids = [(await get_key(db, await create_key(db, mine))).id for _ in range(60)]
    begin = datetime(2026, 7, 1, tzinfo=UTC)
    chance = random.Random(4)

    async def worker(number: int) -> None:
        for round_ in range(25):
            order = chance.sample(ids, len(ids))
            await store.record_usage(db, order, [begin + MINUTE * (round_ + number)] * len(ids))

    async with asyncio.timeout(60):
        await asyncio.gather(*(worker(number) for number in range(8)))
    found = await db.rows(datetime, "select last_used_at from api_keys")
    assert found == [begin + MINUTE * (24 + 7)] * len(ids)


async def expiry_warnings(db: Database) -> list[tuple[UUID, str]]:
    """The warnings that were recorded: plan manager and key."""
    rows = await db.rows(
        str,
        "select plan_manager_id::text || ' ' || resource_id from events where type = 'api_key.expiring' order by 1",
    )
    return [(UUID(each.split()[0]), each.split()[1]) for each in rows]


async def test_an_expiring_key_is_reported_once_for_each_of_its_plan_managers(db: Database) -> None:
    owners = sorted([await create_plan_manager(db), await create_plan_manager(db)])
    key = await get_key(db, await create_key(db, *owners, lasts=timedelta(days=13)))
    for _ in range(3):
        await service.record_expiry_warnings(db, Settings.read({}))
        assert await expiry_warnings(db) == [(each, str(key.id)) for each in owners]


async def test_keys_that_are_not_expiring_or_expired_or_revoked_are_not_reported(db: Database) -> None:
    mine = await create_plan_manager(db)
    for lasts in (None, timedelta(days=15), timedelta(seconds=-1)):
        await create_key(db, mine, lasts=lasts)
    revoked = await create_key(db, mine, lasts=timedelta(days=1))
    async with db.transaction() as tx:
        await service.revoke(WriteContext(tx, mine, Settings.read({}), SYSTEM), (await get_key(db, revoked)).id)
    soon = await get_key(db, await create_key(db, mine, lasts=timedelta(days=1)))
    await service.record_expiry_warnings(db, Settings.read({}))
    assert await expiry_warnings(db) == [(mine, str(soon.id))]


async def test_concurrent_servers_report_each_key_once(db: Database) -> None:
    mine = await create_plan_manager(db)
    keys = [await get_key(db, await create_key(db, mine, lasts=timedelta(hours=1))) for _ in range(20)]
    await asyncio.gather(*(service.record_expiry_warnings(db, Settings.read({})) for _ in range(6)))
    assert await expiry_warnings(db) == sorted((mine, str(each.id)) for each in keys)


async def test_a_key_locked_by_another_server_is_skipped(db: Database) -> None:
    mine = await create_plan_manager(db)
    key = await get_key(db, await create_key(db, mine, lasts=timedelta(hours=1)))
    async with db.transaction() as beside:
        assert await store.select_unwarned_for_update(beside, datetime.now(UTC) + timedelta(days=1), 100)
        async with asyncio.timeout(60):
            await service.record_expiry_warnings(db, Settings.read({}))
        assert await expiry_warnings(db) == []
    await service.record_expiry_warnings(db, Settings.read({}))
    assert await expiry_warnings(db) == [(mine, str(key.id))]


async def test_more_keys_than_one_batch_are_all_reported(db: Database) -> None:
    mine = await create_plan_manager(db)
    for _ in range(105):
        await create_key(db, mine, lasts=timedelta(hours=1))
    for _ in range(2):
        await service.record_expiry_warnings(db, Settings.read({}))
    assert len(await expiry_warnings(db)) == 105


def test_a_running_server_reports_expiring_keys(
    api: Client, new_key: Callable[..., str], server: RunningServer
) -> None:
    soon = new_key(UUID(api.plan_manager_id), lasts=timedelta(days=1))
    ident = str(server.run(get_key(server.db, soon)).id)
    feed = wait_until(lambda: api.get("/events", type="api_key.expiring").json()["data"])
    [event] = feed
    assert event["resource"] == {"kind": "api_key", "id": ident}
    assert (event["actor"]["kind"], event["previous"]) == ("system", None)
    assert event["data"]["last_four"] == soon[-4:]
    assert soon not in str(event)


@pytest.fixture
def run_doctor(dsn: str, tmp_path: Path) -> Callable[[], list[str]]:
    """The lines of `plankeeper doctor`, without those about the release of Python and the documents; no check fails."""
    key_file = tmp_path / "secret.key"
    create_key_file(key_file)

    def run() -> list[str]:
        done = run_plankeeper("doctor", PLANKEEPER_DATABASE_URL=dsn, PLANKEEPER_SECRET_KEY_FILE=str(key_file))
        assert done.returncode == 0, done
        others = ("warn  Python", "warn  PLANKEEPER_DOCUMENTS_URL")
        return [line for line in done.stdout.splitlines() if not line.startswith(others)]

    return run


def test_doctor_warns_about_expiring_keys_and_succeeds(dsn: str, run_doctor: Callable[[], list[str]]) -> None:
    async def delete_keys() -> None:
        execute(dsn, DELETE_KEYS)

    async def create_keys() -> ApiKey:
        async with Database(dsn).open() as db:
            mine = await create_plan_manager(db)
            await create_key(db, mine, lasts=timedelta(days=30))
            soon = await get_key(db, await create_key(db, mine, lasts=timedelta(days=2)))
            await db.execute(DELETE_QUEUED)
            return soon

    async def record_warnings() -> None:
        async with Database(dsn).open() as db:
            await service.record_expiry_warnings(db, Settings.read({}))
            await db.execute(DELETE_QUEUED)

    asyncio.run(delete_keys())
    assert not [line for line in run_doctor() if not line.startswith("ok")]
    soon = asyncio.run(create_keys())
    assert soon.expires_at
    [warning] = [line for line in run_doctor() if not line.startswith("ok")]
    assert warning == (
        f"warn  key {soon.id} (…{soon.last_four}, watched) expires at {soon.expires_at:%Y-%m-%dT%H:%M:%SZ}:"
        " run `plankeeper keys rotate`"
    )
    # With or without an event: it stays in the list until it has ended.
    asyncio.run(record_warnings())
    assert warning in run_doctor()
