"""Traces and error reports, as a receiver of OTLP sees them: from a request to its statements and its webhooks."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import ip_network
from typing import Any
from uuid import UUID, uuid4

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from plankeeper import __version__
from plankeeper.resources.note_types import store
from plankeeper.server.telemetry import exporters
from plankeeper.server.telemetry.webhooks import KEEP_ALIVE
from plankeeper.webhooks.client import WebhookClient
from plankeeper.webhooks.worker import Worker
from support.client import NO_TLS, PREFIX, Client
from support.cluster import SharedCluster
from support.receiver import Receiver
from support.server import RunningServer, wait_until

PARENT_ID = "00f067aa0ba902b7"
SECRET_TEXT = "Zebulonia Quartermaine"


class Collector:
    """A receiver of OTLP over HTTP, with what it received; and the trace of a test's client."""

    def __init__(self, traces: Receiver, logs: Receiver) -> None:
        self._traces, self._logs = traces, logs
        self.trace_id = uuid4().hex
        self.traceparent = f"00-{self.trace_id}-{PARENT_ID}-01"

    def bodies(self) -> bytes:
        return b"".join(each.body for each in [*self._traces.received, *self._logs.received])

    def resources(self) -> list[dict[str, Any]]:
        requests = [ExportTraceServiceRequest.FromString(each.body) for each in self._traces.received]
        return [attributes(spans.resource) for request in requests for spans in request.resource_spans]

    def spans(self, trace_id: str | None = None) -> list[Span]:
        requests = [ExportTraceServiceRequest.FromString(each.body) for each in self._traces.received]
        found = [
            span
            for request in requests
            for by_resource in request.resource_spans
            for by_scope in by_resource.scope_spans
            for span in by_scope.spans
        ]
        return [each for each in found if trace_id is None or each.trace_id.hex() == trace_id]

    def span(self, name: str, trace_id: str | None = None) -> Span:
        """The only span with a name, once it has been exported."""
        trace_id = trace_id or self.trace_id
        wait_until(lambda: any(each.name == name for each in self.spans(trace_id)))
        [span] = [each for each in self.spans(trace_id) if each.name == name]
        return span

    def reports(self) -> list[Any]:
        """The errors of the trace."""
        requests = [ExportLogsServiceRequest.FromString(each.body) for each in self._logs.received]
        return [
            record
            for request in requests
            for by_resource in request.resource_logs
            for by_scope in by_resource.scope_logs
            for record in by_scope.log_records
            if record.trace_id.hex() == self.trace_id
        ]


def attributes(of: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in of.attributes}


@contextmanager
def open_collector() -> Iterator[tuple[Receiver, Receiver]]:
    """Receivers of traces and logs, to which the servers that start in this block send."""
    with Receiver() as traces, Receiver() as logs, pytest.MonkeyPatch.context() as patch:
        for each in (traces, logs):
            each.respond = lambda *_: (200, {"content-type": "application/x-protobuf"}, b"")
        patch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", f"{traces.url}/v1/traces")
        patch.setenv("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", f"{logs.url}/v1/logs")
        patch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
        patch.setenv("OTEL_BLRP_SCHEDULE_DELAY", "50")
        yield traces, logs


@contextmanager
def traced_server(cluster: SharedCluster, **settings: Any) -> Iterator[RunningServer]:
    allowed = (ip_network("127.0.0.0/8"),)
    running = RunningServer(cluster.dsn, telemetry=True, webhook_allowed_networks=allowed, **settings).start()
    try:
        yield running
    finally:
        running.stop()


@pytest.fixture(scope="module")
def shared_receivers() -> Iterator[tuple[Receiver, Receiver]]:
    with open_collector() as opened:
        yield opened


@pytest.fixture(scope="module")
def traced(cluster: SharedCluster, shared_receivers: tuple[Receiver, Receiver]) -> Iterator[RunningServer]:
    with traced_server(cluster) as running:
        yield running


@pytest.fixture
def collector(shared_receivers: tuple[Receiver, Receiver]) -> Collector:
    """What `traced` sends from now on: a trace of another test may still arrive."""
    for each in shared_receivers:
        each.received.clear()
    return Collector(*shared_receivers)


@pytest.fixture
def own_collector() -> Iterator[Collector]:
    """For a server of the test's own."""
    with open_collector() as opened:
        yield Collector(*opened)


@pytest.fixture
def traced_api(
    traced: RunningServer, plan_manager_id: UUID, new_key: Callable[..., str], request: pytest.FixtureRequest
) -> Iterator[Client]:
    client = Client(traced.url, new_key(plan_manager_id), plan_manager_id)
    yield client
    client.http.close()


def get(api: Client, path: str, traceparent: str | None) -> str:
    """Returns the request id."""
    headers = api.headers() | ({"traceparent": traceparent} if traceparent else {})
    response = api.send("GET", path, headers=headers)
    assert response.status_code == 200
    return response.headers["x-request-id"]


def test_a_request_has_a_span_in_the_trace_of_its_client(collector: Collector, traced_api: Client) -> None:
    headers = {"traceparent": collector.traceparent, "X-Request-Id": "order-17"}
    traced_api.post("/note-types", {"note_type": SECRET_TEXT}, headers=headers)
    span = collector.span(f"POST {PREFIX}/note-types")
    assert (span.parent_span_id.hex(), span.kind) == (PARENT_ID, Span.SPAN_KIND_SERVER)
    assert attributes(span) == {
        "http.request.method": "POST",
        "http.route": f"{PREFIX}/note-types",
        "http.response.status_code": 201,
        "plankeeper.request_id": "order-17",
        "plankeeper.plan_manager_id": traced_api.plan_manager_id,
    }
    assert span.status.code == Status.STATUS_CODE_UNSET
    resource = collector.resources()[0]
    assert (resource["service.name"], resource["service.version"]) == ("plankeeper", __version__)


def test_each_statement_has_a_span_with_its_name_and_without_values(collector: Collector, traced_api: Client) -> None:
    traced_api.post("/note-types", {"note_type": SECRET_TEXT}, headers={"traceparent": collector.traceparent})
    request, commit = collector.span(f"POST {PREFIX}/note-types"), collector.span("commit")
    statements = [each for each in collector.spans(collector.trace_id) if each.kind == Span.SPAN_KIND_CLIENT]
    assert {each.parent_span_id for each in statements} == {request.span_id}
    names = {each.name for each in statements}
    assert {"begin", "resources.note_types.store.UPSERT", "server.telemetry.webhooks.PUBLISH", "commit"} <= names
    assert attributes(commit) == {"db.system.name": "postgresql", "db.query.summary": "commit"}
    for each in statements:
        assert request.start_time_unix_nano <= each.start_time_unix_nano <= each.end_time_unix_nano
        assert each.end_time_unix_nano <= request.end_time_unix_nano
    assert SECRET_TEXT.encode() not in collector.bodies()
    assert b"insert into" not in collector.bodies()


def test_a_failed_statement_has_its_error_code(collector: Collector, traced: RunningServer, traced_api: Client) -> None:
    traced.execute_as_owner("alter table note_types add constraint no_visit check (note_type <> 'Visit') not valid")
    try:
        response = traced_api.post(
            "/note-types", {"note_type": "Visit"}, headers={"traceparent": collector.traceparent}
        )
    finally:
        traced.execute_as_owner("alter table note_types drop constraint no_visit")
    assert response.status_code == 500
    failed = collector.span("resources.note_types.store.UPSERT")
    assert (attributes(failed)["error.type"], failed.status.code) == ("23514", Status.STATUS_CODE_ERROR)
    assert collector.span(f"POST {PREFIX}/note-types").status.code == Status.STATUS_CODE_ERROR
    assert b"Visit" not in collector.bodies()


def test_without_a_valid_traceparent_a_request_begins_a_trace(collector: Collector, traced_api: Client) -> None:
    invalid = (
        None, "00-0-0-01", f"00-{'0' * 32}-{PARENT_ID}-01", f"{collector.traceparent},{collector.traceparent}",
    )  # fmt: skip
    ids = [get(traced_api, "/note-types", each) for each in invalid]

    def find_spans() -> list[Span]:
        return [each for each in collector.spans() if attributes(each).get("plankeeper.request_id") in ids]

    found = wait_until(lambda: len(spans := find_spans()) == len(ids) and spans)
    assert [(each.name, each.parent_span_id) for each in found] == [(f"GET {PREFIX}/note-types", b"")] * len(ids)
    traces = {each.trace_id.hex() for each in found}
    assert {len(each) for each in traces} == {32}
    assert len(traces - {collector.trace_id, "0" * 32}) == len(ids)


def test_a_request_that_is_not_sampled_sends_nothing(collector: Collector, traced_api: Client) -> None:
    traced_api.post("/note-types", {"note_type": "Visit"}, headers={"traceparent": collector.traceparent[:-1] + "0"})
    sampled = uuid4().hex
    get(traced_api, "/participants", f"00-{sampled}-{PARENT_ID}-01")
    collector.span(f"GET {PREFIX}/participants", sampled)
    assert collector.spans(collector.trace_id) == []


def test_the_console_and_unknown_methods_have_spans_too(collector: Collector, traced_api: Client) -> None:
    traced_api.http.get("/console/sign-in", headers={"traceparent": collector.traceparent})
    span = collector.span("GET /console/sign-in")
    assert attributes(span)["http.response.status_code"] == 200
    traced_api.http.request("PROPFIND", f"{PREFIX}/participants", headers={"traceparent": collector.traceparent})
    assert attributes(collector.span(f"HTTP {PREFIX}/participants"))["http.request.method"] == "_OTHER"
    traced_api.http.get("/readyz", headers={"traceparent": collector.traceparent})
    get(traced_api, "/participants", collector.traceparent)
    collector.span(f"GET {PREFIX}/participants")
    assert not [each for each in collector.spans() if "readyz" in each.name]


def test_a_webhook_continues_the_trace_of_the_request(
    collector: Collector, traced: RunningServer, traced_api: Client, receiver: Receiver
) -> None:
    traced.run(traced.db.execute("delete from webhook_endpoints"))
    endpoint = traced_api.create(
        "/webhook-endpoints", {"url": f"{receiver.url}/hook?token=s3cret", "event_types": ["note_type.*"]}
    )
    with traced_worker(traced):
        made = send_traced(traced, traced_api, collector.traceparent)
        wait_until(lambda: len(receiver.received) >= 1)
        request = collector.span(f"POST {PREFIX}/note-types")
        attempt = collector.span("POST webhook")
    assert attempt.parent_span_id == request.span_id
    assert receiver.received[-1].headers["traceparent"] == f"00-{collector.trace_id}-{attempt.span_id.hex()}-01"
    found = attributes(attempt)
    assert found.pop("plankeeper.event_id") == receiver.received[-1].headers["webhook-id"]
    assert found == {
        "http.request.method": "POST",
        "server.address": "127.0.0.1",
        "http.response.status_code": 204,
        "plankeeper.plan_manager_id": traced_api.plan_manager_id,
        "plankeeper.request_id": made,
        "plankeeper.webhook_endpoint_id": endpoint["id"],
        "plankeeper.event_type": "note_type.created",
        "plankeeper.attempt": 1,
    }
    assert b"s3cret" not in collector.bodies()


@contextmanager
def traced_worker(server: RunningServer) -> Iterator[None]:
    """Meanwhile a webhook worker with telemetry works in the server's loop."""
    from plankeeper.server.telemetry.setup import start

    async def begin() -> Any:
        telemetry = start(server.settings)
        assert telemetry is not None
        traces = telemetry.trace_webhooks()
        client = WebhookClient(server.settings.webhook_allowed_networks, ssl_context=NO_TLS)
        worker = Worker(server.db, client, server.settings, traces=traces)
        tasks = [server.loop.create_task(worker.run()), server.loop.create_task(traces.listen(server.db))]
        return telemetry, client, worker, tasks

    async def end() -> None:
        worker.stopping.set()
        await tasks[0]
        tasks[1].cancel()
        await client.close()
        await telemetry.close()

    telemetry, client, worker, tasks = server.run(begin())
    try:
        yield
    finally:
        server.run(end())


LISTENERS = "select count(*) from pg_stat_activity where datname = current_database() and query = $1"


def send_traced(server: RunningServer, api: Client, traceparent: str) -> str:
    """Create a note type once the worker listens, and return its request id."""
    wait_until(lambda: server.run(server.db.one(int, LISTENERS, KEEP_ALIVE)))
    response = api.post("/note-types", {"note_type": "Visit"}, headers={"traceparent": traceparent})
    assert response.status_code == 201
    return response.headers["x-request-id"]


def test_an_error_is_reported_with_its_trace_and_without_its_text(
    collector: Collector, traced_api: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise RuntimeError(SECRET_TEXT)

    monkeypatch.setattr(store, "list_page", fail)
    response = traced_api.send(
        "GET", "/note-types", headers=traced_api.headers() | {"traceparent": collector.traceparent}
    )
    assert response.status_code == 500
    wait_until(collector.reports)
    [report] = collector.reports()
    span = collector.span(f"GET {PREFIX}/note-types")
    assert report.span_id == span.span_id
    found = attributes(report)
    assert (report.severity_text, found["exception.type"]) == ("ERROR", "RuntimeError")
    assert "test_traces.py" in found["exception.stacktrace"]
    assert response.headers["x-request-id"] in json.dumps([found, report.body.string_value])
    assert (attributes(span)["error.type"], span.status.code) == ("500", Status.STATUS_CODE_ERROR)
    assert SECRET_TEXT.encode() not in collector.bodies()


def test_the_log_line_of_a_request_has_the_id_of_its_trace(
    cluster: SharedCluster,
    own_collector: Collector,
    plan_manager_id: UUID,
    new_key: Callable[..., str],
    capfd: pytest.CaptureFixture[str],
) -> None:
    with traced_server(cluster, access_log=True) as running:
        client = Client(running.url, new_key(plan_manager_id), plan_manager_id)
        capfd.readouterr()
        get(client, "/participants", own_collector.traceparent)
        client.http.close()
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines() if '"event":"request"' in line]
    assert [line["trace_id"] for line in lines] == [own_collector.trace_id]


def test_the_variables_of_opentelemetry_are_used(
    cluster: SharedCluster,
    own_collector: Collector,
    plan_manager_id: UUID,
    new_key: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "plans")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=staging,service.name=ignored")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "parentbased_always_off")
    with traced_server(cluster) as running:
        client = Client(running.url, new_key(plan_manager_id), plan_manager_id)
        client.get("/participants")
        get(client, "/note-types", own_collector.traceparent)
        own_collector.span(f"GET {PREFIX}/note-types")
        client.http.close()
    assert {each.trace_id.hex() for each in own_collector.spans()} == {own_collector.trace_id}
    resource = own_collector.resources()[0]
    assert (resource["service.name"], resource["deployment.environment.name"]) == ("plans", "staging")


def exporting_threads() -> set[threading.Thread]:
    return {each for each in threading.enumerate() if each.name.startswith("OtelBatch")}


def test_requests_succeed_and_the_server_stops_without_a_collector(
    cluster: SharedCluster, plan_manager_id: UUID, new_key: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporters, "SHUTDOWN_TIMEOUT", 0.2)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
    before = exporting_threads()
    with traced_server(cluster) as running:
        client = Client(running.url, new_key(plan_manager_id), plan_manager_id)
        for _ in range(5):
            client.get("/participants")
            time.sleep(0.1)
        client.http.close()
    assert exporting_threads() == before
