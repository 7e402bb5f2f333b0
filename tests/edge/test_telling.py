"""What is told of a request: one line in the log, and figures; and nothing of whom it was about."""

import json
import socket
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families as families_of
from uuid_utils.compat import uuid7

from plankeeper.api_keys import service, store
from plankeeper.api_keys.format import hash_key, new_key
from plankeeper.embedded_postgres.cluster import Cluster
from plankeeper.http.context import SYSTEM, WriteContext
from support.client import PREFIX, Client
from support.server import RunningServer, wait_until

MEMBERS = [
    "time", "level", "event", "request_id", "key_id", "plan_manager_id", "method", "route", "status", "duration_ms",
]  # fmt: skip


@pytest.fixture(scope="module")
def talking(cluster: Cluster) -> Iterator[RunningServer]:
    """A server that logs each request."""
    running = RunningServer(cluster.dsn, access_log=True, auth_failure_limit=10**6).start()
    yield running
    running.stop()


@pytest.fixture
def api(talking: RunningServer, new_plan_manager: Callable[[], UUID], new_key: Callable[..., str]) -> Iterator[Client]:
    owner = new_plan_manager()
    client = Client(talking.url, new_key(owner), owner)
    yield client
    client.http.close()


class Log:
    """What the server wrote on standard error."""

    def __init__(self, capfd: pytest.CaptureFixture[str]) -> None:
        self._capfd = capfd
        self.text = ""

    def lines(self, count: int) -> list[dict[str, Any]]:
        """Its lines, once there are so many: a line follows its answer."""

        def enough() -> bool:
            self.text += self._capfd.readouterr().err
            return self.text.count("\n") >= count

        wait_until(enough)
        lines = self.text.split("\n")
        assert lines.pop() == ""
        assert len(lines) == count, self.text
        return [json.loads(line) for line in lines]


@pytest.fixture
def log(api: Client, capfd: pytest.CaptureFixture[str]) -> Log:
    capfd.readouterr()
    return Log(capfd)


def key_id_of(server: RunningServer, key: str) -> str:
    found = server.run(store.get_by_hash(server.db, hash_key(key)))
    assert found is not None
    return str(found.id)


# The log


def test_each_request_has_one_line_that_says_what_was_asked_and_answered(
    talking: RunningServer, api: Client, log: Log
) -> None:
    key, own = key_id_of(talking, api.key), api.plan_manager_id
    one = f"{PREFIX}/participants/{{participant_id}}"
    tag = api.get(f"/note-types/{api.made('/note-types', {'note_type': 'Visit'})['id']}").headers["etag"]
    note = api.get("/note-types").json()["data"][0]["id"]
    started = datetime.now(UTC)
    asked = [
        (api.get("/participants"), key, own, "GET", f"{PREFIX}/participants", 200),
        (api.request("HEAD", "/participants"), key, own, "HEAD", f"{PREFIX}/participants", 200),
        (api.get("/participants", limit=0), key, own, "GET", f"{PREFIX}/participants", 400),
        (api.get(f"/participants/{uuid7()}"), key, own, "GET", one, 404),
        (
            api.request("GET", f"/note-types/{note}", headers={"If-None-Match": tag}),
            key, own, "GET", f"{PREFIX}/note-types/{{note_type_id}}", 304,
        ),
        (api.request("GET", "/participants", headers={"X-Plan-Manager-Id": str(uuid7())}), key, None,
            "GET", f"{PREFIX}/participants", 403),
        (api.send("GET", "/participants"), None, None, "GET", f"{PREFIX}/participants", 401),
        (api.request("PATCH", "/participants"), None, None, "other", f"{PREFIX}/participants", 405),
        (api.request("OPTIONS", "/participants"), None, None, "OPTIONS", f"{PREFIX}/participants", 200),
        (api.get("/nothing/of/ours"), None, None, "GET", None, 404),
    ]  # fmt: skip
    lines = log.lines(len(asked) + 3)[3:]
    for line, (answer, key_id, plan_manager_id, method, route, status) in zip(lines, asked, strict=True):
        assert list(line) == MEMBERS
        moment, duration = datetime.fromisoformat(line.pop("time")), line.pop("duration_ms")
        assert started - timedelta(seconds=1) < moment < datetime.now(UTC) + timedelta(seconds=1)
        assert moment.utcoffset() == timedelta(0)
        assert 0 < duration < 10_000
        assert line == {
            "level": "info", "event": "request", "request_id": answer.headers["x-request-id"], "key_id": key_id,
            "plan_manager_id": plan_manager_id, "method": method, "route": route, "status": status,
        }  # fmt: skip
        assert answer.status_code == status


PERSON = {
    "first_name": "Zebulonia", "last_name": "Quartermaine", "email": "zebulonia@quartermaine.example",
    "participant_number": "430987612", "phone_number": "0491570006", "address_line_1": "77 Wombat Parade",
    "date_of_birth": "1987-03-09", "reason_for_leaving": "Moved to Oodnadatta",
}  # fmt: skip


def test_a_line_tells_nothing_of_a_person(api: Client, log: Log) -> None:
    made = api.made("/participants", PERSON)
    path = f"/participants/{made['id']}"
    member = {"first_name": "Xantippe", "email": "xantippe@quartermaine.example"}
    answers = [
        api.get(path, view="full"),
        api.get("/participants", email=PERSON["email"]),
        api.get("/participants", Zebulonia="Quartermaine"),
        api.get("/participants/Zebulonia"),
        api.get("/Zebulonia/Quartermaine"),
        api.put(path, {"phone_number": 491570006, "Zebulonia": PERSON["email"]}),
        api.post(f"{path}/team-members", member),
        api.post(f"{path}/team-members", member),
        api.request("POST", "/participants", content=json.dumps(PERSON), headers={"Content-Type": "text/Zebulonia"}),
        api.request("GET", path, headers={"X-Plan-Manager-Id": "Zebulonia", "User-Agent": "Quartermaine"}),
        api.delete(path),
    ]
    statuses = [200, 200, 400, 400, 404, 400, 201, 409, 415, 400, 200]
    assert [answer.status_code for answer in answers] == statuses
    log.lines(len(answers) + 1)
    for value in (*PERSON.values(), *member.values(), made["id"], "Zebulonia", "Quartermaine"):
        assert value not in log.text


def test_a_line_tells_nothing_of_a_key(talking: RunningServer, api: Client, log: Log) -> None:
    owner = UUID(api.plan_manager_id)

    async def make_and_revoke() -> str:
        async with talking.db.transaction() as tx:
            call = WriteContext(tx, owner, talking.settings, SYSTEM)
            made = await service.create(call, "Gone", [owner], ["read"], None)
            found = await store.get_by_hash(tx, hash_key(made))
            assert found is not None
            await service.revoke(call, found.id)
            return made

    keys = [api.key, new_key(), talking.run(make_and_revoke()), "plk_made-up-key"]
    schemes = ["Bearer ", "Basic ", "", "Bearer  "]
    for key in keys:
        for scheme in schemes:
            api.send("GET", "/participants", headers={"Authorization": scheme + key})
        api.send("GET", f"/participants?key={key}", headers={"X-Plan-Manager-Id": key})
    log.lines(len(keys) * (len(schemes) + 1))
    for key in keys:
        assert key not in log.text
        assert key[-8:] not in log.text


def exchange(server: RunningServer, request: bytes) -> bytes:
    """Send bytes as they are, and take all that comes."""
    url = httpx.URL(server.url)
    with socket.create_connection((url.host, url.port), timeout=10) as client:
        client.sendall(request)
        got = b""
        while more := client.recv(65536):
            got += more
        return got


@pytest.mark.parametrize(
    "method, path, headers",
    [
        (b"GET", b"/a%0a%7B%22level%22:%22info%22%7D", b""),
        (b"GET", b"/a%0d%0ab", b""),
        (b"GET", b"/participants?a=%0ab", b""),
        (b"GET", b"/participants/%0a%00", b""),
        (b"GET", b'/"}\\', b""),
        (b"PROPFIND", b"/participants", b""),
        (b"M-SEARCH", b"/nothing", b""),
        (b"GET", b"/participants", b'X-Request-Id: "},{"\\n\\u000a\r\n'),
        (b"GET", b"/participants", b"X-Request-Id: a\tb\r\n"),
        (b"GET", b"/participants", b"X-Request-Id: \xc2\x85\xe2\x80\xa8\r\n"),
        (b"GET", b"/participants", b"X-Plan-Manager-Id: \xff\xfe\r\nAuthorization: Bearer \xff\r\n"),
        (b"GET", b"/participants", b"User-Agent: \x1b[31mred\r\n"),
        (b"GET", b"/participants", b"Upgrade: websocket\r\nConnection: upgrade\r\n"),
    ],
)
def test_nobody_can_write_a_line_of_its_own(
    talking: RunningServer, log: Log, method: bytes, path: bytes, headers: bytes
) -> None:
    line_and_headers = method + b" " + PREFIX.encode() + path + b" HTTP/1.1\r\nHost: x\r\n" + headers
    answer = exchange(talking, line_and_headers + b"Connection: close\r\n\r\n")
    if answer.startswith(b"HTTP/1.1 400 ") and b"request_id" not in answer:
        # No proper request: the parser's answer, and a line of the server library about itself.
        assert answer.endswith(b"Invalid HTTP request received.")
        return
    [line] = [each for each in log.lines(1) if each["event"] == "request"]
    assert list(line) == MEMBERS
    assert log.text.isascii()
    assert [character for character in log.text if ord(character) < 32] == ["\n"]
    assert line["method"] in ("GET", "other")


def test_a_refusal_by_a_quota_has_its_line_too(
    cluster: Cluster, new_plan_manager: Callable[[], UUID], new_key: Callable[..., str], log: Log
) -> None:
    running = RunningServer(cluster.dsn, access_log=True, rate_limit=1).start()
    owner = new_plan_manager()
    client = Client(running.url, new_key(owner), owner)
    key = key_id_of(running, client.key)
    statuses = [client.get("/participants").status_code for _ in range(3)]
    assert 429 in statuses
    assert [(line["status"], line["key_id"]) for line in log.lines(3)] == [(status, key) for status in statuses]
    client.http.close()
    running.stop()


def test_with_the_log_off_nothing_is_written(server: RunningServer, other: Client, log: Log) -> None:
    assert not server.settings.access_log
    other.get("/participants")
    other.get("/nothing")
    assert log.lines(0) == []


# Figures


def figures(client: Client) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Every sample of `/metrics` by its name and labels."""
    answer = client.http.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=")
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in families_of(answer.text)
        for sample in family.samples
    }


def sample(name: str, **labels: str) -> tuple[str, frozenset[tuple[str, str]]]:
    return name, frozenset(labels.items())


FAMILIES = {
    "plankeeper_requests": "counter",
    "plankeeper_request_seconds": "histogram",
    "plankeeper_rate_limit_refusals": "counter",
    "plankeeper_pool_connections": "gauge",
    "plankeeper_pool_lent": "gauge",
    "plankeeper_pool_waiting": "gauge",
    "plankeeper_requests_inside": "gauge",
    "plankeeper_event_lag_seconds": "gauge",
    "plankeeper_events_waiting": "gauge",
    "plankeeper_webhook_attempts": "counter",
}


def test_the_metrics_have_their_families(api: Client) -> None:
    api.get("/participants")
    found = {each.name: each for each in families_of(api.http.get("/metrics").text)}
    ours = {name: each.type for name, each in found.items() if name.startswith("plankeeper_")}
    assert {name: kind for name, kind in ours.items() if not name.endswith("_created")} == FAMILIES
    assert all(found[name].documentation.endswith(".") for name in FAMILIES)


def test_a_request_is_counted_and_timed_once(api: Client) -> None:
    route = f"{PREFIX}/participants/{{participant_id}}"
    counted = sample("plankeeper_requests_total", method="GET", route=route, status="404")
    timed = sample("plankeeper_request_seconds_count", method="GET", route=route)
    slower = sample("plankeeper_request_seconds_bucket", method="GET", route=route, le="+Inf")
    others = sample("plankeeper_requests_total", method="PUT", route=route, status="404")
    first = figures(api)
    api.get(f"/participants/{uuid7()}")
    wait_until(lambda: figures(api).get(counted, 0) > first.get(counted, 0))
    before = figures(api)
    api.get(f"/participants/{uuid7()}")
    wait_until(lambda: figures(api)[counted] > before[counted])
    after = figures(api)
    assert [after[each] - before[each] for each in (counted, timed, slower)] == [1, 1, 1]
    assert after.get(others, 0) == before.get(others, 0)


def test_a_refusal_by_a_quota_is_counted(
    talking: RunningServer, new_plan_manager: Callable[[], UUID], api: Client
) -> None:
    refused = sample("plankeeper_rate_limit_refusals_total")
    owner = new_plan_manager()

    async def work() -> str:
        async with talking.db.transaction() as tx:
            return await service.create(
                WriteContext(tx, owner, talking.settings, SYSTEM), "one", [owner], ["read"], None, 1
            )

    limited = Client(talking.url, talking.run(work()), owner)
    limited.get("/participants")
    before = figures(api)
    count = sum(limited.get("/participants").status_code == 429 for _ in range(3))
    assert count
    wait_until(lambda: figures(api)[refused] - before[refused] == count)
    limited.http.close()


def test_what_a_client_makes_up_makes_no_series(talking: RunningServer, api: Client) -> None:
    """Else whoever asks for ever new things fills the memory."""

    def ask(part: str) -> None:
        for method in ("GET", "PROPFIND", "LOCK", "MKCOL"):
            api.http.request(method, f"/{part}")
            api.http.request(method, f"{PREFIX}/participants/{part}", headers=api.headers())

    ask("first")
    wait_until(lambda: sample("plankeeper_requests_total", method="other", route="none", status="404") in figures(api))
    before = set(figures(api))
    for number in range(50):
        ask(f"made-up-{number}")
    assert set(figures(api)) == before


def test_the_metrics_tell_of_no_tenant(api: Client) -> None:
    api.made("/participants", PERSON)
    text = api.http.get("/metrics").text
    for value in (api.plan_manager_id, api.key, *PERSON.values()):
        assert value not in text


def test_the_events_that_wait_are_counted(talking: RunningServer, api: Client) -> None:
    api.made("/participants", {"first_name": "Ada"})
    waiting, lag = sample("plankeeper_events_waiting"), sample("plankeeper_event_lag_seconds")
    wait_until(lambda: (found := figures(api))[waiting] == found[lag] == 0, 15)
