"""A server that is asked for more than it can do refuses early, and goes on."""

import asyncio
import socket
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any
from uuid import UUID

import asyncpg
import httpx
import pytest

from plankeeper.api_keys.format import new_key as some_key
from plankeeper.database.client import Database
from plankeeper.database.pool import Pool
from plankeeper.embedded_postgres.cluster import Cluster
from plankeeper.http.errors import CODES
from support.client import PREFIX, Client, check
from support.server import RunningServer, wait_until

PLACES = 4


@pytest.fixture
def running(cluster: Cluster) -> Iterator[Callable[..., RunningServer]]:
    """Starts a server with settings of its own."""
    started: list[RunningServer] = []

    def start(**changes: Any) -> RunningServer:
        started.append(RunningServer(cluster.dsn, **changes).start())
        return started[-1]

    yield start
    for each in started:
        each.stop()


@pytest.fixture
def client_of(new_plan_manager: Callable[[], UUID], new_key: Callable[..., str]) -> Iterator[Callable[..., Client]]:
    """Makes a client of a server, with a plan manager of its own."""
    made: list[Client] = []

    def make(server: RunningServer) -> Client:
        owner = new_plan_manager()
        made.append(Client(server.url, new_key(owner), owner))
        return made[-1]

    yield make
    for each in made:
        each.http.close()


@contextmanager
def held(server: RunningServer, participant_id: str) -> Generator[Callable[[], None]]:
    """A participant whose row is locked; what it gives lets go of it."""
    holder: Any = server.run(asyncpg.connect(server.dsn))
    server.run(holder.execute("begin"))
    server.run(holder.execute("select from participants where id = $1 for update", UUID(participant_id)))
    yield lambda: server.run(holder.execute("rollback"))
    server.run(holder.close())


def waiting(server: RunningServer) -> int:
    """How many statements wait for a lock."""
    return server.run(server.db.one(int, "select count(*) from pg_locks where not granted"))


@contextmanager
def occupied(server: RunningServer, api: Client, places: int) -> Generator[tuple[Any, list[Future[httpx.Response]]]]:
    """As many updates under way as there are places; what it gives lets them go on."""
    made = api.made("/participants", {"first_name": "Ada"})
    path = f"/participants/{made['id']}"
    with ThreadPoolExecutor(places) as pool, held(server, made["id"]) as release:
        # Connections are made before: on a busy machine that can take longer than a statement waits for a lock.
        list(pool.map(lambda _: api.get(path), range(places * 3)))
        updates = [pool.submit(api.put, path, {"last_name": f"L{number}"}) for number in range(places)]
        wait_until(lambda: waiting(server) >= places)
        yield release, updates


def assert_busy(refused: httpx.Response, detail: str) -> None:
    check(refused)
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
    assert refused.json() == {
        "success": False, "error": "service_unavailable", "detail": detail,
        "request_id": refused.headers["x-request-id"],
    }  # fmt: skip


def test_who_finds_no_place_is_refused_at_once_and_never_touches_the_database(
    running: Callable[..., RunningServer], client_of: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[int] = []
    take = Pool._acquire  # noqa: SLF001 - whatever a request does in the database begins here

    async def counting(pool: Pool) -> Any:
        task: Any = asyncio.current_task()
        if "run_asgi" in task.get_coro().__qualname__:
            taken.append(1)
        return await take(pool)

    monkeypatch.setattr(Pool, "_acquire", counting)
    full = running(max_requests=PLACES, pool_size=10)
    api, stranger = client_of(full), some_key()
    with occupied(full, api, PLACES) as (release, updates):
        before, started = len(taken), time.monotonic()
        assert before >= PLACES
        for _ in range(10):
            for refused in (
                api.get("/participants"),
                api.post("/participants", {"first_name": "Eve"}),
                api.post("/note-types", {"note_type": "x"}, headers={"Idempotency-Key": "one"}),
                api.send("GET", "/participants", headers={"Authorization": f"Bearer {stranger}"}),
                api.send("GET", "/participants"),
            ):
                assert_busy(refused, "The server is too busy just now.")
        assert api.http.get("/healthz").status_code == 200
        assert time.monotonic() - started < 4, "they waited"
        assert not any(update.done() for update in updates)
        assert len(taken) == before
        release()
        assert [update.result(20).status_code for update in updates] == [200] * PLACES
    assert api.get("/participants").json()["pagination"]["total"] == 1
    assert api.get("/note-types").json()["pagination"]["total"] == 0
    assert api.send("GET", "/participants", headers={"Authorization": f"Bearer {stranger}"}).status_code == 401


def test_a_place_is_given_back_however_a_request_ends(
    running: Callable[..., RunningServer], client_of: Callable[..., Client]
) -> None:
    full = running(max_requests=PLACES, client_timeout=1)
    api = client_of(full)
    typed = api.headers() | {"Content-Type": "application/json"}

    def broken_off() -> Generator[bytes]:
        yield b'{"first_name"'
        raise InterruptedError

    for _ in range(2 * PLACES):
        with pytest.raises(InterruptedError):
            api.http.post(f"{PREFIX}/participants", headers=typed, content=broken_off())
        assert api.send("GET", "/participants").status_code == 401
        assert api.get("/participants", limit=0).status_code == 400
        assert api.request("PATCH", "/participants").status_code == 405
    with occupied(full, api, PLACES) as (release, updates):
        assert_busy(api.get("/participants"), "The server is too busy just now.")
        release()
        assert [update.result(20).status_code for update in updates] == [200] * PLACES


def test_who_gets_no_connection_to_the_database_in_time_is_refused(
    running: Callable[..., RunningServer], client_of: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    defaults: Any = Database.__init__.__kwdefaults__
    monkeypatch.setitem(defaults, "pool_timeout", 0.2)
    small = running(pool_size=2)
    api = client_of(small)
    with occupied(small, api, 2) as (release, updates):
        for _ in range(3):
            assert_busy(api.get("/participants"), CODES["service_unavailable"].description)
            assert_busy(api.post("/participants", {}), CODES["service_unavailable"].description)
        assert not any(update.done() for update in updates)
        release()
        assert [update.result(20).status_code for update in updates] == [200] * 2
    assert api.get("/participants").json()["pagination"]["total"] == 1


def test_who_waits_too_long_for_another_is_refused_and_writes_nothing(
    running: Callable[..., RunningServer], client_of: Callable[..., Client]
) -> None:
    hasty = running(statement_timeout=1)
    api = client_of(hasty)
    with occupied(hasty, api, 2) as (release, updates):
        for update in updates:
            assert_busy(update.result(20), CODES["service_unavailable"].description)
        release()
    [kept] = api.get("/participants").json()["data"]
    assert kept["last_name"] is None


def test_ten_times_too_many_are_answered_or_refused_and_none_is_lost(
    running: Callable[..., RunningServer], client_of: Callable[..., Client]
) -> None:
    """Each create is either answered with the row that it made, or refused without one."""
    full = running(max_requests=PLACES)
    api = client_of(full)

    def create(number: int) -> httpx.Response:
        return api.post("/participants", {"first_name": f"P{number}"})

    with ThreadPoolExecutor(10 * PLACES) as pool:
        answers = list(pool.map(create, range(60 * PLACES)))
    made = {each.json()["id"] for each in answers if each.status_code == 200}
    refused = [each for each in answers if each.status_code != 200]
    for each in refused:
        assert_busy(each, "The server is too busy just now.")
    assert made
    kept = api.get("/participants", limit=1000).json()["data"]
    assert {each["id"] for each in kept} == made
    assert api.get("/participants").status_code == 200


def test_bodies_on_their_way_keep_nobody_out(
    running: Callable[..., RunningServer], client_of: Callable[..., Client]
) -> None:
    """Else one key takes all places of a worker, with few requests."""
    full = running(max_requests=PLACES)
    api, beside = client_of(full), client_of(full)
    url = httpx.URL(full.url)
    headers = api.headers() | {"Host": "x", "Content-Type": "application/json", "Content-Length": "20"}
    sent = f"POST {PREFIX}/participants HTTP/1.1\r\n" + "".join(
        f"{name}: {value}\r\n" for name, value in headers.items()
    )
    with ExitStack() as slow:
        for _ in range(PLACES):
            client = slow.enter_context(socket.create_connection((url.host, url.port), timeout=10))
            client.sendall(f"{sent}Expect: 100-continue\r\n\r\n".encode())
            assert client.recv(100).startswith(b"HTTP/1.1 100 ")  # it is inside, and waits for the body
        assert beside.get("/participants").status_code == 200
