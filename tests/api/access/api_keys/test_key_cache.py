"""Keys are recognised without a query a request, and what could not be confirmed is not used."""

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing
from datetime import timedelta
from typing import Any, LiteralString, TypeVar
from uuid import UUID

import httpx
import pytest

from plankeeper.access.api_keys import service, store
from plankeeper.access.api_keys.cache import ApiKeyCache
from plankeeper.access.api_keys.format import new_key
from plankeeper.access.api_keys.schemas import ApiKey
from plankeeper.access.tokens import hash_token
from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.core.errors import DomainError
from plankeeper.database.client import Database, Executor
from plankeeper.database.unavailability import SENTENCES, retry_advice
from support.client import Client
from support.cluster import SharedCluster
from support.factories import create_client
from support.outage import StoppableDatabase, stoppable_database
from support.resources import assert_changed
from support.server import RunningServer, wait_until

T = TypeVar("T")


@pytest.fixture(autouse=True)
def short_periods(monkeypatch: pytest.MonkeyPatch) -> None:
    """Caches poll more often, so that the tests needn't wait."""
    monkeypatch.setattr("plankeeper.access.api_keys.cache.POLL_INTERVAL", 0.02)


class InstrumentedDatabase(Database):
    """The real database, which counts look-ups, delays one result, and reports each revalidation."""

    def __init__(self, dsn: str) -> None:
        super().__init__(dsn)
        self.lookups = 0
        self.lookup_done = asyncio.Event()
        self.lookup_released = asyncio.Event()
        self.lookup_released.set()
        self.confirmations = asyncio.Semaphore(0)
        self.responding = asyncio.Event()
        self.responding.set()

    async def one_or_none(self, shape: type[T], statement: LiteralString, *values: object) -> T | None:
        row = await super().one_or_none(shape, statement, *values)
        if shape is ApiKey:
            self.lookups += 1
            self.lookup_done.set()
            await self.lookup_released.wait()
        return row

    @asynccontextmanager
    async def dedicated_connection(self) -> AsyncGenerator[Executor]:
        async with super().dedicated_connection() as queries:
            watched = self

            class Session(Executor):
                async def one_or_none(self, shape: type[T], statement: LiteralString, *values: object) -> T | None:
                    watched.confirmations.release()
                    await watched.responding.wait()
                    return await queries.one_or_none(shape, statement, *values)

            yield Session(None)

    async def confirmed(self) -> None:
        """Wait until a query of the version that starts from now on has returned, and its result was used."""
        while not self.confirmations.locked():
            await self.confirmations.acquire()
        # The second begins after the first was dealt with, which began after now.
        for _ in range(2):
            await asyncio.wait_for(self.confirmations.acquire(), 10)


@pytest.fixture
async def db(server: RunningServer) -> AsyncIterator[InstrumentedDatabase]:
    watched = InstrumentedDatabase(server.dsn)
    async with watched.open():
        yield watched


@asynccontextmanager
async def running_cache(db: Database) -> AsyncGenerator[ApiKeyCache]:
    cache = ApiKeyCache(db)
    watching = asyncio.create_task(cache.watch())
    try:
        yield cache
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


async def revoke(db: Database, server: RunningServer, plan_manager_id: str, key: str) -> None:
    async with db.transaction() as tx:
        api_key = await store.get_by_hash(tx, hash_token(key))
        assert api_key
        await service.revoke(WriteContext(tx, UUID(plan_manager_id), server.settings, SYSTEM), api_key.id)


async def error_code(cache: ApiKeyCache, key: str) -> str | None:
    """The error code with which a key is rejected; null if it is accepted."""
    try:
        await cache.authenticate(key)
    except DomainError as refusal:
        return refusal.code
    return None


async def test_a_malformed_key_is_rejected_without_a_query() -> None:
    cache = ApiKeyCache(Database("postgresql://nowhere.invalid"))  # never opened: a query would fail
    key = new_key()
    for junk in ("", "junk", key[:-1], key + "0", key[:-1] + ("0" if key[-1] != "0" else "1"), "plk_" + "0" * 38):
        assert await error_code(cache, junk) == "invalid_api_key"
    with pytest.raises(AttributeError):
        await cache.authenticate(key)


async def test_a_confirmed_key_takes_one_lookup(db: InstrumentedDatabase, api: Client) -> None:
    async with running_cache(db) as cache:
        await db.confirmed()
        grants = [await cache.authenticate(api.key) for _ in range(50)]
    assert db.lookups == 1
    assert grants == grants[:1] * 50
    assert grants[0].plan_managers == {api.plan_manager_id.encode(): UUID(api.plan_manager_id)}
    assert grants[0].scopes == {"read", "write", "claims", "payments"}
    assert (grants[0].actor.kind, grants[0].actor.name) == ("api_key", "test")


async def test_an_unconfirmed_key_is_looked_up_every_time(
    db: InstrumentedDatabase, server: RunningServer, api: Client
) -> None:
    cache = ApiKeyCache(db)
    assert [await error_code(cache, api.key) for _ in range(3)] == [None] * 3
    assert db.lookups == 3
    await revoke(db, server, api.plan_manager_id, api.key)
    with pytest.raises(DomainError) as rejection:
        await cache.authenticate(api.key)
    assert (rejection.value.code, rejection.value.status) == ("invalid_api_key", 401)


async def test_a_key_is_looked_up_again_when_the_database_does_not_confirm_it(
    db: InstrumentedDatabase, api: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plankeeper.access.api_keys.cache.CACHE_TTL", 2.0)
    async with running_cache(db) as cache:
        await db.confirmed()
        assert await error_code(cache, api.key) is None
        db.responding.clear()
        async with asyncio.timeout(60):
            while db.lookups < 5:
                assert await error_code(cache, api.key) is None
        db.responding.set()
        await db.confirmed()
        assert await error_code(cache, api.key) is None
        before = db.lookups
        assert await error_code(cache, api.key) is None
    assert db.lookups == before


async def test_an_unknown_key_is_rejected_and_not_cached(db: InstrumentedDatabase, api: Client) -> None:
    async with running_cache(db) as cache:
        await db.confirmed()
        unknown = new_key()
        assert [await error_code(cache, unknown) for _ in range(2)] == ["invalid_api_key"] * 2
    assert db.lookups == 2


async def test_a_lookup_in_flight_during_a_revocation_is_not_cached(
    db: InstrumentedDatabase, server: RunningServer, api: Client
) -> None:
    async with running_cache(db) as cache:
        await db.confirmed()
        db.lookup_released.clear()
        asking = asyncio.create_task(cache.authenticate(api.key))
        await asyncio.wait_for(db.lookup_done.wait(), 10)
        async with Database(server.dsn).open() as beside:
            await revoke(beside, server, api.plan_manager_id, api.key)
        await db.confirmed()
        db.lookup_released.set()
        # It was asked while the key was good. What it learnt then must not be used again.
        assert (await asking).scopes == {"read", "write", "claims", "payments"}
        assert await error_code(cache, api.key) == "invalid_api_key"
    assert db.lookups == 2


async def test_a_revocation_clears_the_cache(db: InstrumentedDatabase, server: RunningServer, api: Client) -> None:
    async with running_cache(db) as cache:
        await db.confirmed()
        assert await error_code(cache, api.key) is None
        await revoke(db, server, api.plan_manager_id, api.key)
        await db.confirmed()
        assert await error_code(cache, api.key) == "invalid_api_key"


async def test_an_expired_key_is_rejected_from_the_cache_too(
    db: InstrumentedDatabase, api: Client, new_key: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plankeeper.access.api_keys.cache.CACHE_TTL", 60.0)
    lasting = new_key(UUID(api.plan_manager_id), lasts=timedelta(seconds=5))
    async with running_cache(db) as cache:
        await db.confirmed()
        codes: list[str | None] = [await error_code(cache, lasting)]
        async with asyncio.timeout(60):
            while codes[-1] is None:
                await asyncio.sleep(0.02)
                codes.append(await error_code(cache, lasting))
    assert codes[0] is None
    assert codes == [None] * (len(codes) - 1) + ["expired_api_key"]
    assert db.lookups == 1


@pytest.fixture
def second_server(server: RunningServer) -> Iterator[RunningServer]:
    running = RunningServer(server.dsn).start()
    yield running
    running.stop()


def test_a_revoked_key_is_rejected_by_every_server_and_others_work(
    server: RunningServer, second_server: RunningServer, api: Client, new_key: Callable[..., str]
) -> None:
    owner = UUID(api.plan_manager_id)
    beside = Client(second_server.url, api.key, owner)
    staying = [Client(each.url, new_key(owner), owner) for each in (server, second_server)]
    assert [each.get("/note-types").status_code for each in (api, beside, *staying)] == [200] * 4
    server.run(revoke(server.db, server, api.plan_manager_id, api.key))
    for each in (api, beside):
        wait_until(lambda each=each: each.get("/note-types").status_code == 401)
        assert each.get("/note-types").json()["error"] == "invalid_api_key"
    assert [each.get("/note-types").status_code for each in staying] == [200] * 2
    for each in (beside, *staying):
        each.http.close()


def test_a_plan_manager_removed_from_a_key_is_rejected_by_every_server(
    server: RunningServer, second_server: RunningServer, api: Client
) -> None:
    async def remove() -> None:
        async with server.db.transaction() as tx:
            await tx.execute("delete from api_key_plan_managers where plan_manager_id = $1", api.plan_manager_id)
            await store.bump_version(tx)

    beside = Client(second_server.url, api.key, api.plan_manager_id)
    with closing(beside.http):
        assert [each.get("/note-types").status_code for each in (api, beside)] == [200, 200]
        server.run(remove())
        for each in (api, beside):
            wait_until(lambda each=each: each.get("/note-types").status_code == 403)
            assert each.get("/note-types").json()["error"] == "plan_manager_not_allowed"


class StandaloneServer:
    """A server with a database of its own, which can be stopped and started."""

    def __init__(self, database: StoppableDatabase) -> None:
        self.database = database
        self.server = RunningServer(database.dsn).start()
        self.client = self.server.run(create_client(self.server))

    def stop(self) -> None:
        self.client.http.close()
        self.server.stop()


@pytest.fixture
def standalone(cluster: SharedCluster) -> Iterator[StandaloneServer]:
    with stoppable_database(cluster) as database:
        running = StandaloneServer(database)
        yield running
        running.stop()


def send_until(standalone: StandaloneServer, done: threading.Event) -> list[httpx.Response]:
    """Reads and writes, one after the other, until it is done."""
    responses: list[httpx.Response] = []
    client = Client(standalone.server.url, standalone.client.key, standalone.client.plan_manager_id)
    with closing(client.http):
        while not done.wait(0.01):
            responses += [client.get("/error-catalogue"), client.get("/providers"), client.post("/providers", {})]
    return responses


def assert_unavailable(client: Client, participant: dict[str, Any]) -> None:
    """What a server responds while the database is down, also to a key that can't be one."""
    for response in (
        client.get("/participants"),
        client.post("/participants", {}),
        client.delete(f"/participants/{participant['id']}"),
    ):
        assert (response.status_code, response.headers["retry-after"]) == (503, "1")
        assert response.json() == {
            "success": False, "error": "service_unavailable", "request_id": response.headers["x-request-id"],
            "detail": f"{SENTENCES['down']} {retry_advice('down')}",
            "documentation_url": "/docs/api/errors#service_unavailable",
        }  # fmt: skip
    key = client.key
    junk = key[:-1] + ("0" if key[-1] != "0" else "1")
    response = client.request("GET", "/providers", headers={"Authorization": f"Bearer {junk}"})
    assert (response.status_code, response.json()["error"]) == (401, "invalid_api_key")
    assert client.http.get("/readyz").status_code == 503
    assert client.http.get("/healthz").status_code == 200


def assert_recovered(client: Client, participant: dict[str, Any]) -> None:
    """Nothing was written meanwhile, and writes succeed again."""
    again = wait_until(lambda: (got := client.get("/participants")).status_code == 200 and got)
    assert [each["id"] for each in again.json()["data"]] == [participant["id"]]
    changed = client.put(f"/participants/{participant['id']}", {"last_name": "Lee"}).json()
    assert_changed(participant, {"last_name": "Lee"}, changed)
    wait_until(lambda: len(client.get("/events", type="participant.*").json()["data"]) == 2)
    wait_until(lambda: client.get("/events", type="provider.created").json()["data"])


def test_keys_are_not_used_while_the_database_is_down_and_service_recovers_with_it(
    standalone: StandaloneServer,
) -> None:
    def catalogue() -> httpx.Response:
        return standalone.client.get("/error-catalogue")  # answered without the database, but for the key

    assert catalogue().status_code == 200
    made = standalone.client.create("/participants", {"first_name": "Ann"})
    done = threading.Event()
    with ThreadPoolExecutor(4) as pool:
        hammers = [pool.submit(send_until, standalone, done) for _ in range(4)]
        try:
            wait_until(lambda: standalone.client.get("/providers").json()["pagination"]["total"] > 8)
            standalone.database.stop()
            rejection = wait_until(lambda: response if (response := catalogue()).status_code == 503 else None)
            assert (rejection.json()["error"], rejection.headers["retry-after"]) == ("service_unavailable", "1")
            assert [catalogue().status_code for _ in range(5)] == [503] * 5
            assert_unavailable(standalone.client, made)
            standalone.database.start()
            wait_until(lambda: catalogue().status_code == 200)
            wait_until(lambda: standalone.client.post("/providers", {}).status_code == 200)
        finally:
            done.set()
    answers = [response for hammer in hammers for response in hammer.result()]
    assert {response.status_code for response in answers} == {200, 503}
    written = {
        response.json()["id"] for response in answers if response.request.method == "POST" and response.is_success
    }
    stored = standalone.server.run(standalone.server.db.rows(UUID, "select id from providers"))
    assert written <= {str(ident) for ident in stored}
    assert_recovered(standalone.client, made)
