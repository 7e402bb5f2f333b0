"""The exporters of one process. The variables of OpenTelemetry, such as OTEL_EXPORTER_OTLP_ENDPOINT, configure them."""

import asyncio
import logging
import os
from uuid import UUID

# The modules of logs have private names, because their interface can still change.
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter  # pyright: ignore[reportPrivateUsage]
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider  # pyright: ignore[reportPrivateUsage]
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor  # pyright: ignore[reportPrivateUsage]
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from starlette.types import ASGIApp
from uuid_utils.compat import uuid7

from plankeeper import __version__
from plankeeper.database.client import Transaction
from plankeeper.database.observed_connection import OnStatement
from plankeeper.http.instrumentation import OnResponse
from plankeeper.telemetry.error_reports import ErrorReports
from plankeeper.telemetry.requests import StatementSpans, TracedEndpoint, complete_spans
from plankeeper.telemetry.trace_ids import add_trace_id
from plankeeper.telemetry.webhooks import WebhookTraces, publish_context

SHUTDOWN_TIMEOUT = 5.0  # seconds in which a stopping process exports what is left


class Telemetry:
    """The exporters of this process: spans, and log records of warnings and errors."""

    def __init__(self) -> None:
        resource = _resource()
        self._traces, self._logs = TracerProvider(resource=resource), LoggerProvider(resource=resource)
        if _is_exported("OTEL_TRACES_EXPORTER"):
            self._traces.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        if _is_exported("OTEL_LOGS_EXPORTER"):
            self._logs.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter()))
        self.tracer = self._traces.get_tracer("plankeeper", __version__)
        self._reports = ErrorReports(self._logs.get_logger("plankeeper", __version__))
        root = logging.getLogger()
        for handler in root.handlers:
            handler.addFilter(add_trace_id)
        root.addHandler(self._reports)

    def trace_endpoint(self, endpoint: ASGIApp, route: str | None) -> ASGIApp:
        """The endpoint of a path, whose requests get a span."""
        return TracedEndpoint(endpoint, route, self.tracer)

    def trace_responses(self, on_response: OnResponse) -> OnResponse:
        return complete_spans(on_response)

    async def publish_context(self, tx: Transaction, plan_manager_id: UUID, request_id: str) -> None:
        """Continue the trace of a write in its webhooks."""
        await publish_context(tx, plan_manager_id, request_id)

    def trace_statements(self) -> OnStatement:
        """An observer of connections."""
        return StatementSpans(self.tracer)

    def trace_webhooks(self) -> WebhookTraces:
        return WebhookTraces(self.tracer)

    async def close(self) -> None:
        """Export what is left. A collector that doesn't respond delays the process by SHUTDOWN_TIMEOUT at most."""
        root = logging.getLogger()
        root.removeHandler(self._reports)
        for handler in root.handlers:
            handler.removeFilter(add_trace_id)
        closing = [asyncio.to_thread(each.shutdown) for each in (self._traces, self._logs)]
        await asyncio.wait([asyncio.ensure_future(each) for each in closing], timeout=SHUTDOWN_TIMEOUT)


def _resource() -> Resource:
    """What all spans and log records have in common. OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES override it."""
    defaults = {
        "service.name": "plankeeper",
        "service.version": __version__,
        "service.instance.id": str(uuid7()),
    }
    given = OTELResourceDetector().detect().attributes
    return Resource.create({name: value for name, value in defaults.items() if name not in given})


def _is_exported(variable: str) -> bool:
    """Whether a variable leaves a signal on."""
    return os.environ.get(variable) != "none"
