"""Logs: one JSON object a line on standard error. No personal data: of an error no message, only where and what."""

import logging
import os
import traceback
from datetime import UTC, datetime
from typing import Any

import msgspec

_encoder = msgspec.json.Encoder()


class Lines(logging.Formatter):
    """A record as JSON. Of an exception its class, PostgreSQL's code, and the places: its text may name a person."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            "logger": record.name,
        }
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            line["error"] = type(error).__name__
            line["sqlstate"] = getattr(error, "sqlstate", None)
            line["places"] = [f"{place.filename}:{place.lineno} {place.name}" for place in _places(error)]
        return _encoder.encode(line).decode()


def _places(error: BaseException) -> list[traceback.FrameSummary]:
    return list(traceback.extract_tb(error.__traceback__))


def set_up() -> None:
    """Whatever logs in this process writes such lines."""
    handler = logging.StreamHandler()
    handler.setFormatter(Lines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True


def write(line: msgspec.Struct) -> None:
    """A line at once, past the handlers: they would cost more than the request's own steps."""
    os.write(2, _encoder.encode(line) + b"\n")
