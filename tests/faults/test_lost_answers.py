"""The answer to a write is lost between the commit and the client, and the client asks again: it was done once.

The moment is not left to chance. The server reaches its database through a proxy that passes the commit on and keeps
PostgreSQL's answer to it: then the write is on disk, and the server does not know it yet.
"""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import psutil
import pytest

from faults.access import Access, ask, new_access
from faults.proxy import Proxy
from plankeeper.embedded_postgres.cluster import Cluster
from support.client import PREFIX
from support.program import Serving
from support.server import wait_until


@pytest.fixture
def proxy(cluster: Cluster) -> Iterator[Proxy]:
    [[sockets]] = ask(cluster.dsn, "show unix_socket_directories")
    with Proxy(Path(sockets) / ".s.PGSQL.5432") as running:
        yield running


class Asking:
    """A create under a key in a thread of its own; `answer` is none where the connection broke."""

    def __init__(self, url: str, access: Access, key: str) -> None:
        self.answer: httpx.Response | None = None
        self._request = {"headers": {**access.headers, "Idempotency-Key": key}, "json": {"first_name": key}}
        self._url = f"{url}{PREFIX}/participants"
        self._thread = threading.Thread(target=self._ask)
        self._thread.start()

    def _ask(self) -> None:
        try:
            self.answer = httpx.post(self._url, timeout=30, **self._request)
        except httpx.TransportError:
            return

    def ended(self) -> httpx.Response | None:
        self._thread.join(30)
        assert not self._thread.is_alive()
        return self.answer


def start(serve: Callable[..., Serving], proxy: Proxy) -> Serving:
    # asyncpg would ask for TLS first.
    return serve(PLANKEEPER_DATABASE_URL=f"postgresql://postgres@127.0.0.1:{proxy.port}/plankeeper?sslmode=disable")


def test_a_write_whose_answer_was_lost_is_done_once(
    cluster: Cluster, proxy: Proxy, serve: Callable[..., Serving]
) -> None:
    serving = start(serve, proxy)
    done_once(cluster.dsn, proxy, serving, lambda: kill_worker(serving))
    done_once(cluster.dsn, proxy, serving, proxy.cut, answered=True)
    done_once(cluster.dsn, proxy, serving, lambda: kill_all(serving), then=lambda: start(serve, proxy))


def kill_worker(serving: Serving) -> None:
    [worker] = serving.workers()
    worker.kill()
    wait_until(lambda: any(each.pid != worker.pid for each in serving.workers()), 20)


def kill_all(serving: Serving) -> None:
    for each in [*serving.family(), psutil.Process(serving.process.pid)]:
        each.kill()
    serving.ended()


def done_once(
    dsn: str,
    proxy: Proxy,
    serving: Serving,
    lose: Callable[[], None],
    *,
    answered: bool = False,
    then: Callable[[], Serving] | None = None,
) -> None:
    """A create whose answer gets lost, and the same again; `answered` where the server itself lives to say so."""
    access, key = new_access(dsn), str(uuid4())
    proxy.hold(key)
    first = Asking(serving.url, access, key)
    assert proxy.held.wait(20)
    [row] = rows(dsn, key)
    lose()
    answer = first.ended()
    assert (answer is not None) == answered
    if answer is not None:
        assert (answer.status_code, answer.json()["error"]) == (503, "service_unavailable")

    alive = then() if then else serving
    second = Asking(alive.url, access, key).ended()
    assert second is not None
    assert (second.status_code, second.headers["idempotent-replayed"]) == (200, "true")
    assert second.json()["id"] == row
    assert rows(dsn, key) == [row]
    assert events(dsn, access) == [("participant.created", row)]


def rows(dsn: str, first_name: str) -> list[str]:
    return [row for [row] in ask(dsn, "select id::text from participants where first_name = $1", first_name)]


def events(dsn: str, access: Access) -> list[Any]:
    statement = "select type, resource_id from events where plan_manager_id = $1 and resource_kind = 'participant'"
    return [tuple(each) for each in ask(dsn, statement, access.plan_manager_id)]
