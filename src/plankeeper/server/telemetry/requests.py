"""A span for each request to the API and the console, with a span for each of its statements."""

import logging
import time
from http import HTTPStatus

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import SpanKind, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from starlette.types import ASGIApp, Receive, Scope, Send

from plankeeper.database.connections import statement_name
from plankeeper.http.instrumentation import METHODS, OnResponse
from plankeeper.http.requests import RequestState

_propagator = TraceContextTextMapPropagator()
_HEADERS = {b"traceparent": "traceparent", b"tracestate": "tracestate"}


def current_trace_id() -> str | None:
    """The id of the current trace as 32 digits, or None."""
    context = trace.get_current_span().get_span_context()
    return trace.format_trace_id(context.trace_id) if context.is_valid else None


def add_trace_id(record: logging.LogRecord) -> bool:
    """A filter of a logging handler: the record gets the field `trace_id`."""
    trace_id = current_trace_id()
    if trace_id:
        vars(record)["trace_id"] = trace_id
    return True


def received_context(scope: Scope) -> Context:
    """The context of a request's `traceparent` and `tracestate`; an empty one if they are missing or invalid."""
    values: dict[str, list[str]] = {}
    for raw_name, value in scope["headers"]:
        if name := _HEADERS.get(raw_name):
            values.setdefault(name, []).append(value.decode("latin-1"))
    return parse_context({name: ",".join(each) for name, each in values.items()})  # a repeated header becomes invalid


def parse_context(carrier: dict[str, str]) -> Context:
    return _propagator.extract(carrier, Context())


def current_headers() -> dict[str, str]:
    """`traceparent`, and `tracestate` if there is one, of the current span."""
    carrier: dict[str, str] = {}
    _propagator.inject(carrier)
    return carrier


class TracedEndpoint:
    """Runs the endpoint of a path in a span, whose parent is the client's if it sends `traceparent`."""

    def __init__(self, endpoint: ASGIApp, route: str | None, tracer: Tracer) -> None:
        self._endpoint, self._route, self._tracer = endpoint, route, tracer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method = scope["method"] if scope["method"] in METHODS else "HTTP"
        attributes = {"http.request.method": "_OTHER" if method == "HTTP" else method}
        if self._route:
            attributes["http.route"] = self._route
        with self._tracer.start_as_current_span(
            f"{method} {self._route}" if self._route else method,
            received_context(scope),
            SpanKind.SERVER,
            attributes,
            # The text of an exception can contain personal data.
            record_exception=False,
            set_status_on_exception=False,
        ):
            await self._endpoint(scope, receive, send)


def complete_spans(on_response: OnResponse) -> OnResponse:
    """Complete the request's span before its log line is written, which gets the trace id."""

    def report(state: RequestState, method: str, route: str | None, status: int) -> None:
        state.trace_id = current_trace_id()
        span = trace.get_current_span()
        span.set_attribute("http.response.status_code", status)
        span.set_attribute("plankeeper.request_id", state.request_id.decode())
        if state.plan_manager_id:
            span.set_attribute("plankeeper.plan_manager_id", str(state.plan_manager_id))
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            span.set_attribute("error.type", str(status))
            span.set_status(StatusCode.ERROR)
        on_response(state, method, route, status)

    return report


class StatementSpans:
    """An observer of connections: a span for each statement of a request, and none for those of background tasks."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    def __call__(self, statement: str, seconds: float, error: BaseException | None) -> None:
        if not trace.get_current_span().is_recording():
            return
        ended_at, name = time.time_ns(), statement_name(statement)
        span = self._tracer.start_span(
            name,
            kind=SpanKind.CLIENT,
            attributes={"db.system.name": "postgresql", "db.query.summary": name},
            start_time=ended_at - int(seconds * 1e9),
        )
        if error:
            span.set_attribute("error.type", getattr(error, "sqlstate", None) or type(error).__name__)
            span.set_status(StatusCode.ERROR)
        span.end(ended_at)
