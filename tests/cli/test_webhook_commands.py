"""`plankeeper webhook-worker` and `plankeeper listen`, as they are run."""

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from support.client import Client
from support.program import environment, run_plankeeper
from support.receiver import Receiver
from support.server import RunningServer, wait_until
from support.webhooks import event_types, verify

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
        return wait_until(lambda: next((line for line in self.lines if what in line), None))

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


# The worker by itself


def test_a_worker_sends_until_it_is_stopped(server: RunningServer, api: Client, receiver: Receiver) -> None:
    own = ALLOWED_NETWORKS | {"PLANKEEPER_DATABASE_URL": server.dsn}
    # The server of these tests allows no private address; the worker's own setting is what counts when it sends.
    [endpoint] = server.run(
        server.db.rows(
            str,
            """
            insert into webhook_endpoints (plan_manager_id, id, url, event_types, payload, active, created_at, secret,
                last_position)
            values ($1, time_ordered_uuid(), $2, '{note_type.*}', 'thin', true, now(), 'whsec_MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0', 0)
            returning secret
            """,  # noqa: E501
            api.plan_manager_id,
            receiver.url,
        )
    )
    with running_command("webhook-worker", **own) as worker:
        worker.wait_for_line("the webhook worker is started")
        api.create("/note-types", {"note_type": "Sent"})
        wait_until(lambda: "note_type.created" in event_types(receiver))
        assert worker.stop() == 0
    assert verify(receiver.received[0], endpoint)["data"]["plan_manager_id"] == api.plan_manager_id
    # Its secret is in plain text, so the worker needs no key file.
    # In the same database, other tests leave endpoints whose secrets are encrypted with the keys of their servers.
    lines = [line for line in worker.lines if "which PLANKEEPER_SECRET_KEY_FILE does not contain" not in line]
    warning, started = (json.loads(line) for line in lines)
    assert (warning["level"], warning["event"]) == ("warning", "the configuration needs attention")
    assert warning["reason"].startswith("PLANKEEPER_SECRET_KEY_FILE is not set")
    assert started["event"] == "the webhook worker is started"
    assert {"version", "commit", "python", "database_host", "schema", "settings"} <= set(started)


def test_a_worker_without_a_database_reports_it() -> None:
    done = run_plankeeper("webhook-worker", PLANKEEPER_DATABASE_URL="postgresql://127.0.0.1:1/none")
    assert done.returncode == 1
    line = json.loads(done.stderr)
    assert (line["event"], line["reason"], line["database_host"], line["error"]) == (
        "the program cannot start", "The database is unavailable", "127.0.0.1:1", "ConnectionRefusedError",
    )  # fmt: skip


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
        listening.wait_for_line("Listening for events.")
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
        (["--forward-to", "localhost:3000"], "must be an http:// or https:// URL with a host"),
        (["--forward-to", "http://["], "must be an http:// or https:// URL with a host"),
        (["--forward-to", "http://localhost:x/"], "must be an http:// or https:// URL with a host"),
        (["--forward-to", "http://127.0.0.1:1", "--secret", "whsec_short"], "must be whsec_ and the base64 of"),
    ],
)
def test_listen_rejects_invalid_arguments(server: RunningServer, api: Client, arguments: list[str], wrong: str) -> None:
    done = run_plankeeper(
        "listen", "--plan-manager", api.plan_manager_id, *arguments, PLANKEEPER_DATABASE_URL=server.dsn
    )
    assert done.returncode in (1, 2)
    assert wrong in done.stderr
