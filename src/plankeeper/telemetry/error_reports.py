"""Warnings and errors as log records of OpenTelemetry, with the same fields as the lines of the log."""

import json
import logging

from opentelemetry._logs import Logger, LogRecord, SeverityNumber  # pyright: ignore[reportPrivateUsage]
from opentelemetry.context import get_current

from plankeeper.core.logs import JsonFormatter

# The exporters log their own failures, which must not be exported in turn.
_EXPORTERS = ("opentelemetry", "urllib3", "requests")
_SEVERITIES = {
    logging.WARNING: SeverityNumber.WARN,
    logging.ERROR: SeverityNumber.ERROR,
    logging.CRITICAL: SeverityNumber.FATAL,
}


class ErrorReports(logging.Handler):
    """Exports what the log contains, so that a text that is kept out of the log isn't exported either."""

    def __init__(self, logger: Logger) -> None:
        super().__init__(logging.WARNING)
        self._logger = logger
        self._formatter = JsonFormatter()

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.partition(".")[0] in _EXPORTERS:
            return
        members = json.loads(self._formatter.format(record))
        event = members.pop("event")
        attributes = {name: value for name, value in members.items() if name not in ("time", "level") and value}
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
