"""The running program under load: its database is killed, and it is stopped with requests in flight."""

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import psutil
import pytest

from plankeeper.server.embedded_postgres.cluster import Cluster
from support.folder import temporary_folder
from support.program import ServeProcess, kill_all
from support.server import wait_until


@pytest.fixture(scope="module")
def folder(copy_sample_data: Callable[[Path], None]) -> Iterator[Path]:
    with temporary_folder() as made:
        copy_sample_data(made)
        yield made


@pytest.fixture
def serving(folder: Path) -> Iterator[ServeProcess]:
    running = ServeProcess(folder, "--demo", workers=2, PLANKEEPER_STATEMENT_TIMEOUT="61")  # above 60, none for locks
    yield running
    running.stop()


class ConcurrentWriters:
    """Create participants on several connections until stopped, and collect every response."""

    def __init__(self, serving: ServeProcess) -> None:
        self.acknowledged: list[str] = []
        self.unexpected: list[httpx.Response] = []
        self._serving = serving
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._write) for _ in range(4)]
        for thread in self._threads:
            thread.start()

    def _write(self) -> None:
        with self._serving.client() as client:
            while not self._stop.is_set():
                response = client.post("/participants", json={"first_name": "Kept"})
                if response.status_code == 200:
                    self.acknowledged.append(response.json()["id"])
                else:
                    self.unexpected.append(response)

    def finish(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(20)
        assert not any(thread.is_alive() for thread in self._threads)


def test_a_killed_database_restarts_with_every_acknowledged_write(serving: ServeProcess) -> None:
    workers = {worker.pid for worker in serving.workers()}
    writers = ConcurrentWriters(serving)
    wait_until(lambda: len(writers.acknowledged) > 200)
    postmaster = serving.postmaster()
    kill_all([postmaster, *postmaster.children(recursive=True)])
    wait_until(lambda: writers.unexpected)
    before = len(writers.acknowledged)
    wait_until(lambda: len(writers.acknowledged) > before + 200)
    writers.finish()

    assert {worker.pid for worker in serving.workers()} == workers
    assert serving.postmaster().pid != postmaster.pid
    assert {response.status_code for response in writers.unexpected} == {503}
    for response in writers.unexpected:
        body = response.json()
        assert (body["success"], body["error"]) == (False, "service_unavailable")
        assert response.headers["retry-after"].isdecimal()
    with serving.client() as client:
        assert set(writers.acknowledged) <= set(list_ids(client))


def list_ids(client: httpx.Client) -> list[str]:
    ids: list[str] = []
    after: str | None = "0"
    while after:
        page = client.get("/participants", params={"limit": 1000, "after": after}).json()
        ids += [each["id"] for each in page["data"]]
        after = page["pagination"]["next_cursor"]
    return ids


class BlockedUpdate:
    """A participant whose row is locked, and an update of it that waits for the lock."""

    def __init__(self, serving: ServeProcess, folder: Path) -> None:
        self._loop = asyncio.new_event_loop()
        self.responses: list[httpx.Response] = []
        with serving.client() as client:
            self.id = client.post("/participants", json={"first_name": "Before"}).json()["id"]
        shared = Cluster(folder)
        assert not shared.ensure()
        self._holder: Any = self._run(asyncpg.connect(shared.dsn))
        self._watcher: Any = self._run(asyncpg.connect(shared.dsn))
        self._run(self._holder.execute(f"begin; select from participants where id = '{self.id}' for update"))
        self._thread = threading.Thread(target=self._update, args=[serving.client()])
        self._thread.start()
        wait_until(self._is_waiting)

    def _run(self, work: Any) -> Any:
        return self._loop.run_until_complete(work)

    def _update(self, client: httpx.Client) -> None:
        with client:
            self.responses.append(client.put(f"/participants/{self.id}", json={"first_name": "After"}))

    def _is_waiting(self) -> bool:
        return self._run(self._watcher.fetchval("select exists (select from pg_locks where not granted)"))

    def release(self) -> httpx.Response:
        self._run(self._holder.execute("commit"))
        self._thread.join(20)
        self._run(self._holder.close())
        self._run(self._watcher.close())
        self._loop.close()
        [response] = self.responses
        return response


@pytest.mark.parametrize("way", ["SIGTERM to the server", "Ctrl-C on its terminal"])
def test_a_request_in_progress_is_completed_before_shutdown(folder: Path, serving: ServeProcess, way: str) -> None:
    held = BlockedUpdate(serving, folder)
    family = serving.child_processes()
    if way.startswith("SIGTERM"):
        serving.process.send_signal(signal.SIGTERM)
    else:
        # The terminal tells every process in front of it.
        os.killpg(serving.process.pid, signal.SIGINT)
    wait_until(lambda: _is_refusing_connections(serving.url))
    assert serving.process.poll() is None
    assert held.responses == []
    response = held.release()
    assert (response.status_code, response.json()["first_name"]) == (200, "After")
    assert serving.process.wait(120) == 0
    assert psutil.wait_procs(family, timeout=120)[1] == []


def _is_refusing_connections(url: str) -> bool:
    try:
        httpx.get(f"{url}/healthz", timeout=0.5)
    except httpx.TransportError:
        return True
    return False
