"""The receivers of docs/webhooks.md, as programs of their own, verify real deliveries with the official libraries."""

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Self

import httpx
import pytest

from plankeeper.core.json import to_json
from plankeeper.webhooks.messages import build_headers, new_secret
from support.folder import temporary_folder
from support.pages import PROJECT
from support.program import ServeProcess, environment, run_program
from support.server import wait_until

EXAMPLES = PROJECT / "docs/examples"
NODE_MODULES = Path(__file__).parent / "node_modules"
ENDPOINTS = "/webhook-endpoints"
DELIVERY_COUNT = 1000 if os.environ.get("PLANKEEPER_SOAK") == "1" else 200


def require_node() -> None:
    """Skip a test that needs Node where it is missing; in continuous integration, fail it."""
    reason = ""
    if not shutil.which("node"):
        reason = (
            "node is missing: install it with npm (Debian: apt-get install nodejs npm), run scripts/node_modules.sh"
        )
    elif not (NODE_MODULES / "standardwebhooks").is_dir():
        reason = "the npm package standardwebhooks is missing: run scripts/node_modules.sh"
    if reason:
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)


LANGUAGES = ["python", "node"]


class ExampleReceiver:
    """A receiver of the documentation on a free port, while in `with`; `stored` are the messages that it stored."""

    def __init__(self, language: str, folder: Path, secret: str) -> None:
        file = EXAMPLES / {"python": "receiver.py", "node": "receiver.mjs"}[language]
        if language == "node":  # it looks for packages beside itself
            folder.mkdir()
            (folder / "node_modules").symlink_to(NODE_MODULES)
            file = Path(shutil.copy(file, folder))
        program = {"python": [sys.executable, "-u"], "node": ["node"]}[language]
        self.process = subprocess.Popen(
            [*program, str(file), "0"], env=environment({"WEBHOOK_SECRET": secret}),
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        self.stored: list[list[str]] = []  # the words of each line
        self._reader = threading.Thread(target=self._read, daemon=True)
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline().removeprefix("Listening on port "))
        self.url = f"http://127.0.0.1:{self.port}/hooks"
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        self.stored += (line.split() for line in iter(self.process.stdout.readline, ""))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(20)
        self._reader.join(20)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def post(self, headers: list[tuple[str, str]], body: bytes) -> int:
        return httpx.post(self.url, headers=headers, content=body, timeout=20).status_code


@pytest.fixture(params=LANGUAGES)
def language(request: pytest.FixtureRequest) -> str:
    if request.param == "node":
        require_node()
    return request.param


class Installation:
    """A server with its worker, as a user runs it, and a client of it."""

    def __init__(self, folder: Path) -> None:
        self.settings = {"PLANKEEPER_DATA_DIR": str(folder), "PLANKEEPER_WEBHOOK_ALLOWED_NETWORKS": "127.0.0.1"}
        self.serving = ServeProcess(folder, "--demo", PLANKEEPER_WEBHOOK_WORKER="on", **self.settings)
        self.plan_manager_id = self.serving.output_value("Plan manager:")
        # As the guides set them.
        self.variables = {
            "BASE": self.serving.url,
            "KEY": self.serving.output_value("API key:"),
            "PLAN_MANAGER": self.plan_manager_id,
        }
        self.http = self.serving.client()

    def stop(self) -> None:
        self.http.close()
        self.serving.stop()

    def send(self, method: str, path: str, **body: Any) -> Any:
        response = self.http.request(method, path, json=body or None)
        assert response.is_success, response.text
        return response.json()

    def walk(self, path: str, **filters: str) -> list[Any]:
        found: list[Any] = []
        after: str | None = "0"
        while after:
            page = self.http.get(path, params={"limit": 100, "after": after, **filters}).json()
            found += page["data"]
            after = page["pagination"]["next_cursor"]
        return found


@pytest.fixture(scope="module")
def installation(copy_sample_data: Callable[[Path], None]) -> Iterator[Installation]:
    with temporary_folder() as folder:
        copy_sample_data(folder)
        running = Installation(folder)
        yield running
        running.stop()


def test_a_receiver_verifies_a_thousand_real_deliveries(
    installation: Installation, language: str, tmp_path: Path
) -> None:
    payload = {"python": "thin", "node": "full"}[language]
    made = installation.send(
        "POST", ENDPOINTS, url="https://hooks.example.com", event_types=["provider.*"], payload=payload
    )
    before = {each["id"] for each in installation.walk("/providers")}
    lines = "".join(to_json({"entity_name": f"{language} {number} é"}) + "\n" for number in range(DELIVERY_COUNT))
    with ExampleReceiver(language, tmp_path / "receiver", made["secret"]) as receiver:
        installation.send("PUT", f"{ENDPOINTS}/{made['id']}", url=receiver.url)
        imported = run_program(
            "import", "providers", "-", "--plan-manager", installation.plan_manager_id, "--notify",
            stdin=lines.encode(), **installation.settings,
        )  # fmt: skip
        assert f"{DELIVERY_COUNT:,} created" in imported.stdout, imported
        # A receiver stores an event before it responds.
        deliveries = f"{ENDPOINTS}/{made['id']}/deliveries"
        wait_until(lambda: len(installation.walk(deliveries, status="succeeded")) == DELIVERY_COUNT)
    providers = {each["id"] for each in installation.walk("/providers")} - before
    feed = [
        each for each in installation.walk("/events", type="provider.created") if each["resource"]["id"] in providers
    ]
    assert sorted(receiver.stored) == sorted([each["id"], "provider.created", each["resource"]["id"]] for each in feed)
    assert len(receiver.stored) == DELIVERY_COUNT
    assert {each["event_id"] for each in installation.walk(deliveries)} == {each["id"] for each in feed}
    installation.send("DELETE", f"{ENDPOINTS}/{made['id']}")


def test_a_receiver_verifies_with_either_secret_after_a_rotation(
    installation: Installation, language: str, tmp_path: Path
) -> None:
    made = installation.send("POST", ENDPOINTS, url="https://hooks.example.com", event_types=["api_key.revoked"])
    place = f"{ENDPOINTS}/{made['id']}"
    rotated = installation.send("POST", f"{place}/rotate-secret")
    for number, secret in enumerate([made["secret"], rotated["secret"]]):
        with ExampleReceiver(language, tmp_path / str(number), secret) as receiver:
            installation.send("PUT", place, url=receiver.url)
            event_id = installation.send("POST", f"{place}/test")["event_id"]
            # Otherwise it would be sent again, to the next receiver.
            succeeded = partial(installation.walk, f"{place}/deliveries", status="succeeded")
            wait_until(lambda count=number + 1, walk=succeeded: len(walk()) == count)
        assert receiver.stored == [[event_id, "webhook_endpoint.tested", made["id"]]]
    installation.send("DELETE", place)


def test_a_receiver_rejects_altered_messages(language: str, tmp_path: Path) -> None:
    secret, now = new_secret(), int(time.time())
    body = b'{"type":"note_type.created","data":{"resource":{"id":"1"}}}'
    good = build_headers("first", now, body, [secret])
    late, early = (build_headers("first", now + seconds, body, [secret]) for seconds in (-400, 400))
    with ExampleReceiver(language, tmp_path / "receiver", secret) as receiver:
        assert receiver.post(good, body.replace(b'"1"', b'"2"')) == 401
        assert receiver.post(good, body + b" ") == 401
        assert receiver.post(late, body) == 401
        assert receiver.post(early, body) == 401
        assert receiver.post(build_headers("first", now, body, [new_secret()]), body) == 401
        assert receiver.post(with_header(good, "webhook-timestamp", str(now + 1)), body) == 401
        assert receiver.post(with_header(good, "webhook-id", "second"), body) == 401
        assert receiver.post(with_header(good, "webhook-signature", "junk"), body) == 401
        assert receiver.post([each for each in good if each[0] != "webhook-signature"], body) == 401
        # A message that is sent again is accepted, and stored once.
        assert receiver.post(good, body) == 204
        assert receiver.post(build_headers("first", now - 1, body, [secret]), body) == 204
        assert receiver.post(build_headers("second", now, body, [new_secret(), secret]), body) == 204
    assert receiver.stored == [["first", "note_type.created", "1"], ["second", "note_type.created", "1"]]


def with_header(headers: list[tuple[str, str]], name: str, value: str) -> list[tuple[str, str]]:
    return [(each, value if each == name else old) for each, old in headers]


def _assert_exits(program: subprocess.Popen[str]) -> None:
    """Fails with where the program stands, if it does not end."""
    try:
        program.communicate(timeout=20)
    except subprocess.TimeoutExpired:
        program.send_signal(signal.SIGABRT)
        pytest.fail(f"it did not end:\n{program.communicate(timeout=20)[1]}")


def test_events_are_forwarded_to_a_local_receiver(installation: Installation, language: str, tmp_path: Path) -> None:
    secret = new_secret()
    with ExampleReceiver(language, tmp_path / "receiver", secret) as receiver:
        listening = subprocess.Popen(
            [sys.executable, "-m", "plankeeper", "listen",
             "--forward-to", f"http://localhost:{receiver.port}/hooks", "--secret", secret],
            env=environment(installation.variables) | {"PYTHONFAULTHANDLER": "1"},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            assert listening.stdout is not None
            assert listening.stdout.readline() == f"Signed with the secret {secret}\n"
            assert listening.stdout.readline() == "Listening for events. Press Ctrl-C to stop.\n"
            made = installation.send("POST", "/note-types", note_type="Site visit")
            reported = listening.stdout.readline()
            wait_until(lambda: receiver.stored)
        finally:
            listening.terminate()
            _assert_exits(listening)
    assert re.fullmatch(rf"\d\d:\d\d:\d\d  note_type\.created  {made['id']}  204 \(\d+ ms\)\n", reported)
    [[_, type_, resource_id]] = receiver.stored
    assert (type_, resource_id) == ("note_type.created", str(made["id"]))
