"""`plankeeper webhook-worker`, the worker inside `serve`, and `plankeeper listen`, as they are run."""

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from standardwebhooks import Webhook

from support.client import Client
from support.folder import temporary_folder
from support.program import ServeProcess, environment, run_plankeeper
from support.receiver import ReceivedRequest, Receiver
from support.server import RunningServer, wait_until

ALLOWED_NETWORKS = {"PLANKEEPER_WEBHOOK_ALLOWED_NETWORKS": "127.0.0.1"}


class RunningCommand:
    """A command that runs until it is stopped, with the lines that it prints."""

    def __init__(self, *arguments: str, **settings: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "plankeeper", *arguments], env=environment(settings | {"PYTHONUNBUFFERED": "1"}),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    def wait_for_line(self, what: str) -> str:
        """The line that has some words in it, as soon as it is there."""
        return wait_until(lambda: next((line for line in self.lines if what in line), None), 20)

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        code = self.process.wait(20)
        self._reader.join(5)
        assert self.process.stdout
        self.process.stdout.close()
        return code


@contextmanager
def running_command(*arguments: str, **settings: str) -> Generator[RunningCommand]:
    running = RunningCommand(*arguments, **settings)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.stop(signal.SIGKILL)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as made:
        yield made


def event_types(receiver: Receiver) -> list[str]:
    return [json.loads(each.body)["type"] for each in receiver.received]


def verify(each: ReceivedRequest, secret: str) -> Any:
    return Webhook(secret).verify(each.body.decode(), each.headers)


# The worker by itself


def test_a_worker_sends_until_it_is_stopped(server: RunningServer, api: Client, receiver: Receiver) -> None:
    own = ALLOWED_NETWORKS | {"PLANKEEPER_DATABASE_URL": server.dsn}
    # The server of these tests allows no private address; the worker's own setting is what counts when it sends.
    [endpoint] = server.run(
        server.db.rows(
            str,
            """
            insert into webhook_endpoints (plan_manager_id, id, url, event_types, payload, active, created_at, secret,
                fanned_out_to)
            values ($1, time_ordered_uuid(), $2, '{note_type.*}', 'thin', true, now(), 'whsec_MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0', 0)
            returning secret
            """,  # noqa: E501
            api.plan_manager_id,
            receiver.url,
        )
    )
    with running_command("worker", **own) as worker:
        worker.wait_for_line("The worker is ready")
        api.create("/note-types", {"note_type": "Sent"})
        wait_until(lambda: "note_type.created" in event_types(receiver), 20)
        assert worker.stop() == 0
    assert verify(receiver.received[0], endpoint)["data"]["plan_manager_id"] == api.plan_manager_id
    assert worker.lines == ["The worker is ready. Ctrl-C stops it."]


def test_a_worker_without_a_database_reports_it() -> None:
    done = run_plankeeper("worker", PLANKEEPER_DATABASE_URL="postgresql://127.0.0.1:1/none")
    assert done.returncode == 1
    assert done.stderr.startswith("Error: The database does not answer")


# The worker inside a server


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with temporary_folder() as made:
        yield made


def webhook_workers(serving: ServeProcess) -> list[psutil.Process]:
    """The process that sends webhooks: the one of low priority."""
    return [each for each in serving.workers() if each.nice() > psutil.Process().nice()]


def test_serve_sends_webhooks_and_restarts_a_killed_worker(folder: Path, receiver: Receiver) -> None:
    serving = ServeProcess(folder, "--demo", PLANKEEPER_WEBHOOK_WORKER="on", **ALLOWED_NETWORKS)
    try:
        with serving.client() as client:
            made = client.post("/webhook-endpoints", json={"url": receiver.url, "event_types": ["note_type.*"]}).json()
            [first] = wait_until(lambda: webhook_workers(serving), 20)
            first.kill()
            client.post("/note-types", json={"note_type": "Sent"}).raise_for_status()
            wait_until(lambda: event_types(receiver), 20)
            assert verify(receiver.received[0], made["secret"])["type"] == "note_type.created"
            assert [each.pid for each in webhook_workers(serving)] != [first.pid]
            figures = httpx.get(f"{serving.url}/metrics").text
            assert 'plankeeper_webhook_attempts_total{outcome="succeeded"}' in figures
    finally:
        assert serving.stop() == 0


def test_a_server_that_is_killed_leaves_no_worker_behind(folder: Path) -> None:
    serving = ServeProcess(folder, PLANKEEPER_WEBHOOK_WORKER="on")
    family = wait_until(lambda: webhook_workers(serving) and serving.workers(), 20)
    serving.process.kill()
    _, alive = psutil.wait_procs(family, timeout=30)
    assert not alive
    serving.wait_for_exit()


def test_serve_without_a_worker_sends_nothing(folder: Path, receiver: Receiver) -> None:
    serving = ServeProcess(folder, "--demo", "--no-webhook-worker", PLANKEEPER_WEBHOOK_WORKER="on", **ALLOWED_NETWORKS)
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


# Listening


def test_listen_prints_events_and_forwards_them(server: RunningServer, api: Client, receiver: Receiver) -> None:
    whose = ("--plan-manager", api.plan_manager_id)
    own = {"PLANKEEPER_DATABASE_URL": server.dsn}
    api.create("/note-types", {"note_type": "Before"})
    wait_until(lambda: len(api.get("/events").json()["data"]) == 2)
    with running_command(
        "listen", *whose, "--forward-to", f"{receiver.url}/hooks", "--payload", "full", **own
    ) as listening:
        secret = listening.wait_for_line("Signed with the secret ").split()[-1]
        listening.wait_for_line("Listening.")
        made = api.create("/note-types", {"note_type": "During"})
        line = listening.wait_for_line("note_type.created")
        wait_until(lambda: receiver.received)
        assert listening.stop(signal.SIGINT) == 130
    assert line.split()[1:5] == ["note_type.created", str(made["id"]), "204", line.split()[4]]
    [came] = receiver.received
    assert verify(came, secret)["data"]["object"] == made


@pytest.mark.parametrize(
    "arguments, wrong",
    [
        (["--plan-manager", "019a0000-0000-7000-8000-00000000dead"], "There is no plan manager"),
        (["--forward-to", "localhost:3000"], "it must begin with http:// or https://"),
        (["--forward-to", "http://["], "it must begin with http:// or https://, and name a host"),
        (["--forward-to", "http://localhost:x/"], "it must begin with http:// or https://, and name a host"),
        (["--forward-to", "http://127.0.0.1:1", "--secret", "whsec_short"], "it must be whsec_ and the base64 of"),
    ],
)
def test_listen_rejects_invalid_arguments(server: RunningServer, api: Client, arguments: list[str], wrong: str) -> None:
    done = run_plankeeper(
        "listen", "--plan-manager", api.plan_manager_id, *arguments, PLANKEEPER_DATABASE_URL=server.dsn
    )
    assert done.returncode in (1, 2)
    assert wrong in done.stderr
