"""Logs: one JSON object per line on standard error. Error messages are left out, as they may contain personal data."""

import logging
import os
import traceback
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

_encoder = msgspec.json.Encoder()


class JsonFormatter(logging.Formatter):
    """A record as JSON. An exception is logged with its class, its SQLSTATE and its traceback, but without its text."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            "logger": record.name,
        }
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            entry["error"] = type(error).__name__
            entry["sqlstate"] = getattr(error, "sqlstate", None)
            entry["places"] = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in _traceback_frames(error)]
        return _encoder.encode(entry).decode()


def _traceback_frames(error: BaseException) -> list[traceback.FrameSummary]:
    return list(traceback.extract_tb(error.__traceback__))


def configure() -> None:
    """Log everything in this process as JSON."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logging.getLogger(name).handlers.clear()
        logging.getLogger(name).propagate = True
    # With a handler, uvicorn would format a line for each request.
    logging.getLogger("uvicorn.access").propagate = False


def write(entries: Sequence[msgspec.Struct]) -> None:
    """Write log entries directly: logging handlers would cost more than the request itself."""
    text = _encoder.encode_lines(entries)
    while text:
        text = text[os.write(2, text) :]
