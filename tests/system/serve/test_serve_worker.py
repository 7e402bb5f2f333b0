"""The worker that sends webhooks, inside `plankeeper serve`."""

from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from support.folder import temporary_folder
from support.program import ServeProcess
from support.receiver import Receiver
from support.server import wait_until
from support.webhooks import event_types, verify

ALLOWED = {"PLANKEEPER_WEBHOOK_ALLOWED_NETWORKS": "127.0.0.1"}


@pytest.fixture(scope="module")
def folder(copy_sample_data: Callable[[Path], None]) -> Iterator[Path]:
    with temporary_folder() as made:
        copy_sample_data(made)
        yield made


def beside(serving: ServeProcess) -> list[psutil.Process]:
    """The process that sends webhooks: the one of low priority."""
    return [each for each in serving.workers() if each.nice() > psutil.Process().nice()]


def test_serve_sends_and_brings_a_killed_worker_back(folder: Path, receiver: Receiver) -> None:
    serving = ServeProcess(folder, "--demo", PLANKEEPER_WEBHOOK_WORKER="on", **ALLOWED)
    try:
        with serving.client() as client:
            made = client.post("/webhook-endpoints", json={"url": receiver.url, "event_types": ["note_type.*"]}).json()
            [first] = wait_until(lambda: beside(serving))
            first.kill()
            client.post("/note-types", json={"note_type": "Sent"}).raise_for_status()
            wait_until(lambda: event_types(receiver))
            assert verify(receiver.received[0], made["secret"])["type"] == "note_type.created"
            assert [each.pid for each in beside(serving)] != [first.pid]
            figures = httpx.get(f"{serving.url}/metrics").text
            assert 'plankeeper_webhook_attempts_total{outcome="succeeded"}' in figures
    finally:
        assert serving.stop() == 0


def test_a_server_that_is_killed_leaves_no_worker_behind(folder: Path) -> None:
    serving = ServeProcess(folder, PLANKEEPER_WEBHOOK_WORKER="on")
    family = wait_until(lambda: beside(serving) and serving.workers())
    serving.process.kill()
    _, alive = psutil.wait_procs(family, timeout=30)
    assert not alive
    serving.wait_for_exit()


def test_serve_without_a_worker_sends_nothing(folder: Path, receiver: Receiver) -> None:
    serving = ServeProcess(folder, "--demo", "--no-webhook-worker", PLANKEEPER_WEBHOOK_WORKER="on", **ALLOWED)
    try:
        with serving.client() as client:
            made = client.post("/webhook-endpoints", json={"url": receiver.url}).json()
            client.post("/note-types", json={"note_type": "Kept"}).raise_for_status()
            path = f"/webhook-endpoints/{made['id']}/deliveries"
            wait_until(lambda: client.get(path, params={"event_type": "note_type.created"}).json()["data"])
            assert len(serving.workers()) == 1
            assert receiver.received == []
    finally:
        serving.stop()
