"""The running program: the client's address behind proxies, the access log, and limits and metrics across workers."""

import asyncio
import http.client
import json
import socket
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families as families_of

from plankeeper.access.api_keys.format import new_key
from plankeeper.database.client import Database
from plankeeper.server.embedded_postgres.cluster import Cluster
from support.folder import temporary_folder
from support.ports import free_port
from support.program import ServeProcess, run_program
from support.quotas import hold_minute
from support.server import wait_until

LIST_PATH = "/api/public/v1/participants"
LOG_FIELDS = [
    "time", "level", "event", "request_id", "key_id", "plan_manager_id", "method", "route", "status", "duration_ms",
]  # fmt: skip


@pytest.fixture(scope="module")
def folder(copy_sample_data: Callable[[Path], None]) -> Iterator[Path]:
    with temporary_folder() as made:
        copy_sample_data(made)
        yield made


@pytest.fixture(scope="module")
def proxied(folder: Path) -> Iterator[ServeProcess]:
    """Two workers behind a proxy, with a log."""
    running = ServeProcess(
        folder,
        "--demo",
        workers=2,
        PLANKEEPER_TRUSTED_PROXIES="127.0.0.1",
        PLANKEEPER_AUTH_FAILURE_RATE_LIMIT="5/minute",
        PLANKEEPER_ACCESS_LOG="on",
        PLANKEEPER_CLIENT_IO_TIMEOUT="5",
    )
    yield running
    running.stop()


@pytest.fixture
def client(proxied: ServeProcess) -> Iterator[httpx.Client]:
    with proxied.client() as made:
        yield made


def test_a_client_can_use_a_connection_again_that_was_idle_for_longer_than_clients_keep_it(
    proxied: ServeProcess,
) -> None:
    address = httpx.URL(proxied.url)
    connection = http.client.HTTPConnection(address.host, address.port, timeout=60)
    connection.request("GET", "/healthz")
    assert connection.getresponse().read()
    sock = connection.sock
    time.sleep(6)  # httpx and Node.js keep idle connections for 5 seconds
    connection.request("GET", "/healthz")
    assert connection.getresponse().status == 200
    assert connection.sock is sock
    connection.close()


def forwarded_status(url: str, *addresses: str) -> int:
    """The status that a request without a key gets which says that it was forwarded for somebody."""
    headers = [("X-Forwarded-For", each) for each in addresses]
    return httpx.get(url + LIST_PATH, headers=headers).status_code


def metric(url: str, name: str, **labels: str) -> float:
    """The sum of the samples of a name that have these labels."""
    return sum(
        sample.value
        for family in families_of(httpx.get(f"{url}/metrics").text)
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    )


# Who the client is


def test_a_trusted_proxy_determines_the_client_address(proxied: ServeProcess, folder: Path) -> None:
    ours, other = "203.0.113.1", "203.0.113.2"
    shared = Cluster(folder)
    assert not shared.ensure()

    async def hold_minutes() -> None:
        async with Database(shared.dsn, pool_size=1).open() as db:
            for each in (ours, "2001:db8:1:2::/64"):
                await hold_minute(db, f"address:{each}")

    asyncio.run(hold_minutes())
    statuses = [forwarded_status(proxied.url, ours) for _ in range(8)]
    assert set(statuses) == {401, 429}
    assert statuses == sorted(statuses)
    assert forwarded_status(proxied.url, other) == 401
    # What the client itself claims stands before what the proxy has added.
    assert forwarded_status(proxied.url, f"198.51.100.7, {ours}") == 429
    assert forwarded_status(proxied.url, "198.51.100.8", ours) == 429
    network = [forwarded_status(proxied.url, f"2001:db8:1:2::{number}") for number in range(8)]
    assert network[-1] == 429
    assert forwarded_status(proxied.url, "2001:db8:1:3::1") == 401


def test_metrics_are_only_for_clients_on_the_same_machine(proxied: ServeProcess) -> None:
    def status(*addresses: str) -> int:
        headers = [("X-Forwarded-For", each) for each in addresses]
        return httpx.get(f"{proxied.url}/metrics", headers=headers).status_code

    assert (status(), status("127.0.0.1")) == (200, 200)
    assert (status("203.0.113.9"), status("127.0.0.1, 203.0.113.9"), status("127.0.0.1", "203.0.113.9")) == (404,) * 3


def test_forwarded_addresses_are_ignored_without_a_trusted_proxy_and_metrics_have_a_separate_port(
    copy_sample_data: Callable[[Path], None],
) -> None:
    port = free_port()
    with temporary_folder() as folder:
        copy_sample_data(folder)
        alone = ServeProcess(
            folder,
            "--demo",
            workers=2,
            PLANKEEPER_AUTH_FAILURE_RATE_LIMIT="5/minute",
            PLANKEEPER_METRICS_PORT=str(port),
        )
        statuses = [forwarded_status(alone.url, f"203.0.113.{number}") for number in range(20)]
        assert statuses.count(429) >= 10
        with alone.client() as good:
            assert good.get("/participants").status_code == 200
        own = f"http://127.0.0.1:{port}"
        wait_until(lambda: metric(own, "plankeeper_http_requests_total", route=LIST_PATH) == 21)
        assert metric(own, "plankeeper_http_requests_total", route=LIST_PATH, status="429") == statuses.count(429)
        assert metric(own, "plankeeper_rate_limit_rejections_total") == statuses.count(429)
        gone = httpx.get(f"{alone.url}/metrics")
        assert (gone.status_code, gone.json()["error"]) == (404, "path_not_found")
        assert alone.stop() == 0


def test_a_metrics_port_in_use_is_named_in_the_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, temporary_folder() as folder:
        port = str(taken.getsockname()[1])
        settings = {"PLANKEEPER_DATA_DIR": str(folder), "PLANKEEPER_METRICS_PORT": port}
        done = run_program("serve", "--port", "0", "--workers", "1", **settings)
    assert done.returncode == 1
    *progress, line = [json.loads(line) for line in done.stderr.splitlines()]
    assert {each["level"] for each in progress} <= {"info"}, progress  # of a migration that takes long
    assert (line["level"], line["event"]) == ("error", "the program cannot start")
    assert line["reason"].startswith(f"Cannot listen on 127.0.0.1 port {port} for metrics: ")


def test_many_invalid_keys_from_many_clients_do_not_grow_the_workers(proxied: ServeProcess) -> None:
    def resident_memory() -> int:
        return sum(worker.memory_info().rss for worker in proxied.workers())

    with httpx.Client(base_url=proxied.url, timeout=20) as attacker:

        def attack(first: int, count: int) -> None:
            for number in range(first, first + count):
                headers = {
                    "Authorization": f"Bearer {new_key() if number % 2 else f'plk_{number:038}'}",
                    "X-Forwarded-For": f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}",
                }
                assert attacker.get(LIST_PATH, headers=headers).status_code == 401

        attack(0, 300)
        before = resident_memory()
        attack(300, 3000)
        assert resident_memory() - before < 30 * 2**20


def test_a_client_that_does_not_read_its_response_is_disconnected(proxied: ServeProcess, client: httpx.Client) -> None:
    """As in the tests of the protocol, on the event loop that `serve` uses."""
    url = httpx.URL(proxied.url)
    path = f"{LIST_PATH}?limit=1000"
    length = int(client.head("/participants", params={"limit": 1000}).headers["content-length"])
    times = 10_000_000 // length + 1
    head = "".join(f"{name}: {value}\r\n" for name, value in client.headers.items() if name != "connection")
    with socket.socket() as greedy:
        greedy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        greedy.settimeout(15)
        greedy.connect((url.host, url.port))
        own = greedy.getsockname()
        greedy.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n{head}\r\n".encode() * times)

        def held() -> bool:
            found = [each for worker in proxied.workers() for each in worker.net_connections("tcp")]
            return any(each.raddr == own for each in found)

        wait_until(held)
        wait_until(lambda: not held())


# What is written


def log_entry(proxied: ServeProcess, matches: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The one line of the log that is looked for, once it is there."""

    def matching_entries() -> list[dict[str, Any]]:
        return [line for text in list(proxied.lines) if text.startswith("{") and matches(line := json.loads(text))]

    wait_until(matching_entries)
    [line] = matching_entries()
    return line


def test_a_request_is_logged_as_one_line_of_json(proxied: ServeProcess, client: httpx.Client) -> None:
    made = client.post("/note-types", json={"note_type": "Zebulonia"}, headers={"X-Request-Id": "mine-1"})
    assert made.status_code == 201
    line = log_entry(proxied, lambda line: line.get("request_id") == "mine-1")
    assert list(line) == LOG_FIELDS
    assert datetime.fromisoformat(line.pop("time")).tzinfo is not None
    assert line.pop("duration_ms") > 0
    assert len(line.pop("key_id")) == 36
    assert line == {
        "level": "info",
        "event": "request",
        "request_id": "mine-1",
        "plan_manager_id": proxied.output_value("Plan manager:"),
        "method": "POST",
        "route": "/api/public/v1/note-types",
        "status": 201,
    }


@pytest.fixture
def run_sql(folder: Path) -> Callable[[str], None]:
    """Runs statements in the program's own database."""
    shared = Cluster(folder)
    assert not shared.ensure()

    async def work(statements: str) -> None:
        connection = await asyncpg.connect(shared.owner_dsn)
        await connection.execute(statements)
        await connection.close()

    return lambda statements: asyncio.run(work(statements))


@pytest.fixture
def failing_triggers(run_sql: Callable[[str], None]) -> Iterator[None]:
    """A database that fails in ways that nobody foresaw, and repeats what it was given."""
    run_sql(
        """
        alter table participants add constraint unforeseen check (first_name <> 'Zebulonia') not valid;
        create function fail() returns trigger language plpgsql as
            $$ begin raise exception 'no % of %', new.first_name, new.email; end $$;
        create trigger fail before insert on participants for each row when (new.first_name = 'Xantippe')
            execute function fail();
        """
    )
    yield
    run_sql(
        "drop trigger fail on participants; drop function fail; alter table participants drop constraint unforeseen"
    )


@pytest.mark.usefixtures("failing_triggers")
@pytest.mark.parametrize(
    "first_name, error, sqlstate",
    [("Zebulonia", "CheckViolationError", "23514"), ("Xantippe", "RaiseError", "P0001")],
)
def test_an_unexpected_error_is_one_log_line_without_request_data(
    proxied: ServeProcess, client: httpx.Client, first_name: str, error: str, sqlstate: str
) -> None:
    body = {"first_name": first_name, "email": "someone@quartermaine.example"}
    sent = {"X-Request-Id": f"failed-{first_name[0]}"}
    failed = client.post("/participants", json=body, headers=sent)
    assert (failed.status_code, failed.json()["error"]) == (500, "internal_error")
    line = log_entry(
        proxied, lambda line: line["event"] == "the request failed" and line["request_id"] == f"failed-{first_name[0]}"
    )
    assert list(line) == ["time", "level", "event", "logger", "request_id", "error", "sqlstate", "statement", "places"]
    assert (line["level"], line["error"], line["sqlstate"]) == ("error", error, sqlstate)
    assert line["statement"] == "resources.participants.store.INSERT + events.store.INSERT"
    assert any("http/endpoint.py" in place for place in line["places"])
    log_entry(proxied, lambda line: line.get("request_id") == f"failed-{first_name[0]}" and line.get("status") == 500)
    for text in (failed.text, *proxied.lines):
        assert "quartermaine" not in text
        assert first_name not in text


@pytest.mark.usefixtures("failing_triggers")
def test_the_log_of_the_embedded_database_has_no_personal_data(folder: Path, client: httpx.Client) -> None:
    assert client.post("/participants", json={"first_name": "Zebulonia", "last_name": "Quince"}).status_code == 500
    wait_until(lambda: "unforeseen" in (folder / "postgres.log").read_text())
    assert "Quince" not in (folder / "postgres.log").read_text()


def test_all_output_after_startup_is_json(proxied: ServeProcess, client: httpx.Client) -> None:
    url = httpx.URL(proxied.url)
    with socket.create_connection((url.host, url.port), timeout=10) as nonsense:
        nonsense.sendall(b"\x16\x03\x01\x00 nonsense\r\n{}\r\n\r\n")
        assert nonsense.recv(1000).startswith(b"HTTP/1.1 400 ")
    client.get("/participants/%0a%7B%22a%22:1%7D", headers={"X-Request-Id": '"},{"\\n'})
    log_entry(proxied, lambda line: line.get("request_id") == '"},{"\\n')
    lines = list(proxied.lines)
    [ready] = [number for number, line in enumerate(lines) if "is ready" in line]
    found = [json.loads(line) for line in lines[ready + 1 :]]
    assert {type(line) for line in found} == {dict}
    assert all({"time", "level", "event"} <= set(line) for line in found)
    assert not [line for line in lines[ready + 1 :] if client.headers["authorization"].split()[1] in line]


# What is counted


def metrics_folder(proxied: ServeProcess) -> Path:
    """The folder of the workers' metrics."""
    return Path(proxied.workers()[0].environ()["PROMETHEUS_MULTIPROC_DIR"])


def test_metrics_are_summed_over_workers_and_gauges_of_a_dead_worker_disappear(
    proxied: ServeProcess, client: httpx.Client
) -> None:
    route = "/api/public/v1/providers"
    counted = {"method": "GET", "route": route, "status": "200"}
    url, workers = proxied.url, {each.pid for each in proxied.workers()}
    stored = metrics_folder(proxied)

    def both_workers_report() -> bool:
        """Whether each worker has responded to a request: connections go to either."""
        httpx.get(url + LIST_PATH, headers=dict(client.headers))
        return all((stored / f"counter_{pid}.db").exists() for pid in workers)

    wait_until(both_workers_report)
    before = metric(url, "plankeeper_http_requests_total", **counted)
    for _ in range(20):
        assert httpx.get(url + route, headers=dict(client.headers)).status_code == 200
    wait_until(lambda: metric(url, "plankeeper_http_requests_total", **counted) == before + 20)
    wait_until(
        lambda: metric(url, "plankeeper_http_request_duration_seconds_count", method="GET", route=route) == before + 20
    )
    wait_until(lambda: metric(url, "plankeeper_db_pool_connections") >= 2)

    dead = psutil.Process(min(workers))
    assert list(stored.glob(f"gauge_live*_{dead.pid}.db"))
    dead.kill()
    wait_until(lambda: {each.pid for each in proxied.workers()} - workers)
    wait_until(lambda: not list(stored.glob(f"gauge_live*_{dead.pid}.db")))
    # What it had counted stays counted.
    wait_until(lambda: _is_ready(url))
    wait_until(lambda: metric(url, "plankeeper_http_requests_total", **counted) == before + 20)


def _is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz").status_code == 200
    except httpx.TransportError:
        return False
