"""The response to a write is lost between the commit and the client, and the client repeats it: it was done once.

The moment is not left to chance. The server reaches its database through a proxy that passes the commit on and keeps
PostgreSQL's response: then the write is on disk, but the server has no acknowledgement.
"""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import httpx
import psutil
import pytest

from support.client import PREFIX
from support.cluster import SharedCluster, as_owner
from support.program import ServeProcess, kill_all
from support.server import wait_until
from system.faults.access import Credentials, create_credentials, query
from system.faults.proxy import Proxy


@pytest.fixture
def dsn(cluster: SharedCluster) -> str:
    return cluster.new_database()


@pytest.fixture
def proxy(dsn: str) -> Iterator[Proxy]:
    [[sockets]] = query(as_owner(dsn), "show unix_socket_directories")
    with Proxy(Path(sockets) / ".s.PGSQL.5432") as running:
        yield running


class PendingCreate:
    """A create under a key in a thread of its own; `answer` is none where the connection broke."""

    def __init__(self, url: str, access: Credentials, key: str) -> None:
        self.answer: httpx.Response | None = None
        self._request = {"headers": {**access.headers, "Idempotency-Key": key}, "json": {"first_name": key}}
        self._url = f"{url}{PREFIX}/participants"
        self._thread = threading.Thread(target=self._send)
        self._thread.start()

    def _send(self) -> None:
        try:
            self.answer = httpx.post(self._url, timeout=30, **self._request)
        except httpx.TransportError:
            return

    def wait(self) -> httpx.Response | None:
        self._thread.join(30)
        assert not self._thread.is_alive()
        return self.answer


def start_behind_proxy(serve: Callable[..., ServeProcess], proxy: Proxy, dsn: str) -> ServeProcess:
    """A server that reaches the database of `dsn` through the proxy."""
    database = urlsplit(dsn).path
    # asyncpg would ask for TLS first.
    return serve(PLANKEEPER_DATABASE_URL=f"postgresql://postgres@127.0.0.1:{proxy.port}{database}?sslmode=disable")


def test_a_write_whose_response_was_lost_is_done_once(
    dsn: str, proxy: Proxy, serve: Callable[..., ServeProcess]
) -> None:
    serving = start_behind_proxy(serve, proxy, dsn)
    assert_created_once(dsn, proxy, serving, lambda: kill_worker(serving))
    assert_created_once(dsn, proxy, serving, proxy.cut, answered=True)
    assert_created_once(
        dsn,
        proxy,
        serving,
        lambda: kill_server(serving),
        then=lambda: start_behind_proxy(serve, proxy, dsn),
    )


def kill_worker(serving: ServeProcess) -> None:
    [worker] = serving.workers()
    worker.kill()
    wait_until(lambda: any(each.pid != worker.pid for each in serving.workers()))


def kill_server(serving: ServeProcess) -> None:
    kill_all([*serving.child_processes(), psutil.Process(serving.process.pid)])
    serving.wait_for_exit()


def assert_created_once(
    dsn: str,
    proxy: Proxy,
    serving: ServeProcess,
    lose: Callable[[], None],
    *,
    answered: bool = False,
    then: Callable[[], ServeProcess] | None = None,
) -> None:
    """A create whose answer gets lost, and the same again; `answered` where the server itself lives to say so."""
    access, key = create_credentials(dsn), str(uuid4())
    proxy.hold_commit(key)
    first = PendingCreate(serving.url, access, key)
    assert proxy.commit_held.wait(20)
    [row] = participant_ids(dsn, key)
    lose()
    answer = first.wait()
    assert (answer is not None) == answered
    if answer is not None:
        assert (answer.status_code, answer.json()["error"]) == (503, "service_unavailable")

    alive = then() if then else serving
    second = PendingCreate(alive.url, access, key).wait()
    assert second is not None
    assert (second.status_code, second.headers["idempotent-replayed"]) == (200, "true")
    assert second.json()["id"] == row
    assert participant_ids(dsn, key) == [row]
    assert participant_events(dsn, access) == [("participant.created", row)]


def participant_ids(dsn: str, first_name: str) -> list[str]:
    return [row for [row] in query(dsn, "select id::text from participants where first_name = $1", first_name)]


def participant_events(dsn: str, access: Credentials) -> list[Any]:
    statement = "select type, resource_id from events where plan_manager_id = $1 and resource_kind = 'participant'"
    return [tuple(each) for each in query(dsn, statement, access.plan_manager_id)]
