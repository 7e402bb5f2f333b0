"""The exporters of one process. The variables of OpenTelemetry, such as OTEL_EXPORTER_OTLP_ENDPOINT, configure them."""

import asyncio
import json
import logging
import os

from opentelemetry._logs import Logger, LogRecord, SeverityNumber  # pyright: ignore[reportPrivateUsage]
from opentelemetry.context import get_current
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
from plankeeper.core.logs import JsonFormatter
from plankeeper.database.connections import OnStatement
from plankeeper.server.telemetry.requests import StatementSpans, TracedEndpoint, add_trace_id, complete_spans
from plankeeper.server.telemetry.webhooks import WebhookTraces, publish_context

# The exporters log their own failures, which must not be exported in turn.
_EXPORTERS = ("opentelemetry", "urllib3", "requests")
_SEVERITIES = {
    logging.WARNING: SeverityNumber.WARN,
    logging.ERROR: SeverityNumber.ERROR,
    logging.CRITICAL: SeverityNumber.FATAL,
}


class ErrorReports(logging.Handler):
    """Exports the lines of the log, so that texts that aren't logged aren't exported either."""

    def __init__(self, logger: Logger) -> None:
        super().__init__(logging.WARNING)
        self._logger = logger
        self._formatter = JsonFormatter()

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.partition(".")[0] in _EXPORTERS:
            return
        fields = json.loads(self._formatter.format(record))
        event = fields.pop("event")
        attributes = {name: value for name, value in fields.items() if name not in ("time", "level") and value}
        if "error" in attributes:
            attributes["exception.type"] = attributes.pop("error")
        if "places" in attributes:
            attributes["exception.stacktrace"] = "\n".join(attributes.pop("places"))
        self._logger.emit(
            LogRecord(
                timestamp=int(record.created * 1e9),
                context=get_current(),
                severity_text=record.levelname,
                severity_number=_SEVERITIES.get(record.levelno, SeverityNumber.UNSPECIFIED),
                body=event,
                attributes=attributes,
            )
        )


SHUTDOWN_TIMEOUT = 5.0  # seconds for the last export of a stopping process


class Telemetry:
    """The exporters of this process: spans, and log records of warnings and errors."""

    trace_responses = staticmethod(complete_spans)
    publish_context = staticmethod(publish_context)

    def __init__(self) -> None:
        resource = _resource()
        self._traces, self._logs = TracerProvider(resource=resource), LoggerProvider(resource=resource)
        self._exporters: list[OTLPSpanExporter | OTLPLogExporter] = []
        if _is_exported("OTEL_TRACES_EXPORTER"):
            self._exporters.append(spans := OTLPSpanExporter())
            self._traces.add_span_processor(BatchSpanProcessor(spans))
        if _is_exported("OTEL_LOGS_EXPORTER"):
            self._exporters.append(records := OTLPLogExporter())
            self._logs.add_log_record_processor(BatchLogRecordProcessor(records))
        self.tracer = self._traces.get_tracer("plankeeper", __version__)
        self._reports = ErrorReports(self._logs.get_logger("plankeeper", __version__))
        root = logging.getLogger()
        for handler in root.handlers:
            handler.addFilter(add_trace_id)
        root.addHandler(self._reports)

    def trace_endpoint(self, endpoint: ASGIApp, route: str | None) -> ASGIApp:
        """The endpoint of a path, whose requests get a span."""
        return TracedEndpoint(endpoint, route, self.tracer)

    def trace_statements(self) -> OnStatement:
        """An observer of connections."""
        return StatementSpans(self.tracer)

    def trace_webhooks(self) -> WebhookTraces:
        return WebhookTraces(self.tracer)

    async def close(self) -> None:
        """Export the rest. A collector that doesn't respond delays the process by at most SHUTDOWN_TIMEOUT."""
        root = logging.getLogger()
        root.removeHandler(self._reports)
        for handler in root.handlers:
            handler.removeFilter(add_trace_id)
        closing = [asyncio.create_task(asyncio.to_thread(each.shutdown)) for each in (self._traces, self._logs)]
        _, late = await asyncio.wait(closing, timeout=SHUTDOWN_TIMEOUT)
        if late:
            for each in self._exporters:
                each.shutdown()  # An export that failed isn't tried again.
            await asyncio.wait(late, timeout=1)


def _resource() -> Resource:
    """The attributes of all spans and log records. OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES override it."""
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
