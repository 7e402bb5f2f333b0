"""Keys are recognised without a query a request, and what could not be confirmed is not used."""

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing
from datetime import timedelta
from pathlib import Path
from typing import LiteralString, TypeVar
from uuid import UUID

import httpx
import pytest
from uuid_utils.compat import uuid7

from plankeeper.api_keys import service, store
from plankeeper.api_keys.cache import ApiKeyCache
from plankeeper.api_keys.format import hash_key, new_key
from plankeeper.api_keys.schemas import ApiKey
from plankeeper.database import schema
from plankeeper.database.client import Database, Executor
from plankeeper.embedded_postgres.cluster import Cluster
from plankeeper.http.context import SYSTEM, WriteContext
from plankeeper.http.errors import ApiError
from plankeeper.plan_managers import store as plan_managers
from support.client import Client
from support.folder import open_folder
from support.server import RunningServer, wait_until

T = TypeVar("T")


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keyrings ask more often, so that the tests need not wait."""
    monkeypatch.setattr("plankeeper.api_keys.cache.POLL_INTERVAL", 0.02)


class Watched(Database):
    """The real database; it counts look-ups, holds one back after it was answered, and tells of each confirmation."""

    def __init__(self, dsn: str) -> None:
        super().__init__(dsn)
        self.look_ups = 0
        self.read = asyncio.Event()
        self.go_on = asyncio.Event()
        self.go_on.set()
        self.confirmations = asyncio.Semaphore(0)
        self.answering = asyncio.Event()
        self.answering.set()

    async def one_or_none(self, shape: type[T], statement: LiteralString, *values: object) -> T | None:
        found = await super().one_or_none(shape, statement, *values)
        if shape is ApiKey:
            self.look_ups += 1
            self.read.set()
            await self.go_on.wait()
        return found

    @asynccontextmanager
    async def dedicated_connection(self) -> AsyncGenerator[Executor]:
        async with super().dedicated_connection() as queries:
            watched = self

            class Session(Executor):
                async def one_or_none(self, shape: type[T], statement: LiteralString, *values: object) -> T | None:
                    watched.confirmations.release()
                    await watched.answering.wait()
                    return await queries.one_or_none(shape, statement, *values)

            yield Session(None)

    async def confirmed(self) -> None:
        """A question for the version that was asked from now on has been answered, and the answer used."""
        while not self.confirmations.locked():
            await self.confirmations.acquire()
        # The second begins after the first was dealt with, which began after now.
        for _ in range(2):
            await asyncio.wait_for(self.confirmations.acquire(), 10)


@pytest.fixture
async def db(server: RunningServer) -> AsyncIterator[Watched]:
    watched = Watched(server.dsn)
    async with watched.open():
        yield watched


@asynccontextmanager
async def keyring_on(db: Database) -> AsyncGenerator[ApiKeyCache]:
    keyring = ApiKeyCache(db)
    watching = asyncio.create_task(keyring.watch())
    try:
        yield keyring
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


async def revoke(db: Database, server: RunningServer, plan_manager_id: str, key: str) -> None:
    async with db.transaction() as tx:
        kept = await store.get_by_hash(tx, hash_key(key))
        assert kept
        await service.revoke(WriteContext(tx, UUID(plan_manager_id), server.settings, SYSTEM), kept.id)


async def refusal_of(keyring: ApiKeyCache, key: str) -> str | None:
    """The code that a key is refused with; null where it is taken."""
    try:
        await keyring.authenticate(key)
    except ApiError as refusal:
        return refusal.code
    return None


async def test_junk_is_refused_without_a_query() -> None:
    keyring = ApiKeyCache(Database("postgresql://nowhere.invalid"))  # never opened: a query would fail
    key = new_key()
    for junk in ("", "junk", key[:-1], key + "0", key[:-1] + ("0" if key[-1] != "0" else "1"), "plk_" + "0" * 38):
        assert await refusal_of(keyring, junk) == "invalid_api_key"
    with pytest.raises(AttributeError):
        await keyring.authenticate(key)


async def test_a_confirmed_key_costs_one_look_up(db: Watched, api: Client) -> None:
    async with keyring_on(db) as keyring:
        await db.confirmed()
        grants = [await keyring.authenticate(api.key) for _ in range(50)]
    assert db.look_ups == 1
    assert grants == grants[:1] * 50
    assert grants[0].plan_managers == {api.plan_manager_id.encode(): UUID(api.plan_manager_id)}
    assert grants[0].scopes == {"read", "write"}
    assert (grants[0].actor.kind, grants[0].actor.name) == ("api_key", "test")


async def test_a_key_that_nobody_confirms_is_looked_up_each_time(
    db: Watched, server: RunningServer, api: Client
) -> None:
    keyring = ApiKeyCache(db)
    assert [await refusal_of(keyring, api.key) for _ in range(3)] == [None] * 3
    assert db.look_ups == 3
    await revoke(db, server, api.plan_manager_id, api.key)
    with pytest.raises(ApiError) as refused:
        await keyring.authenticate(api.key)
    assert (refused.value.code, refused.value.status) == ("invalid_api_key", 401)
    assert refused.value.headers == {"www-authenticate": "Bearer"}


async def test_a_key_is_looked_up_again_when_the_database_does_not_say_whether_it_is_still_good(
    db: Watched, api: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plankeeper.api_keys.cache.CACHE_TTL", 0.2)
    async with keyring_on(db) as keyring:
        await db.confirmed()
        assert await refusal_of(keyring, api.key) is None
        db.answering.clear()
        async with asyncio.timeout(10):
            while db.look_ups < 5:
                assert await refusal_of(keyring, api.key) is None
        db.answering.set()
        await db.confirmed()
        assert await refusal_of(keyring, api.key) is None
        before = db.look_ups
        assert await refusal_of(keyring, api.key) is None
    assert db.look_ups == before


async def test_an_unknown_key_is_refused_and_not_remembered(db: Watched, api: Client) -> None:
    async with keyring_on(db) as keyring:
        await db.confirmed()
        unknown = new_key()
        assert [await refusal_of(keyring, unknown) for _ in range(2)] == ["invalid_api_key"] * 2
    assert db.look_ups == 2


async def test_a_look_up_in_flight_while_a_revocation_is_noticed_is_not_remembered(
    db: Watched, server: RunningServer, api: Client
) -> None:
    async with keyring_on(db) as keyring:
        await db.confirmed()
        db.go_on.clear()
        asking = asyncio.create_task(keyring.authenticate(api.key))
        await asyncio.wait_for(db.read.wait(), 10)
        async with Database(server.dsn).open() as beside:
            await revoke(beside, server, api.plan_manager_id, api.key)
        await db.confirmed()
        db.go_on.set()
        # It was asked while the key was good. What it learnt then must not be used again.
        assert (await asking).scopes == {"read", "write"}
        assert await refusal_of(keyring, api.key) == "invalid_api_key"
    assert db.look_ups == 2


async def test_a_revocation_that_is_noticed_makes_the_keyring_forget(
    db: Watched, server: RunningServer, api: Client
) -> None:
    async with keyring_on(db) as keyring:
        await db.confirmed()
        assert await refusal_of(keyring, api.key) is None
        await revoke(db, server, api.plan_manager_id, api.key)
        await db.confirmed()
        assert await refusal_of(keyring, api.key) == "invalid_api_key"


async def test_an_expired_key_is_refused_from_memory_too(db: Watched, api: Client, new_key: Callable[..., str]) -> None:
    lasting = new_key(UUID(api.plan_manager_id), lasts=timedelta(seconds=1))
    async with keyring_on(db) as keyring:
        await db.confirmed()
        codes: list[str | None] = [await refusal_of(keyring, lasting)]
        async with asyncio.timeout(10):
            while codes[-1] is None:
                await asyncio.sleep(0.02)
                codes.append(await refusal_of(keyring, lasting))
    assert codes == [None] * (len(codes) - 1) + ["expired_api_key"]
    assert db.look_ups == 1


@pytest.fixture
def second_server(server: RunningServer) -> Iterator[RunningServer]:
    running = RunningServer(server.dsn).start()
    yield running
    running.stop()


def test_a_revoked_key_is_refused_by_every_server(
    server: RunningServer, second_server: RunningServer, api: Client
) -> None:
    beside = Client(second_server.url, api.key, api.plan_manager_id)
    with closing(beside.http):
        assert [each.get("/note-types").status_code for each in (api, beside)] == [200, 200]
        server.run(revoke(server.db, server, api.plan_manager_id, api.key))
        for each in (api, beside):
            wait_until(lambda each=each: each.get("/note-types").status_code == 401)
            assert each.get("/note-types").json()["error"] == "invalid_api_key"


def test_a_plan_manager_that_is_taken_from_a_key_is_refused_by_every_server(
    server: RunningServer, second_server: RunningServer, api: Client
) -> None:
    async def take() -> None:
        async with server.db.transaction() as tx:
            await tx.execute("delete from api_key_plan_managers where plan_manager_id = $1", api.plan_manager_id)
            await store.bump_version(tx)

    beside = Client(second_server.url, api.key, api.plan_manager_id)
    with closing(beside.http):
        assert [each.get("/note-types").status_code for each in (api, beside)] == [200, 200]
        server.run(take())
        for each in (api, beside):
            wait_until(lambda each=each: each.get("/note-types").status_code == 403)
            assert each.get("/note-types").json()["error"] == "plan_manager_not_allowed"


class Alone:
    """A server with a cluster of its own, which can be stopped and started."""

    def __init__(self, folder: Path) -> None:
        self.cluster = Cluster(folder)
        self.cluster.ensure()
        schema.migrate(self.cluster.dsn)
        self.server = RunningServer(self.cluster.dsn).start()
        self.client = self.server.run(self._client())

    async def _client(self) -> Client:
        async with self.server.db.transaction() as tx:
            made = await plan_managers.insert(tx, uuid7(), "Alone")
            assert made
            call = WriteContext(tx, made.id, self.server.settings, SYSTEM)
            key = await service.create(call, "test", [made.id], ["read", "write"], None)
        return Client(self.server.url, key, made.id)

    def stop(self) -> None:
        self.client.http.close()
        self.server.stop()
        self.cluster.stop()


@pytest.fixture
def alone() -> Iterator[Alone]:
    with open_folder() as folder:
        made = Alone(folder)
        yield made
        made.stop()


def hammering(alone: Alone, done: threading.Event) -> list[httpx.Response]:
    """Reads and writes, one after the other, until it is done."""
    answers: list[httpx.Response] = []
    beside = Client(alone.server.url, alone.client.key, alone.client.plan_manager_id)
    with closing(beside.http):
        while not done.is_set():
            answers += [beside.get("/error-catalogue"), beside.get("/providers"), beside.post("/providers", {})]
    return answers


def test_while_the_database_is_away_keys_are_not_used_and_service_comes_back_with_it(alone: Alone) -> None:
    def catalogue() -> httpx.Response:
        return alone.client.get("/error-catalogue")  # answered without the database, but for the key

    assert catalogue().status_code == 200
    done = threading.Event()
    with ThreadPoolExecutor(4) as pool:
        hammers = [pool.submit(hammering, alone, done) for _ in range(4)]
        try:
            wait_until(lambda: alone.client.get("/providers").json()["pagination"]["total"] > 8)
            alone.cluster.stop()
            refused = wait_until(lambda: answer if (answer := catalogue()).status_code == 503 else None)
            assert refused.json()["error"] == "service_unavailable"
            assert refused.headers["retry-after"] == "1"
            assert [catalogue().status_code for _ in range(5)] == [503] * 5
            assert alone.client.http.get("/readyz").status_code == 503
            assert alone.client.http.get("/healthz").status_code == 200
            alone.cluster.ensure()
            wait_until(lambda: catalogue().status_code == 200, 15)
            wait_until(lambda: alone.client.post("/providers", {}).status_code == 200, 15)
        finally:
            done.set()
    answers = [answer for hammer in hammers for answer in hammer.result()]
    assert {answer.status_code for answer in answers} == {200, 503}
    written = {answer.json()["id"] for answer in answers if answer.request.method == "POST" and answer.is_success}
    kept = alone.server.run(alone.server.db.rows(UUID, "select id from providers"))
    assert written <= {str(ident) for ident in kept}
    wait_until(lambda: alone.client.get("/events", type="provider.created").json()["data"])


def test_a_junk_key_is_refused_as_such_even_while_the_database_is_away(alone: Alone) -> None:
    alone.cluster.stop()
    key = alone.client.key
    junk = key[:-1] + ("0" if key[-1] != "0" else "1")
    answer = alone.client.request("GET", "/providers", headers={"Authorization": f"Bearer {junk}"})
    assert (answer.status_code, answer.json()["error"]) == (401, "invalid_api_key")
    wait_until(lambda: alone.client.get("/error-catalogue").status_code == 503)
