"""An overloaded server rejects requests early and continues to serve."""

import asyncio
import socket
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any
from uuid import UUID

import asyncpg
import httpx
import pytest

from plankeeper.access.api_keys.format import new_key as some_key
from plankeeper.database.client import Database
from plankeeper.database.pool import Pool
from plankeeper.database.unavailability import SENTENCES, Cause, retry_advice
from support.client import PREFIX, Client, check_response
from support.cluster import SharedCluster
from support.server import RunningServer, wait_until

SLOTS = 4


@pytest.fixture
def start_server(cluster: SharedCluster) -> Iterator[Callable[..., RunningServer]]:
    """Starts a server with settings of its own."""
    started: list[RunningServer] = []

    def start(**changes: Any) -> RunningServer:
        started.append(RunningServer(cluster.dsn, **changes).start())
        return started[-1]

    yield start
    for each in started:
        each.stop()


@pytest.fixture(scope="module")
def full(cluster: SharedCluster) -> Iterator[RunningServer]:
    """A server with few slots, which is full when a test uses them all. It has no time limit of its own for locks."""
    running = RunningServer(cluster.dsn, max_concurrent_requests=SLOTS, pool_size=10, statement_timeout=61).start()
    yield running
    running.stop()


@pytest.fixture
def new_client_of(new_plan_manager: Callable[[], UUID], new_key: Callable[..., str]) -> Iterator[Callable[..., Client]]:
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
def locked_row(server: RunningServer, participant_id: str) -> Generator[Callable[[], None]]:
    """A participant whose row is locked; the yielded function unlocks it."""
    holder: Any = server.run(asyncpg.connect(server.dsn))
    server.run(holder.execute("begin"))
    server.run(holder.execute("select from participants where id = $1 for update", UUID(participant_id)))
    yield lambda: server.run(holder.execute("rollback"))
    server.run(holder.close())


def blocked_statements(server: RunningServer) -> int:
    """How many statements wait for a lock."""
    return server.run(
        server.db.one(
            int,
            """
            select count(*) from pg_locks join pg_stat_activity using (pid)
            where not granted and datname = current_database()
            """,
        )
    )


@contextmanager
def all_slots_in_use(
    server: RunningServer, api: Client, slots: int
) -> Generator[tuple[Any, list[Future[httpx.Response]]]]:
    """As many updates in progress as there are slots; the yielded function lets them continue."""
    participant = api.create("/participants", {"first_name": "Ada"})
    path = f"/participants/{participant['id']}"
    with ThreadPoolExecutor(slots) as pool, locked_row(server, participant["id"]) as release:
        # Connections are made before: on a busy machine that can take longer than a statement waits for a lock.
        list(pool.map(lambda _: api.get(path), range(slots * 3)))
        updates = [pool.submit(api.put, path, {"last_name": f"L{number}"}) for number in range(slots)]
        wait_until(lambda: blocked_statements(server) >= slots)
        yield release, updates


def detail_of(cause: Cause) -> str:
    return f"{SENTENCES[cause]} {retry_advice(cause)}"


def assert_busy(response: httpx.Response, detail: str) -> None:
    check_response(response)
    assert (response.status_code, response.headers["retry-after"]) == (503, "1")
    assert response.json() == {
        "success": False, "error": "service_unavailable", "detail": detail,
        "request_id": response.headers["x-request-id"],
        "documentation_url": "/docs/api/errors#service_unavailable",
    }  # fmt: skip


def test_a_request_beyond_the_limit_is_rejected_immediately_without_the_database(
    full: RunningServer, new_client_of: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[int] = []
    take = Pool._acquire  # noqa: SLF001 - whatever a request does in the database begins here

    async def counting(pool: Pool) -> Any:
        task: Any = asyncio.current_task()
        if "run_asgi" in task.get_coro().__qualname__:
            taken.append(1)
        return await take(pool)

    monkeypatch.setattr(Pool, "_acquire", counting)
    api, outsider = new_client_of(full), some_key()
    with all_slots_in_use(full, api, SLOTS) as (release, updates):
        before = len(taken)
        assert before >= SLOTS
        for _ in range(10):
            for rejection in (
                api.get("/participants"),
                api.post("/participants", {"first_name": "Eve"}),
                api.post("/note-types", {"note_type": "x"}, headers={"Idempotency-Key": "one"}),
                api.send("GET", "/participants", headers={"Authorization": f"Bearer {outsider}"}),
                api.send("GET", "/participants"),
            ):
                assert_busy(rejection, "The server is too busy.")
        assert api.http.get("/healthz").status_code == 200
        # Who had waited for a place would have waited for these.
        assert not any(update.done() for update in updates)
        assert len(taken) == before
        release()
        assert [update.result(20).status_code for update in updates] == [200] * SLOTS
    assert api.get("/participants").json()["pagination"]["total"] == 1
    assert api.get("/note-types").json()["pagination"]["total"] == 0
    assert api.send("GET", "/participants", headers={"Authorization": f"Bearer {outsider}"}).status_code == 401


def test_a_slot_is_released_however_a_request_ends(
    start_server: Callable[..., RunningServer], new_client_of: Callable[..., Client]
) -> None:
    full = start_server(max_concurrent_requests=SLOTS, client_io_timeout=1, statement_timeout=61)
    api = new_client_of(full)
    typed = api.headers() | {"Content-Type": "application/json"}

    def disconnect() -> Generator[bytes]:
        yield b'{"first_name"'
        raise InterruptedError

    for _ in range(2 * SLOTS):
        with pytest.raises(InterruptedError):
            api.http.post(f"{PREFIX}/participants", headers=typed, content=disconnect())
        assert api.send("GET", "/participants").status_code == 401
        assert api.get("/participants", limit=0).status_code == 400
        assert api.request("PATCH", "/participants").status_code == 405
    with all_slots_in_use(full, api, SLOTS) as (release, updates):
        assert_busy(api.get("/participants"), "The server is too busy.")
        release()
        assert [update.result(20).status_code for update in updates] == [200] * SLOTS


def test_a_request_without_a_database_connection_in_time_is_rejected(
    start_server: Callable[..., RunningServer], new_client_of: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    defaults: Any = Database.__init__.__kwdefaults__
    monkeypatch.setitem(defaults, "pool_timeout", 2.0)
    small = start_server(pool_size=2, statement_timeout=61)
    api = new_client_of(small)
    with all_slots_in_use(small, api, 2) as (release, updates):
        assert_busy(api.get("/participants"), detail_of("pool_exhausted"))
        assert_busy(api.post("/participants", {}), detail_of("pool_exhausted"))
        assert not any(update.done() for update in updates)
        release()
        assert [update.result(20).status_code for update in updates] == [200] * 2
    assert api.get("/participants").json()["pagination"]["total"] == 1


def test_a_request_that_waits_too_long_for_a_lock_is_rejected_and_writes_nothing(
    start_server: Callable[..., RunningServer], new_client_of: Callable[..., Client]
) -> None:
    hasty = start_server(statement_timeout=6)
    api = new_client_of(hasty)
    with all_slots_in_use(hasty, api, 2) as (release, updates):
        for update in updates:
            assert_busy(update.result(20), detail_of("slow"))
        release()
    [stored] = api.get("/participants").json()["data"]
    assert stored["last_name"] is None


def test_at_ten_times_the_limit_every_request_gets_a_response(
    full: RunningServer, new_client_of: Callable[..., Client]
) -> None:
    """Each create either returns the row that it inserted, or is rejected without inserting one."""
    api = new_client_of(full)

    def create(number: int) -> httpx.Response:
        return api.post("/participants", {"first_name": f"P{number}"})

    with ThreadPoolExecutor(10 * SLOTS) as pool:
        responses = list(pool.map(create, range(60 * SLOTS)))
    made = {each.json()["id"] for each in responses if each.status_code == 200}
    rejection = [each for each in responses if each.status_code != 200]
    for each in rejection:
        assert_busy(each, "The server is too busy.")
    assert made
    stored = api.get("/participants", limit=1000).json()["data"]
    assert {each["id"] for each in stored} == made
    assert api.get("/participants").status_code == 200


def test_bodies_in_transit_take_no_slot(full: RunningServer, new_client_of: Callable[..., Client]) -> None:
    """Otherwise, one key takes all slots of a worker with few requests."""
    api, beside = new_client_of(full), new_client_of(full)
    url = httpx.URL(full.url)
    headers = api.headers() | {"Host": "x", "Content-Type": "application/json", "Content-Length": "20"}
    sent = f"POST {PREFIX}/participants HTTP/1.1\r\n" + "".join(
        f"{name}: {value}\r\n" for name, value in headers.items()
    )
    with ExitStack() as slow:
        for _ in range(SLOTS):
            client = slow.enter_context(socket.create_connection((url.host, url.port), timeout=10))
            client.sendall(f"{sent}Expect: 100-continue\r\n\r\n".encode())
            assert client.recv(100).startswith(b"HTTP/1.1 100 ")  # it is inside, and waits for the body
        assert beside.get("/participants").status_code == 200
