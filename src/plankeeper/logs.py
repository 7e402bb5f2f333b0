"""Logs: one JSON object a line on standard error. No personal data: of an error no message, only where and what."""

import logging
import os
import traceback
from collections.abc import Sequence
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
        logging.getLogger(name).handlers.clear()
        logging.getLogger(name).propagate = True
    # Where this one has any handler, uvicorn makes a line of its own for each request, if only to drop it.
    logging.getLogger("uvicorn.access").propagate = False


def write(lines: Sequence[msgspec.Struct]) -> None:
    """Write lines past the handlers, which would cost more than a request's own steps."""
    text = _encoder.encode_lines(lines)
    while text:
        text = text[os.write(2, text) :]
