"""Two servers, each with its own copy of the key file: a rotation step by step, while people and programs use both."""

import json
import re
import shutil
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from pyotp.totp import TOTP
from standardwebhooks import Webhook, WebhookVerificationError

from plankeeper.core.encryption.cipher import create_key_file, read_keys
from support.client import Client
from support.cluster import SharedCluster, execute
from support.console import PASSWORD, Account, Browser
from support.program import ServeProcess, run_plankeeper
from support.receiver import ReceivedRequest, Receiver
from support.server import wait_until

ROUNDS_PER_STEP = 4  # of each user, at least
EMAIL = "ada@example.com"
TWO_FACTOR = "/console/account/two-factor"
# A copy empties the file before it writes the keys. A server that reads it in between keeps the previous keys.
READ_WHILE_COPIED = "the key file cannot be used; the keys that were read before remain in use"


class User(threading.Thread):
    """Repeats a round of requests with one server after the other, until it is stopped or a request fails."""

    def __init__(self, urls: list[str], play: Callable[[str, str], None]) -> None:
        super().__init__(daemon=True)
        self._urls, self._play = urls, play
        self._stopping = threading.Event()
        self.rounds = 0
        self.error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            for number in count():
                if self._stopping.is_set():
                    return
                self._play(self._urls[number % 2], self._urls[(number + 1) % 2])
                self.rounds += 1
        except BaseException as error:  # noqa: BLE001 - reported by the test's thread
            self.error = error

    def stop(self) -> None:
        self._stopping.set()
        self.join(60)


class WebhookProgram:
    """Creates endpoints with one server, and uses them with the other. Knows all secrets that were ever valid."""

    def __init__(self, key: str, plan_manager_id: str, receiver_url: str) -> None:
        self._key, self._plan_manager_id, self._receiver_url = key, plan_manager_id, receiver_url
        self.secrets = defaultdict[str, list[str]](list)
        self.sent = Counter[str]()

    def play(self, first_url: str, second_url: str) -> None:
        first = Client(first_url, self._key, self._plan_manager_id)
        second = Client(second_url, self._key, self._plan_manager_id)
        retried = {"headers": {"Idempotency-Key": str(uuid4())}}
        body = {"url": self._receiver_url, "event_types": ["participant.*"]}
        created, replayed = (each.post("/webhook-endpoints", body, **retried) for each in (first, second))
        assert (created.status_code, replayed.content) == (201, created.content), replayed.text
        id_ = created.json()["id"]
        self.secrets[id_].append(created.json()["secret"])
        self._test(second, id_)
        rotated = second.post(f"/webhook-endpoints/{id_}/rotate-secret", **retried)
        again = first.post(f"/webhook-endpoints/{id_}/rotate-secret", **retried)
        assert (rotated.status_code, again.content) == (200, rotated.content), again.text
        self.secrets[id_].append(rotated.json()["secret"])
        self._test(first, id_)
        deliveries = f"/webhook-endpoints/{id_}/deliveries"
        wait_until(lambda: {each["status"] for each in first.get(deliveries).json()["data"]} == {"succeeded"})
        attempts = [len(each["attempts"]) for each in first.get(deliveries).json()["data"]]
        assert attempts == [1, 1]
        if len(self.secrets) > 8:  # the others stay, with a new and an old secret
            assert first.delete(f"/webhook-endpoints/{id_}").status_code == 200
        first.http.close()
        second.http.close()

    def _test(self, client: Client, id_: str) -> None:
        response = client.post(f"/webhook-endpoints/{id_}/test")
        assert response.status_code == 200, response.text
        self.sent[id_] += 1

    def verify(self, request: ReceivedRequest) -> str:
        """The endpoint that a request was sent for."""
        id_ = json.loads(request.body)["data"]["resource"]["id"]
        valid = [secret for secret in self.secrets[id_] if _verifies(secret, request)]
        assert valid, request
        return id_


def _verifies(secret: str, request: ReceivedRequest) -> bool:
    try:
        Webhook(secret).verify(request.body.decode(), request.headers)
    except WebhookVerificationError:
        return False
    return True


class ConsolePerson:
    """Signs in with two-factor authentication, turns it off and on again: the other server stores the new secret."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._secret: str | None = None

    def play(self, first_url: str, _second_url: str) -> None:
        browser = Browser(first_url)
        response = browser.sign_in(Account(EMAIL, UUID(int=0)))
        assert response.status_code == 303, response.text
        if self._secret:
            assert response.headers["location"] == "/console/two-factor"
            completed = browser.submit("/console/two-factor", {"code": self._code()}, "/console/two-factor")
            assert completed.status_code == 303, completed.text
            off = browser.submit(f"{TWO_FACTOR}/off", {"password": PASSWORD, "code": self._code()})
            assert off.status_code == 303, off.text
        page = browser.get(TWO_FACTOR).text
        match = re.search(r'name="secret" value="([A-Z2-7]{32})"', page)
        assert match, page
        self._secret = match[1]
        on = browser.submit(TWO_FACTOR, {"secret": self._secret, "code": self._code(), "password": PASSWORD})
        assert on.status_code == 200, on.text
        browser.http.close()

    def _code(self) -> str:
        """A code. It may be used again, as if 30 seconds had passed."""
        execute(self._dsn, "update accounts set totp_counter = 0")
        assert self._secret
        return TOTP(self._secret).generate_otp(int(time.time()) // 30)


class TwoServers:
    """Two servers on one database, each with its own copy of the key file. Commands use the first one's."""

    def __init__(self, dsn: str, folder: Path) -> None:
        self.files = [folder / "first.keys", folder / "second.keys"]
        create_key_file(self.files[0])
        self.copy()
        self.settings = {"PLANKEEPER_DATABASE_URL": dsn, "PLANKEEPER_SECRET_KEY_FILE": str(self.files[0])}
        more = {
            "PLANKEEPER_DATABASE_URL": dsn,
            "PLANKEEPER_WEBHOOK_WORKER": "on",
            "PLANKEEPER_WEBHOOK_ALLOWED_NETWORKS": "127.0.0.1",
            "PLANKEEPER_AUTH_FAILURE_RATE_LIMIT": "off",
            "PLANKEEPER_SIGN_IN_RATE_LIMIT": "off",
        }
        self.servers = [ServeProcess(folder, **more, PLANKEEPER_SECRET_KEY_FILE=str(file)) for file in self.files]

    def copy(self) -> None:
        """As an operator would: the file's content is replaced in place."""
        shutil.copyfile(*self.files)

    def command(self, *arguments: str, stdin: bytes | None = None) -> list[str]:
        done = run_plankeeper(*arguments, stdin=stdin, **self.settings)
        assert done.returncode == 0, done
        return done.stdout.splitlines()

    def usage(self) -> dict[str, int]:
        """The number of secrets by key."""
        return {line.split()[0]: int(line.split()[2].replace(",", "")) for line in self.command("secret-key", "list")}

    def key_ids(self) -> list[list[str]]:
        return [[key.id for key in read_keys(file)] for file in self.files]


@pytest.fixture
def two(cluster: SharedCluster, tmp_path: Path) -> Iterator[TwoServers]:
    dsn = cluster.new_database()
    servers = TwoServers(dsn, tmp_path)
    yield servers
    for each in servers.servers:
        assert each.stop() == 0
    cluster.drop(dsn)


def play_rounds(users: list[User]) -> None:
    """Wait until each user has finished some more rounds."""
    targets = [each.rounds + ROUNDS_PER_STEP for each in users]

    def is_finished() -> bool:
        for each in users:
            if each.error:
                raise each.error
        return all(each.rounds >= target for each, target in zip(users, targets, strict=True))

    wait_until(is_finished, 180)


def test_a_rotation_interrupts_neither_server(two: TwoServers, receiver: Receiver) -> None:
    [plan_manager_id] = two.command("plan-managers", "create", "--name", "Two servers")
    [key] = two.command("keys", "create", "--name", "program", "--plan-manager", plan_manager_id)
    owner: list[Any] = ["--email", EMAIL, "--name", "Ada", "--plan-manager", plan_manager_id, "--role", "owner"]
    two.command("accounts", "create", *owner, "--password-stdin", stdin=PASSWORD.encode())
    program = WebhookProgram(key, plan_manager_id, receiver.url)
    person = ConsolePerson(two.settings["PLANKEEPER_DATABASE_URL"])
    urls = [each.url for each in two.servers]
    users = [User(urls, program.play), User(urls, person.play)]
    try:
        _rotate(two, users)
    finally:
        for each in users:
            each.stop()
    assert [each.error for each in users] == [None, None]
    wait_until(lambda: len(receiver.received) == program.sent.total())
    assert Counter(program.verify(each) for each in receiver.received) == program.sent
    lines = [line for each in two.servers for line in each.lines if "error" in line]
    assert not [line for line in lines if READ_WHILE_COPIED not in line]


def _rotate(two: TwoServers, users: list[User]) -> None:
    [[old_id], _] = two.key_ids()
    play_rounds(users)

    two.command("secret-key", "rotate", "--add-key")
    play_rounds(users)  # only the first server has the new key, which only decrypts
    two.copy()
    play_rounds(users)
    assert set(two.usage()) >= {old_id}
    new_id = two.key_ids()[0][1]
    assert two.key_ids() == [[old_id, new_id]] * 2

    two.command("secret-key", "rotate", "--promote", new_id)
    assert two.key_ids() == [[new_id, old_id], [old_id, new_id]]
    play_rounds(users)  # the servers encrypt with different keys
    usage = two.usage()
    assert (usage[new_id] > 0, usage[old_id] > 0) == (True, True)
    refused = run_plankeeper("secret-key", "rotate", "--drop-old-keys", **two.settings)
    assert refused.returncode == 1
    assert "Old keys are in use" in refused.stderr
    two.copy()
    play_rounds(users)

    two.command("secret-key", "rotate")
    assert two.usage()[old_id] == 0
    two.command("secret-key", "rotate", "--drop-old-keys")
    play_rounds(users)
    two.copy()
    play_rounds(users)
    assert two.key_ids() == [[new_id]] * 2
    assert set(two.usage()) == {new_id}
