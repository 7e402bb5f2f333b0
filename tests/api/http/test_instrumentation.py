"""Access log and metrics: one log line for each request, and no personal data."""

import json
import os
import re
import socket
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families as families_of
from uuid_utils.compat import uuid7

from plankeeper.access.api_keys import service, store
from plankeeper.access.api_keys.format import new_key
from plankeeper.access.tokens import hash_token
from plankeeper.core.context import SYSTEM, WriteContext
from support.client import PREFIX, Client
from support.cluster import SharedCluster
from support.metrics import current_value
from support.server import RunningServer, wait_until

LOG_FIELDS = [
    "time", "level", "event", "request_id", "key_id", "plan_manager_id", "method", "route", "status", "duration_ms",
]  # fmt: skip


@pytest.fixture(scope="module")
def logging_server(cluster: SharedCluster) -> Iterator[RunningServer]:
    """A server that logs each request."""
    running = RunningServer(cluster.dsn, access_log=True, auth_failure_rate_limit=10**6).start()
    yield running
    running.stop()


@pytest.fixture
def api(
    logging_server: RunningServer, new_plan_manager: Callable[[], UUID], new_key: Callable[..., str]
) -> Iterator[Client]:
    owner = new_plan_manager()
    client = Client(logging_server.url, new_key(owner), owner)
    yield client
    client.http.close()


class AccessLog:
    """The standard error of the server."""

    def __init__(self, capfd: pytest.CaptureFixture[str]) -> None:
        self._capfd = capfd
        self.text = ""

    def lines(self, count: int) -> list[dict[str, Any]]:
        """The lines, once there are as many: a line is written after its response."""
        # Reading with capfd empties its file, and a line that is written meanwhile is lost: it is done once.
        wait_until(lambda: os.pread(2, os.fstat(2).st_size, 0).count(b"\n") >= count)
        self.text = self._capfd.readouterr().err
        lines = self.text.split("\n")
        assert lines.pop() == ""
        assert len(lines) == count, self.text
        return [json.loads(line) for line in lines]


@pytest.fixture
def access_log(api: Client, capfd: pytest.CaptureFixture[str]) -> AccessLog:
    capfd.readouterr()
    return AccessLog(capfd)


def key_id_of(server: RunningServer, key: str) -> str:
    api_key = server.run(store.get_by_hash(server.db, hash_token(key)))
    assert api_key is not None
    return str(api_key.id)


# The log


def test_each_request_has_one_log_line_with_request_and_response(
    logging_server: RunningServer, api: Client, access_log: AccessLog
) -> None:
    key, own = key_id_of(logging_server, api.key), api.plan_manager_id
    one = f"{PREFIX}/participants/{{participant_id}}"
    tag = api.get(f"/note-types/{api.create('/note-types', {'note_type': 'Visit'})['id']}").headers["etag"]
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
    lines = access_log.lines(len(asked) + 3)[3:]
    for line, (response, key_id, plan_manager_id, method, route, status) in zip(lines, asked, strict=True):
        assert list(line) == LOG_FIELDS
        moment, duration = datetime.fromisoformat(line.pop("time")), line.pop("duration_ms")
        assert started - timedelta(seconds=1) < moment < datetime.now(UTC) + timedelta(seconds=1)
        assert moment.utcoffset() == timedelta(0)
        assert 0 < duration < 10_000
        assert line == {
            "level": "info", "event": "request", "request_id": response.headers["x-request-id"], "key_id": key_id,
            "plan_manager_id": plan_manager_id, "method": method, "route": route, "status": status,
        }  # fmt: skip
        assert response.status_code == status


PERSONAL_DATA = {
    "first_name": "Zebulonia", "last_name": "Quartermaine", "email": "zebulonia@quartermaine.example",
    "participant_number": "430987612", "phone_number": "0491570006", "address_line_1": "77 Wombat Parade",
    "date_of_birth": "1987-03-09", "reason_for_leaving": "Moved to Oodnadatta",
}  # fmt: skip


def test_a_log_line_has_no_personal_data(api: Client, access_log: AccessLog) -> None:
    made = api.create("/participants", PERSONAL_DATA)
    path = f"/participants/{made['id']}"
    member = {"first_name": "Xantippe", "email": "xantippe@quartermaine.example"}
    responses = [
        api.get(path),
        api.get("/participants", email=PERSONAL_DATA["email"]),
        api.get("/participants", Zebulonia="Quartermaine"),
        api.get("/participants/Zebulonia"),
        api.get("/Zebulonia/Quartermaine"),
        api.put(path, {"phone_number": 491570006, "Zebulonia": PERSONAL_DATA["email"]}),
        api.post(f"{path}/team-members", member),
        api.post(f"{path}/team-members", member),
        api.request(
            "POST", "/participants", content=json.dumps(PERSONAL_DATA), headers={"Content-Type": "text/Zebulonia"}
        ),
        api.request("GET", path, headers={"X-Plan-Manager-Id": "Zebulonia", "User-Agent": "Quartermaine"}),
        api.delete(path),
    ]
    statuses = [200, 200, 400, 400, 404, 400, 201, 409, 415, 400, 200]
    assert [response.status_code for response in responses] == statuses
    access_log.lines(len(responses) + 1)
    for value in (*PERSONAL_DATA.values(), *member.values(), made["id"], "Zebulonia", "Quartermaine"):
        assert value not in access_log.text


def test_a_log_line_does_not_reveal_a_key(logging_server: RunningServer, api: Client, access_log: AccessLog) -> None:
    owner = UUID(api.plan_manager_id)

    async def make_and_revoke() -> str:
        async with logging_server.db.transaction() as tx:
            ctx = WriteContext(tx, owner, logging_server.settings, SYSTEM)
            made = await service.create(ctx, "Gone", [owner], ["read"], None)
            found = await store.get_by_hash(tx, hash_token(made))
            assert found is not None
            await service.revoke(ctx, found.id)
            return made

    keys = [api.key, new_key(), logging_server.run(make_and_revoke()), "plk_unusual-key"]
    schemes = ["Bearer ", "Basic ", "", "Bearer  "]
    for key in keys:
        for scheme in schemes:
            api.send("GET", "/participants", headers={"Authorization": scheme + key})
        api.send("GET", f"/participants?key={key}", headers={"X-Plan-Manager-Id": key})
    access_log.lines(len(keys) * (len(schemes) + 1))
    for key in keys:
        assert key not in access_log.text
        assert key[-8:] not in access_log.text


def send_raw(server: RunningServer, request: bytes) -> bytes:
    """Send bytes as they are, and take all that comes."""
    url = httpx.URL(server.url)
    with socket.create_connection((url.host, url.port), timeout=10) as client:
        client.sendall(request)
        received = b""
        while more := client.recv(65536):
            received += more
        return received


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
def test_log_lines_cannot_be_injected(
    logging_server: RunningServer, access_log: AccessLog, method: bytes, path: bytes, headers: bytes
) -> None:
    line_and_headers = method + b" " + PREFIX.encode() + path + b" HTTP/1.1\r\nHost: x\r\n" + headers
    response = send_raw(logging_server, line_and_headers + b"Connection: close\r\n\r\n")
    if response.startswith(b"HTTP/1.1 400 ") and b"request_id" not in response:
        # No proper request: the parser's answer, and a line of the server library about itself.
        assert response.endswith(b"Invalid HTTP request received.")
        return
    [line] = [each for each in access_log.lines(1) if each["event"] == "request"]
    assert list(line) == LOG_FIELDS
    assert access_log.text.isascii()
    assert [character for character in access_log.text if ord(character) < 32] == ["\n"]
    assert line["method"] in ("GET", "other")


def test_a_rate_limited_request_is_logged_too(
    cluster: SharedCluster, new_plan_manager: Callable[[], UUID], new_key: Callable[..., str], access_log: AccessLog
) -> None:
    running = RunningServer(cluster.dsn, access_log=True, rate_limit=1).start()
    owner = new_plan_manager()
    client = Client(running.url, new_key(owner), owner)
    key = key_id_of(running, client.key)
    statuses = [client.get("/participants").status_code for _ in range(3)]
    assert 429 in statuses
    assert [(line["status"], line["key_id"]) for line in access_log.lines(3)] == [(status, key) for status in statuses]
    client.http.close()
    running.stop()


def test_nothing_is_logged_when_the_access_log_is_off(
    server: RunningServer, other: Client, access_log: AccessLog
) -> None:
    assert not server.settings.access_log
    other.get("/participants")
    other.get("/nothing")
    assert access_log.lines(0) == []


# Figures

SAMPLE = re.compile(r"(?P<name>\w+)(\{(?P<labels>.*)\})? (?P<value>\S+)")
LABEL = re.compile(r'(\w+)="([^"\\]*)"')


def samples(client: Client, *names: str) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Every sample of `/metrics` by its name and labels, or those with names that begin with one of `names`.

    Read line by line: the parser of prometheus_client takes ten times as long for the thousands of samples that a whole
    run of the tests leaves. `test_the_expected_metrics_exist` uses it.
    """
    response = client.http.get("/metrics")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/plain; version=")
    found = dict[tuple[str, frozenset[tuple[str, str]]], float]()
    for line in response.text.splitlines():
        if line.startswith(names) if names else not line.startswith("#"):
            match = SAMPLE.fullmatch(line)
            assert match, line
            found[match["name"], frozenset(LABEL.findall(match["labels"] or ""))] = float(match["value"])
    return found


def sample_key(name: str, **labels: str) -> tuple[str, frozenset[tuple[str, str]]]:
    return name, frozenset(labels.items())


METRIC_FAMILIES = {
    "plankeeper_http_requests": "counter",
    "plankeeper_http_request_duration_seconds": "histogram",
    "plankeeper_rate_limit_rejections": "counter",
    "plankeeper_db_pool_connections": "gauge",
    "plankeeper_db_pool_connections_in_use": "gauge",
    "plankeeper_db_pool_waiters": "gauge",
    "plankeeper_http_requests_in_flight": "gauge",
    "plankeeper_event_sequencing_lag_seconds": "gauge",
    "plankeeper_events_unsequenced": "gauge",
    "plankeeper_recheck_lag_seconds": "gauge",
    "plankeeper_log_lines_dropped": "counter",
    "plankeeper_webhook_attempts": "counter",
    "plankeeper_mail_attempts": "counter",
    "plankeeper_sign_in_failures": "counter",
    "plankeeper_slow_statements": "counter",
    "plankeeper_database_up": "gauge",
    "plankeeper_webhook_deliveries_waiting": "gauge",
    "plankeeper_webhook_delivery_lag_seconds": "gauge",
    "plankeeper_webhook_deliveries_failing": "gauge",
    "plankeeper_webhook_endpoints_failing": "gauge",
    "plankeeper_api_keys_expiring": "gauge",
    "plankeeper_workers": "gauge",
    "plankeeper_worker_restarts": "counter",
    "plankeeper_process_cpu_seconds": "counter",
    "plankeeper_process_resident_memory_bytes": "gauge",
    "plankeeper_process_open_fds": "gauge",
    "plankeeper_process_max_fds": "gauge",
    "plankeeper_build_info": "gauge",
}


def test_the_expected_metrics_exist(api: Client) -> None:
    api.get("/participants")
    found = {each.name: each for each in families_of(api.http.get("/metrics").text)}
    ours = {name: each.type for name, each in found.items() if name.startswith("plankeeper_")}
    assert {name: kind for name, kind in ours.items() if not name.endswith("_created")} == METRIC_FAMILIES
    assert all(found[name].documentation.endswith(".") for name in METRIC_FAMILIES)


def test_a_request_is_counted_and_timed_once(api: Client) -> None:
    route = f"{PREFIX}/participants/{{participant_id}}"
    counted = sample_key("plankeeper_http_requests_total", method="GET", route=route, status="404")
    timed = sample_key("plankeeper_http_request_duration_seconds_count", method="GET", route=route)
    slower = sample_key("plankeeper_http_request_duration_seconds_bucket", method="GET", route=route, le="+Inf")
    others = sample_key("plankeeper_http_requests_total", method="PUT", route=route, status="404")
    waited = partial(current_value, counted[0], **dict(counted[1]))
    read = partial(samples, api, "plankeeper_http_request")
    first = waited()
    api.get(f"/participants/{uuid7()}")
    wait_until(lambda: waited() > first)
    before = read()
    api.get(f"/participants/{uuid7()}")
    wait_until(lambda: waited() > before[counted])
    after = read()
    assert [after[each] - before[each] for each in (counted, timed, slower)] == [1, 1, 1]
    assert after.get(others, 0) == before.get(others, 0)


def test_a_rate_limited_request_is_counted(
    logging_server: RunningServer, new_plan_manager: Callable[[], UUID], api: Client
) -> None:
    rejected = sample_key("plankeeper_rate_limit_rejections_total")
    owner = new_plan_manager()

    async def work() -> str:
        async with logging_server.db.transaction() as tx:
            return await service.create(
                WriteContext(tx, owner, logging_server.settings, SYSTEM), "one", [owner], ["read"], None, 1
            )

    limited = Client(logging_server.url, logging_server.run(work()), owner)
    limited.get("/participants")
    before = samples(api, rejected[0])
    count = sum(limited.get("/participants").status_code == 429 for _ in range(3))
    assert count
    wait_until(lambda: current_value(rejected[0]) - before[rejected] == count)
    assert samples(api, rejected[0])[rejected] - before[rejected] == count
    limited.http.close()


def test_client_input_creates_no_time_series(logging_server: RunningServer, api: Client) -> None:
    """Otherwise, a client that requests new paths again and again fills the memory."""

    def send_unusual(part: str) -> None:
        for method in ("GET", "PROPFIND", "LOCK", "MKCOL"):
            api.http.request(method, f"/{part}")
            api.http.request(method, f"{PREFIX}/participants/{part}", headers=api.headers())

    unusual = partial(current_value, "plankeeper_http_requests_total", method="other", route="none", status="404")
    first = unusual()
    send_unusual("first")
    wait_until(lambda: unusual() == first + 3)
    before = set(samples(api))
    for number in range(5):
        send_unusual(f"unusual-{number}")
    wait_until(lambda: unusual() == first + 3 * 6)
    assert set(samples(api)) == before


def test_the_metrics_contain_no_tenant_data(api: Client) -> None:
    api.create("/participants", PERSONAL_DATA)
    text = api.http.get("/metrics").text
    for value in (api.plan_manager_id, api.key, *PERSONAL_DATA.values()):
        assert value not in text


def test_unsequenced_events_are_counted(logging_server: RunningServer, api: Client) -> None:
    api.create("/participants", {"first_name": "Ada"})
    waiting, lag = sample_key("plankeeper_events_unsequenced"), sample_key("plankeeper_event_sequencing_lag_seconds")

    def values() -> tuple[float, float]:
        found = samples(api, waiting[0], lag[0])
        return found[waiting], found[lag]

    # Each server of this process measures its own database into the same gauges.
    wait_until(lambda: values() == (0, 0))
