"""Keeping a copy in sync: nothing is missed by `updated_since`, by the feed, or by the documented script."""

import json
import os
import random
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar, Self

import pytest
from uuid_utils.compat import uuid7

from plankeeper.server.embedded_postgres.cluster import Cluster
from support.client import Client
from support.program import ServeProcess, environment, run_program
from support.server import wait_until
from system.faults.access import create_credentials

IS_FULL_RUN = os.environ.get("PLANKEEPER_SOAK") == "1"
SCRIPT = Path(__file__).parents[3] / "docs/examples/keep_copy.py"
IMPORTED = 200_000 if IS_FULL_RUN else 30_000  # in the full run, it takes longer than the margin of Synced-Until
KILLS = 20 if IS_FULL_RUN else 4
POLL_INTERVAL = 0.5  # seconds


class Service:
    """A server with a plan manager, its client, and imports by the command line."""

    def __init__(self, folder: Path, serve: Callable[..., ServeProcess]) -> None:
        self._folder = folder
        self.process = serve(folder, workers=2)
        database = Cluster(folder)
        assert not database.ensure()
        self.dsn = database.dsn
        self.credentials = create_credentials(self.dsn)
        self.client = Client(self.process.url, self.credentials.key, self.credentials.plan_manager_id)

    def import_participants(self, ids: list[str], name: str) -> None:
        self._import("participants", [{"id": each, "last_name": name} for each in ids])

    def import_invoices(self, ids: list[str], description: str) -> None:
        line = {"description": description, "quantity": 1, "unit_price": 10.25, "total_price": 10.25}
        self._import("invoices", [{"id": each, "total": 10.25, "line_items": [line]} for each in ids])

    def _import(self, kind: str, rows: list[dict[str, Any]]) -> None:
        file = self._folder / f"{kind}.jsonl"
        file.write_text("".join(json.dumps(each) + "\n" for each in rows))
        done = run_program(
            "import", kind, str(file), "--plan-manager", str(self.credentials.plan_manager_id),
            PLANKEEPER_DATABASE_URL=self.dsn,
        )  # fmt: skip
        assert done.returncode == 0, done

    def resources(self, path: str, **query: Any) -> dict[str, Any]:
        """The items of a list by their ids; team members by the participant's id, too."""
        found: dict[str, Any] = {}
        after = "0"
        while after:
            page = self.client.get(path, after=after, limit=1000, **query).json()
            for each in page["data"]:
                found[f"{each['participant_id']}/{each['id']}" if path == "/team-members" else each["id"]] = each
            after = page["pagination"]["next_cursor"]
        return found


@pytest.fixture
def service(folder: Path, serve: Callable[..., ServeProcess]) -> Iterator[Service]:
    running = Service(folder, serve)
    with closing(running.client.http):
        yield running


def walk_changes(service: Service, since: str | None) -> tuple[set[str], str]:
    """The ids that changed since a time, and the time for the next read: the first page's Synced-Until."""
    found: set[str] = set()
    after, synced_until = "0", ""
    while after:
        filters = {"updated_since": since} if since else {}
        response = service.client.get("/participants", after=after, limit=1000, **filters)
        page = response.json()
        synced_until = synced_until or response.headers["synced-until"]
        found |= {each["id"] for each in page["data"]}
        after = page["pagination"]["next_cursor"]
    return found, synced_until


def read_feed(service: Service, after: str) -> tuple[set[str], str]:
    """The ids of the participants in the feed after an event, and the last event."""
    found: set[str] = set()
    has_more = True
    while has_more:
        page = service.client.get("/events", after=after, limit=1000, type="participant.*").json()
        found |= {each["resource"]["id"] for each in page["data"]}
        after = page["data"][-1]["id"] if page["data"] else after
        has_more = page["pagination"]["has_more"]
    return found, after


class PollingClient:
    """Reads what has changed in two ways, as long as it is asked to."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._since: str | None = None
        self._event = "0"
        self.changed: set[str] = set()
        self.in_feed: set[str] = set()

    def poll(self) -> None:
        found, self._since = walk_changes(self._service, self._since)
        self.changed |= found
        found, self._event = read_feed(self._service, self._event)
        self.in_feed |= found


def test_a_client_that_polls_during_an_import_misses_nothing(service: Service) -> None:
    ids = {str(uuid7()) for _ in range(IMPORTED)}
    importing = threading.Thread(target=service.import_participants, args=(sorted(ids), "Imported"))
    client, polls, began = PollingClient(service), 0, time.monotonic()
    importing.start()
    while importing.is_alive():
        client.poll()
        polls += 1
        time.sleep(POLL_INTERVAL)
    seconds = time.monotonic() - began
    client.poll()
    assert len(ids - client.changed) == 0  # without waiting

    def is_complete() -> bool:
        client.poll()
        return ids <= client.in_feed

    wait_until(is_complete)
    print(f"{len(ids)} rows imported in one transaction, in {seconds:.1f} s with {polls} polls: 0 missing")  # noqa: T201


class Script:
    """The documented script, killed and started again."""

    def __init__(self, service: Service, file: Path) -> None:
        self._file = file
        self._variables = environment(
            {
                "BASE": service.process.url,
                "KEY": service.credentials.key,
                "PLAN_MANAGER": service.credentials.plan_manager_id,
            }
        )

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait(20)

    def start(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(SCRIPT), str(self._file)], env=self._variables, stdout=subprocess.DEVNULL
        )

    def kill(self) -> None:
        assert self.process.poll() is None, "it has ended by itself"
        self.process.kill()
        self.process.wait(20)

    def copy(self) -> dict[str, dict[str, Any]]:
        """The resources by id, of each kind: none while the script hasn't made its file and its tables."""
        found: dict[str, dict[str, Any]] = {"participant": {}, "team_member": {}, "provider": {}, "invoice": {}}
        with (
            suppress(sqlite3.OperationalError),
            closing(sqlite3.connect(f"file:{self._file}?mode=ro", uri=True)) as copy,
        ):
            for kind, id_, data in copy.execute("select kind, id, data from resources"):
                found[kind][id_] = json.loads(data)
        return found


class RandomWriter:
    """Creates, updates and deletes, as fast as one client can. One person is on several teams, with the same id."""

    NAMES: ClassVar = {"/participants": "last_name", "/providers": "entity_name"}

    def __init__(self, service: Service) -> None:
        self._client = service.client
        self._chance = random.Random(7)
        self._written: dict[str, list[str]] = {path: [] for path in self.NAMES}
        self._members: dict[tuple[str, str], str] = {}

    def write(self) -> None:
        path = self._chance.choice(list(self._written))
        written, body = self._written[path], {self.NAMES[path]: f"Name {self._chance.random()}"}
        if len(written) < 50 or self._chance.random() < 0.3:
            written.append(self._client.create(path, body)["id"])
        elif self._chance.random() < 0.6:
            self._client.put(f"{path}/{self._chance.choice(written)}", body).raise_for_status()
        else:
            last = written.pop(self._chance.randrange(len(written)))
            self._client.delete(f"{path}/{last}").raise_for_status()

    def write_member(self) -> None:
        participants = self._written["/participants"][:20]
        if not participants:
            return
        participant_id, email = self._chance.choice(participants), f"{self._chance.randrange(5)}@example.org"
        path = f"/participants/{participant_id}/team-members"
        if (member_id := self._members.get((participant_id, email))) is None:
            self._members[participant_id, email] = self._client.create(path, {"email": email})["id"]
        elif self._chance.random() < 0.5:
            self._client.put(f"{path}/{member_id}", {"role": f"{self._chance.random()}"}).raise_for_status()
        else:
            self._client.delete(f"{path}/{member_id}").raise_for_status()
            del self._members[participant_id, email]


@contextmanager
def random_writes(service: Service) -> Iterator[None]:
    """Random writes until the end of `with`."""
    stopping, failures, writer = threading.Event(), list[BaseException](), RandomWriter(service)

    def write() -> None:
        try:
            while not stopping.is_set():
                writer.write()
                writer.write_member()
        except BaseException as error:  # noqa: BLE001 - reported by the test
            failures.append(error)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()
    assert not failures, failures


def test_the_documented_script_survives_kills(service: Service, folder: Path) -> None:
    chance = random.Random(3)
    imported = [str(uuid7()) for _ in range(5000)]
    invoices = [str(uuid7()) for _ in range(300)]
    service.import_participants(imported[:2000], "Before")
    service.import_invoices(invoices[:100], "Before")
    with Script(service, folder / "copy.sqlite") as script:
        with random_writes(service):
            for number in range(KILLS):
                time.sleep(chance.uniform(0.3, 2))
                script.kill()
                if number == 1:
                    service.import_participants(imported, "Again")
                    service.import_invoices(invoices, "Again")
                script.start()
        held = invoices[::50]
        wait_until(lambda: len(script.copy()["invoice"]) == len(invoices))
        for each in held:  # an action has an event of its own type
            service.client.post(f"/invoices/{each}/hold", {"reason": "Wait"}).raise_for_status()
        expected = {
            "participant": service.resources("/participants"),
            "team_member": service.resources("/team-members"),
            "provider": service.resources("/providers"),
            "invoice": service.resources("/invoices", include="line_items"),
        }
        assert len(expected["invoice"]) == len(invoices)
        assert [each["claim_status"] for each in expected["invoice"].values()].count("on_hold") == len(held)
        assert {each["line_items"][0]["description"] for each in expected["invoice"].values()} == {"Again"}
        assert len(expected["participant"]) > len(imported)
        ids = [each["id"] for each in expected["team_member"].values()]
        assert len(ids) > len(set(ids))  # somebody is on several teams
        wait_until(lambda: script.copy() == expected)
        script.kill()


def test_the_documented_script_ends_if_its_requests_are_wrong(service: Service, folder: Path) -> None:
    variables = {"BASE": service.process.url, "KEY": service.credentials.key, "PLAN_MANAGER": "no-id"}
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(folder / "copy.sqlite")],
        env=environment(variables), capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "400" in done.stderr
    assert "invalid_plan_manager_id" in done.stderr


def test_the_documented_script_loads_everything_again_if_its_event_is_gone(service: Service, folder: Path) -> None:
    service.client.create("/participants", {"last_name": "One"})
    with Script(service, folder / "copy.sqlite") as script:
        wait_until(lambda: len(script.copy()["participant"]) == 1)
        script.kill()
        with closing(sqlite3.connect(folder / "copy.sqlite")) as copy, copy:
            copy.execute("update cursors set value = ? where name = 'events'", (str(uuid7()),))
        service.client.create("/participants", {"last_name": "Two"})
        script.start()
        wait_until(lambda: len(script.copy()["participant"]) == 2)
        script.kill()
