"""Trace ids in log lines, and `traceparent` headers from and to other programs (W3C Trace Context)."""

import logging

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from starlette.types import Scope

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
    carrier: dict[str, str] = {}
    for raw_name, value in scope["headers"]:
        name = _HEADERS.get(raw_name)
        if name:  # a repeated header becomes invalid
            carrier[name] = (
                carrier[name] + "," + value.decode("latin-1") if name in carrier else value.decode("latin-1")
            )
    return parse_context(carrier)


def parse_context(carrier: dict[str, str]) -> Context:
    return _propagator.extract(carrier, Context())


def current_headers() -> dict[str, str]:
    """`traceparent`, and `tracestate` if there is one, of the current span."""
    carrier: dict[str, str] = {}
    _propagator.inject(carrier)
    return carrier
