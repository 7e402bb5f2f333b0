"""Logs: one JSON object a line on standard error. No personal data: of an error no message, only where and what."""

import logging
import os
import traceback
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

_encoder = msgspec.json.Encoder()


class JsonFormatter(logging.Formatter):
    """A record as JSON. Of an exception its class, PostgreSQL's code, and the places: its text may name a person."""

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
    """Whatever logs in this process writes such lines."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logging.getLogger(name).handlers.clear()
        logging.getLogger(name).propagate = True
    # Where this one has any handler, uvicorn makes a line of its own for each request, if only to drop it.
    logging.getLogger("uvicorn.access").propagate = False


def write(entries: Sequence[msgspec.Struct]) -> None:
    """Write lines past the handlers, which would cost more than a request's own steps."""
    text = _encoder.encode_lines(entries)
    while text:
        text = text[os.write(2, text) :]
