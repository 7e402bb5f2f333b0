"""Mixed load from several clients, each request repeated until there is a response, and the expected records."""

import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import closing
from itertools import pairwise
from typing import Any
from uuid import uuid4

import httpx

from support.client import NO_TLS, PREFIX
from support.server import wait_until
from system.faults.access import Credentials

# Seconds after which a request that is still not answered is a fault. A killed server starts again after PostgreSQL has
# written a checkpoint, which takes more than 20 seconds on a busy disk.
REQUEST_TIMEOUT = 240
STATES = ("NSW", "QLD", "VIC")
ExpectedEvent = tuple[str, str | None]  # an event's type, and the first name after it


class Load:
    """Clients that write until `finish`. No two write to the same participant, so each knows what must be there."""

    def __init__(
        self,
        address: Callable[[], str],
        access: Credentials,
        clients: int = 6,
        seed: int = 1,
        request_timeout: float = REQUEST_TIMEOUT,
        max_pause: float = 0.01,
        writer: "Callable[[Load, str, random.Random], Writer] | None" = None,
    ) -> None:
        self.address = address
        self.access = access
        self.request_timeout = request_timeout
        self.max_pause = max_pause  # seconds between two requests of a client: the machine has work to do besides
        self.unanswered: Counter[str] = Counter()  # what came instead of an answer, and how often
        self.errors: list[str] = []
        self.stopping = threading.Event()
        self.writers = [
            (writer or Writer)(self, f"writer {number}", random.Random(f"{seed}.{number}")) for number in range(clients)
        ]
        self.follower = FeedReader(self)
        for each in (*self.writers, self.follower):
            each.thread.start()

    @property
    def acknowledged(self) -> int:
        return sum(len(writer.acknowledged) for writer in self.writers)

    @property
    def retries(self) -> int:
        """How often a write was sent again."""
        return sum(writer.retries for writer in self.writers)

    def seconds_to_next_write(self, moment: float) -> float | None:
        """Seconds from a moment to the next acknowledgement of a write; null while there is none."""
        return min((at - moment for writer in self.writers for at in writer.acknowledged if at > moment), default=None)

    def longest_gap(self, since: float) -> float:
        """The most seconds from a moment on in which no write was acknowledged to anybody."""
        times = sorted(moment for writer in self.writers for moment in writer.acknowledged if moment > since)
        return max(after - before for before, after in pairwise([since, *times]))

    def finish(self, is_sequenced: Callable[[], bool]) -> None:
        """Wait for the last response of each client; `is_sequenced` says whether every event has its position."""
        self.stopping.set()
        for each in self.writers:
            each.thread.join(self.request_timeout + 30)
        wait_until(is_sequenced)
        self.follower.finish()
        assert self.errors == []

    def rows(self) -> dict[str, dict[str, Any]]:
        return {ident: row for writer in self.writers for ident, row in writer.rows.items()}

    def members(self) -> dict[str, str]:
        """The first name of each team member by its id."""
        return {ident: name for writer in self.writers for ident, (_, name) in writer.members.items()}

    def expected_events(self) -> dict[str, list[ExpectedEvent]]:
        """The changes of each resource, in order."""
        return {ident: list(done) for writer in self.writers for ident, done in writer.expected_events.items()}


class Client:
    """A client in a thread of its own. An unexpected response is an error of the load."""

    def __init__(self, load: Load, name: str) -> None:
        self.load = load
        self.name = name
        self.thread = threading.Thread(target=self._run, name=name, daemon=True)

    def _run(self) -> None:
        try:
            with closing(httpx.Client(timeout=20, verify=NO_TLS, headers=self.load.access.headers)) as self.http:
                self.work()
        except Exception as error:  # noqa: BLE001 - whatever it is, the test must hear of it
            self.load.errors.append(f"{self.name}: {type(error).__name__}: {error}")

    def work(self) -> None:
        raise NotImplementedError

    def send(self, method: str, path: str, **more: Any) -> httpx.Response | None:
        """The response; None while the service is unavailable."""
        try:
            response = self.http.request(method, f"{self.load.address()}{PREFIX}{path}", **more)
        except httpx.TransportError as error:
            self.load.unanswered[type(error).__name__] += 1
            return None
        if response.status_code == 503:
            assert response.json()["error"] == "service_unavailable", response.text
            assert response.headers["retry-after"].isdecimal()
            self.load.unanswered["503"] += 1
            return None
        if response.status_code == 409 and response.json()["error"] == "idempotency_in_progress":
            self.load.unanswered["409"] += 1
            return None  # the first try still holds its place; so it is not known how it ends
        return response


class Writer(Client):
    """Creates, updates, deletes and reads participants and their team members."""

    def __init__(self, load: Load, name: str, chance: random.Random) -> None:
        super().__init__(load, name)
        self.rows: dict[str, dict[str, Any]] = {}
        self.members: dict[str, tuple[str, str]] = {}  # participant and first name
        self.expected_events: dict[str, list[ExpectedEvent]] = defaultdict(list)
        self.acknowledged: list[float] = []  # when each write was
        self.retries = 0
        self.random = chance
        self._count = 0

    def work(self) -> None:
        acts = (
            self._create,
            self._update,
            self._delete,
            self._add_member,
            self._rename_member,
            self._remove_member,
            self._read,
        )
        while not self.load.stopping.is_set():
            act = self._create if not self.rows else self.random.choices(acts, (35, 20, 5, 15, 5, 5, 15))[0]
            act()
            time.sleep(self.random.uniform(0, self.load.max_pause))

    def _send_until_answered(self, method: str, path: str, **more: Any) -> tuple[httpx.Response, int]:
        """The response, and the number of failed attempts before it."""
        deadline = time.monotonic() + self.load.request_timeout
        before = 0
        while True:
            response = self.send(method, path, **more)
            if response is not None:
                return response, before
            assert time.monotonic() < deadline, f"no answer in {self.load.request_timeout} s"
            before += 1
            self.retries += 1
            time.sleep(0.05)

    def write(self, method: str, path: str, body: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        """The response of a write, which is sent until it is answered. `more` can have a content instead of `body`."""
        headers = {"Idempotency-Key": str(uuid4())} if method == "POST" else {}
        response, before = self._send_until_answered(method, path, json=body, headers=headers, **more)
        # A second DELETE finds nothing where the first had been done and its answer was lost.
        gone = method == "DELETE" and before and response.status_code == 404
        assert response.status_code in (200, 201) or gone, (method, path, before, response.text)
        self.acknowledged.append(time.monotonic())
        return response.json()

    def new_name(self) -> str:
        self._count += 1
        return f"{self.name} {self._count}"

    def _pick_participant(self) -> str:
        return self.random.choice([*self.rows])

    def _create(self) -> None:
        name = self.new_name()
        participant = self.write("POST", "/participants", {"first_name": name, "state": self.random.choice(STATES)})
        self.rows[participant["id"]] = participant
        self.expected_events[participant["id"]].append(("participant.created", name))

    def _update(self) -> None:
        ident, name = self._pick_participant(), self.new_name()
        self.rows[ident] = self.write("PUT", f"/participants/{ident}", {"first_name": name})
        self.expected_events[ident].append(("participant.updated", name))

    def _delete(self) -> None:
        ident = self._pick_participant()
        self.write("DELETE", f"/participants/{ident}")
        del self.rows[ident]
        self.expected_events[ident].append(("participant.deleted", None))
        for member in [member for member, (participant, _) in self.members.items() if participant == ident]:
            self._forget_member(member)

    def _add_member(self) -> None:
        participant, name = self._pick_participant(), self.new_name()
        member = self.write("POST", f"/participants/{participant}/team-members", {"first_name": name})
        self.members[member["id"]] = (participant, name)
        self.expected_events[member["id"]].append(("team_member.created", name))

    def _rename_member(self) -> None:
        if self.members:
            member, name = self.random.choice([*self.members]), self.new_name()
            participant, _ = self.members[member]
            self.write("PUT", f"/participants/{participant}/team-members/{member}", {"first_name": name})
            self.members[member] = (participant, name)
            self.expected_events[member].append(("team_member.updated", name))

    def _remove_member(self) -> None:
        if self.members:
            member = self.random.choice([*self.members])
            self.write("DELETE", f"/participants/{self.members[member][0]}/team-members/{member}")
            self._forget_member(member)

    def _forget_member(self, member: str) -> None:
        del self.members[member]
        self.expected_events[member].append(("team_member.deleted", None))

    def _read(self) -> None:
        ident = self._pick_participant()
        response = self.send("GET", f"/participants/{ident}")
        if response is not None:
            assert (response.status_code, response.json()) == (200, self.rows[ident])


class FeedReader(Client):
    """Follows the feed all the while, and then to its end."""

    def __init__(self, load: Load) -> None:
        super().__init__(load, "follower")
        self.seen: list[str] = []
        self._finishing = threading.Event()

    def work(self) -> None:
        while True:
            last = self._finishing.is_set()
            while new := self._read_page():
                pass
            if last and new is False:
                return
            time.sleep(0.05)

    def _read_page(self) -> bool | None:
        """Whether there was a new event; None without a response."""
        params = {"after": self.seen[-1] if self.seen else "0", "limit": "1000"}
        response = self.send("GET", "/events", params=params)
        if response is None:
            return None
        assert response.status_code == 200, response.text
        self.seen += [each["id"] for each in response.json()["data"]]
        return bool(response.json()["data"])

    def finish(self) -> None:
        """Go to the end once more: whatever will be in the feed is."""
        self._finishing.set()
        self.thread.join(30)
