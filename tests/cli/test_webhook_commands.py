"""`plankeeper webhook-worker` and `plankeeper listen`, as they are run."""

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager

import pytest
from uuid_utils.compat import uuid7

from plankeeper.core.encryption.cipher import secret_cipher
from plankeeper.webhooks.messages import new_secret
from support.client import Client
from support.program import environment, run_plankeeper
from support.receiver import Receiver
from support.secret_keys import shared_key_file
from support.server import RunningServer, wait_until
from support.webhooks import event_types, verify

ALLOWED_NETWORKS = {"PLANKEEPER_WEBHOOK_ALLOWED_NETWORKS": "127.0.0.1"}


class RunningCommand:
    """A command that runs until it is stopped, with the lines that it prints."""

    def __init__(self, *arguments: str, **settings: str) -> None:
        # On a busy machine, any statement can be slow.
        usual = {"PYTHONUNBUFFERED": "1", "PLANKEEPER_SLOW_STATEMENTS": "off"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "plankeeper", *arguments], env=environment(usual | settings),
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
        return self.wait()

    def wait(self) -> int:
        """Its exit code, as soon as it has ended."""
        code = self.process.wait(60)
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
    own = ALLOWED_NETWORKS | {
        "PLANKEEPER_DATABASE_URL": server.dsn, "PLANKEEPER_SECRET_KEY_FILE": str(shared_key_file())
    }  # fmt: skip
    # The server of these tests allows no private address; the worker's own setting is what counts when it sends.
    endpoint_id, secret = uuid7(), new_secret()
    server.run(
        server.db.execute(
            """
            insert into webhook_endpoints (plan_manager_id, id, url, event_types, payload, active, created_at, secret,
                last_position)
            values ($1, $2, $3, '{note_type.*}', 'thin', true, now(), $4, 0)
            """,
            api.plan_manager_id, endpoint_id, receiver.url,
            secret_cipher(server.settings).encrypt(secret, endpoint_id.bytes),
        )
    )  # fmt: skip
    with running_command("webhook-worker", **own) as worker:
        worker.wait_for_line("the webhook worker is started")
        api.create("/note-types", {"note_type": "Sent"})
        wait_until(lambda: "note_type.created" in event_types(receiver))
        assert worker.stop() == 0
    assert verify(receiver.received[0], secret)["data"]["plan_manager_id"] == api.plan_manager_id
    # In the same database, other tests leave endpoints whose secrets are encrypted with the keys of their servers.
    lines = [line for line in worker.lines if "which PLANKEEPER_SECRET_KEY_FILE does not contain" not in line]
    [started] = [json.loads(line) for line in lines]
    assert started["event"] == "the webhook worker is started"
    assert {"version", "commit", "python", "database_host", "schema", "settings"} <= set(started)


def test_a_worker_without_a_key_file_starts_with_a_warning(server: RunningServer) -> None:
    with running_command("webhook-worker", PLANKEEPER_DATABASE_URL=server.dsn) as worker:
        worker.wait_for_line("the webhook worker is started")
    warning = json.loads(worker.lines[0])
    assert (warning["level"], warning["event"]) == ("warning", "the configuration needs attention")
    assert warning["reason"].startswith("PLANKEEPER_SECRET_KEY_FILE is not set")


def test_a_worker_without_a_database_reports_it() -> None:
    done = run_plankeeper("webhook-worker", PLANKEEPER_DATABASE_URL="postgresql://127.0.0.1:1/none")
    assert done.returncode == 1
    line = json.loads(done.stderr)
    assert (line["event"], line["reason"], line["database_host"], line["error"]) == (
        "the program cannot start", "The database is unavailable", "127.0.0.1:1", "ConnectionRefusedError",
    )  # fmt: skip


# Listening


def listen_arguments(api: Client) -> tuple[str, ...]:
    """Which server and which plan manager. The key is in the environment, as `API_KEY` says it."""
    return ("listen", "--url", str(api.http.base_url), "--plan-manager", api.plan_manager_id)


def test_listen_prints_events_and_forwards_them_without_the_database(api: Client, receiver: Receiver) -> None:
    api.create("/note-types", {"note_type": "Before"})
    wait_until(lambda: len(api.get("/events").json()["data"]) == 2)
    forwarding = ("--forward-to", f"{receiver.url}/hooks", "--payload", "full", "--type", "note_type.*")
    own = {"KEY": api.key, "PLANKEEPER_DATABASE_URL": "postgresql://127.0.0.1:1/none"}
    with running_command(*listen_arguments(api), *forwarding, **own) as listening:
        secret = listening.wait_for_line("Signed with the secret ").split()[-1]
        listening.wait_for_line("Listening for events.")
        api.create("/providers", {"entity_name": "Of another type"})
        made = api.create("/note-types", {"note_type": "During"})
        line = listening.wait_for_line("note_type.created")
        wait_until(lambda: receiver.received)
        assert listening.stop(signal.SIGINT) == 130
    assert line.split()[1:5] == ["note_type.created", str(made["id"]), "204", line.split()[4]]
    [came] = receiver.received
    assert verify(came, secret)["data"]["object"] == made
    assert "provider.created" not in "".join(listening.lines)


def test_listen_forwards_the_message_that_an_endpoint_receives(
    server: RunningServer, api: Client, receiver: Receiver
) -> None:
    own = {"PLANKEEPER_DATABASE_URL": server.dsn, "PLANKEEPER_SECRET_KEY_FILE": str(shared_key_file())}
    endpoint = api.create("/webhook-endpoints", {"url": f"{receiver.url}/endpoint", "payload": "full"})
    secret = ("--secret", endpoint["secret"], "--payload", "full")
    forwarding = ("--forward-to", f"{receiver.url}/listen", *secret)
    with (
        running_command("webhook-worker", **own | ALLOWED_NETWORKS),
        running_command(*listen_arguments(api), *forwarding, KEY=api.key) as listening,
    ):
        listening.wait_for_line("Listening for events.")
        created = api.create("/providers", {"entity_name": "Ironbark Therapy"})
        api.put(f"/providers/{created['id']}", {"entity_name": "Ironbark"})
        wait_until(lambda: event_types(receiver).count("provider.updated") == 2)
    updates = [each for each in receiver.received if verify(each, endpoint["secret"])["type"] == "provider.updated"]
    assert updates[0].body == updates[1].body
    assert updates[0].headers["webhook-id"] == updates[1].headers["webhook-id"]


def test_listen_waits_for_a_server_that_is_away_or_busy(api: Client, receiver: Receiver) -> None:
    event = {
        "id": "019a0000-0000-7000-8000-0000000000e1", "type": "note_type.created", "resource": {
            "kind": "note_type", "id": "7"}, "created_at": "2026-01-01T00:00:00Z", "sequence": 1, "data": None,
        "actor": {"kind": "system", "id": None, "name": None}, "previous": None, "request_id": None,
    }  # fmt: skip
    newest = {"limit": 100, "offset": 0, "has_more": False, "total": None, "next_cursor": "0"}
    busy = {"success": False, "error": "rate_limit_exceeded", "detail": "Too many requests.", "request_id": "1"}
    responses = [
        (429, {"retry-after": "1"}, json.dumps(busy).encode()),
        (503, {"retry-after": "1"}, b"<h1>Service Unavailable</h1>"),
        (200, {}, json.dumps({"data": [], "pagination": newest}).encode()),
        (200, {}, json.dumps({"data": [event], "pagination": newest | {"next_cursor": event["id"]}}).encode()),
    ]
    receiver.respond = lambda _headers, _body: responses.pop(0) if responses else (401, {}, b"")
    own = {"KEY": api.key, "BASE": receiver.url, "PLAN_MANAGER": api.plan_manager_id}
    with running_command("listen", **own) as listening:
        assert listening.wait() == 1
    assert [line.partition("  ")[2] or line for line in listening.lines] == [
        "Trying again: the server responded with 429: Too many requests.",
        "Trying again: the server responded with 503.",
        "Listening for events. Press Ctrl-C to stop.",
        "note_type.created  7",
        "Error: The server responded with 401. Set KEY or --key to a valid API key.",
    ]
    assert receiver.received[-1].headers["authorization"] == f"Bearer {api.key}"
    with running_command("listen", **own | {"BASE": "http://127.0.0.1:1"}) as listening:
        line = listening.wait_for_line("Trying again: ")
    assert line == "Trying again: cannot connect to http://127.0.0.1:1/api/public/v1: Connection refused."


@pytest.mark.parametrize(
    "arguments, wrong",
    [
        (["--url", "localhost:3000"], "must be an http:// or https:// URL with a host"),
        (["--forward-to", "localhost:3000"], "must be an http:// or https:// URL with a host"),
        (["--forward-to", "http://["], "must be an http:// or https:// URL with a host"),
        (["--forward-to", "http://localhost:x/"], "must be an http:// or https:// URL with a host"),
        (["--forward-to", "http://127.0.0.1:1", "--secret", "whsec_short"], "must be whsec_ and the base64 of"),
        (["--key", "plk_\n"], "must be an API key, plk_..."),
    ],
)
def test_listen_rejects_invalid_arguments(api: Client, arguments: list[str], wrong: str) -> None:
    done = run_plankeeper(*listen_arguments(api), *arguments, KEY=api.key)
    assert done.returncode == 2
    assert wrong in done.stderr


def test_listen_stops_with_the_reason_of_the_server(server: RunningServer, api: Client) -> None:
    another_plan_manager = ("--plan-manager", "019a0000-0000-7000-8000-00000000dead")
    for arguments, wrong in [
        (("--key", "plk_wrong"), "The server responded with 401: "),
        (another_plan_manager, "The server responded with 403: "),
        (("--type", "participant.update"), "'participant.update' is not an event type; did you mean"),
        (("--url", f"{server.url}/console"), "The server responded with 404"),
        (("--url", f"{server.url}/openapi.json?"), "The server responded with 404"),
    ]:
        done = run_plankeeper(*listen_arguments(api), *arguments, KEY=api.key)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
        assert wrong in done.stderr
    without_key = run_plankeeper(*listen_arguments(api))
    assert without_key.returncode == 2
    assert "Missing option '--key'" in without_key.stderr


def test_listen_stops_if_the_feed_no_longer_has_its_place(api: Client, receiver: Receiver) -> None:
    newest = {"limit": 100, "offset": 0, "has_more": False, "total": None, "next_cursor": "0"}
    expired = {"success": False, "error": "cursor_expired", "detail": "The event is gone.", "request_id": "1"}
    responses = [(200, {"data": [], "pagination": newest}), (400, expired)]

    def respond(_headers: object, _body: bytes) -> tuple[int, dict[str, str], bytes]:
        status, body = responses.pop(0)
        return status, {}, json.dumps(body).encode()

    receiver.respond = respond
    done = run_plankeeper(*listen_arguments(api), "--url", receiver.url, KEY=api.key)
    reason = "The server responded with 400: The event is gone"
    hint = "Start the command again to continue with new events"
    assert (done.returncode, done.stderr) == (1, f"Error: {reason}. {hint}.\n")
    receiver.respond = lambda _headers, _body: (200, {}, b"<h1>Welcome</h1>")
    done = run_plankeeper(*listen_arguments(api), "--url", receiver.url, KEY=api.key)
    assert "is not a page of events. --url must be the address of a Plankeeper server." in done.stderr
