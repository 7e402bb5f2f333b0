"""The running program under load: its database killed, itself told to stop with requests under way."""

import asyncio
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import psutil
import pytest

from plankeeper.embedded_postgres.cluster import Cluster
from support.folder import open_folder
from support.program import Serving
from support.server import wait_until


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with open_folder() as made:
        yield made


@pytest.fixture
def serving(folder: Path) -> Iterator[Serving]:
    running = Serving(folder, "--demo", workers=2)
    yield running
    running.stop()


class Writers:
    """Create participants on several connections until told to stop; every answer is kept."""

    def __init__(self, serving: Serving) -> None:
        self.acknowledged: list[str] = []
        self.other: list[httpx.Response] = []
        self._serving = serving
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._write) for _ in range(4)]
        for thread in self._threads:
            thread.start()

    def _write(self) -> None:
        with self._serving.client() as client:
            while not self._stop.is_set():
                answer = client.post("/participants", json={"first_name": "Kept"})
                if answer.status_code == 200:
                    self.acknowledged.append(answer.json()["id"])
                else:
                    self.other.append(answer)

    def finish(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(20)
        assert not any(thread.is_alive() for thread in self._threads)


def test_a_killed_database_is_back_by_itself_with_all_that_was_acknowledged(serving: Serving) -> None:
    workers = {worker.pid for worker in serving.workers()}
    writers = Writers(serving)
    wait_until(lambda: len(writers.acknowledged) > 200, 30)
    postmaster = serving.postmaster()
    for process in [postmaster, *postmaster.children(recursive=True)]:
        process.kill()
    wait_until(lambda: writers.other, 20)
    before = len(writers.acknowledged)
    wait_until(lambda: len(writers.acknowledged) > before + 200, 30)
    writers.finish()

    assert {worker.pid for worker in serving.workers()} == workers
    assert serving.postmaster().pid != postmaster.pid
    assert {answer.status_code for answer in writers.other} == {503}
    for answer in writers.other:
        body = answer.json()
        assert (body["success"], body["error"]) == (False, "service_unavailable")
        assert answer.headers["retry-after"].isdecimal()
    with serving.client() as client:
        assert set(writers.acknowledged) <= set(walked(client))


def walked(client: httpx.Client) -> list[str]:
    ids: list[str] = []
    after: str | None = "0"
    while after:
        page = client.get("/participants", params={"limit": 1000, "after": after}).json()
        ids += [each["id"] for each in page["data"]]
        after = page["pagination"]["next_cursor"]
    return ids


class Held:
    """A participant whose row is locked, and an update of it that waits for the lock."""

    def __init__(self, serving: Serving, folder: Path) -> None:
        self._loop = asyncio.new_event_loop()
        self.answers: list[httpx.Response] = []
        with serving.client() as client:
            self.id = client.post("/participants", json={"first_name": "Before"}).json()["id"]
        shared = Cluster(folder)
        assert not shared.ensure()
        self._holder: Any = self._run(asyncpg.connect(shared.dsn))
        self._watcher: Any = self._run(asyncpg.connect(shared.dsn))
        self._run(self._holder.execute(f"begin; select from participants where id = '{self.id}' for update"))
        self._thread = threading.Thread(target=self._update, args=[serving.client()])
        self._thread.start()
        wait_until(self._waits, 10)

    def _run(self, work: Any) -> Any:
        return self._loop.run_until_complete(work)

    def _update(self, client: httpx.Client) -> None:
        with client:
            self.answers.append(client.put(f"/participants/{self.id}", json={"first_name": "After"}))

    def _waits(self) -> bool:
        return self._run(self._watcher.fetchval("select exists (select from pg_locks where not granted)"))

    def release(self) -> httpx.Response:
        self._run(self._holder.execute("commit"))
        self._thread.join(20)
        self._run(self._holder.close())
        self._run(self._watcher.close())
        self._loop.close()
        [answer] = self.answers
        return answer


@pytest.mark.parametrize("way", ["SIGTERM to the server", "Ctrl-C on its terminal"])
def test_a_request_under_way_is_answered_before_it_ends(folder: Path, serving: Serving, way: str) -> None:
    held = Held(serving, folder)
    family = serving.family()
    if way.startswith("SIGTERM"):
        serving.process.send_signal(signal.SIGTERM)
    else:
        # The terminal tells every process in front of it.
        os.killpg(serving.process.pid, signal.SIGINT)
    wait_until(lambda: _refuses(serving.url), 10)
    assert serving.process.poll() is None
    assert held.answers == []
    answer = held.release()
    assert (answer.status_code, answer.json()["first_name"]) == (200, "After")
    assert serving.process.wait(15) == 0
    assert psutil.wait_procs(family, timeout=10)[1] == []


def _refuses(url: str) -> bool:
    try:
        httpx.get(f"{url}/healthz", timeout=0.5)
    except httpx.TransportError:
        return True
    return False
