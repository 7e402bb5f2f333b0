"""Logs: one JSON object per line on standard error. Error messages are left out, as they may contain personal data."""

import logging
import os
import re
import sys
import threading
import traceback
from collections.abc import Sequence
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

import msgspec

LEVELS = ("debug", "info", "warning", "error")

log = logging.getLogger("plankeeper")

_encoder = msgspec.json.Encoder(enc_hook=str)
# What every record has. Other attributes were passed as `extra` and become members of the line.
_OWN_ATTRIBUTES = {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName", "color_message"}


class JsonFormatter(logging.Formatter):
    """A record as JSON, with the members in `extra`, such as `request_id`.

    An exception is logged with its class and its SQLSTATE, from the level `error` on with its places in the code, and
    always without its text.
    """

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC),
            "level": record.levelname.lower(),
            "event": _event(record),
            "logger": record.name,
        }
        entry |= {name: value for name, value in vars(record).items() if name not in _OWN_ATTRIBUTES}
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            entry["error"] = type(error).__name__
            entry["sqlstate"] = getattr(error, "sqlstate", None)
            if statement := getattr(error, "statement_name", None):  # see `database.errors`
                entry["statement"] = statement
            if record.levelno >= logging.ERROR:
                entry["places"] = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in _frames(error)]
        return _encoder.encode(entry).decode()


def _event(record: logging.LogRecord) -> str:
    """The record's message, without the texts of exceptions that a library puts into it."""
    if isinstance(record.msg, BaseException):
        return type(record.msg).__name__
    if isinstance(record.args, tuple) and any(isinstance(each, BaseException) for each in record.args):
        return str(record.msg)
    if record.name == "asyncio":
        # asyncio appends the task or the call, whose representations contain exceptions and arguments.
        return re.split(r"[\n<(:]", record.getMessage())[0].strip()
    return record.getMessage()


def _frames(error: BaseException) -> list[traceback.FrameSummary]:
    return list(traceback.extract_tb(error.__traceback__))


def configure(level: str = "info") -> None:
    """Log everything in this process as JSON, also warnings of Python and exceptions that nothing else handles.

    `level` is for Plankeeper's own lines. Libraries log warnings and errors; uvicorn also logs its start at `debug`.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.ERROR if level == "error" else logging.WARNING)
    log.setLevel(level.upper())
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logging.getLogger(name).handlers.clear()
        logging.getLogger(name).propagate = True
    logging.getLogger("uvicorn").setLevel(logging.INFO if level == "debug" else logging.NOTSET)
    # With a handler, uvicorn would format a line for each request.
    logging.getLogger("uvicorn.access").propagate = False
    logging.captureWarnings(capture=True)
    sys.excepthook = _log_uncaught
    threading.excepthook = _log_uncaught_in_thread


def is_request_logged(level: str) -> bool:
    """Whether the lines for requests, which have the level `info`, are written at a level."""
    return LEVELS.index(level) <= LEVELS.index("info")


def _log_uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if not issubclass(kind, KeyboardInterrupt):
        log.critical("the process failed", exc_info=(kind, error, trace))


def _log_uncaught_in_thread(arguments: threading.ExceptHookArgs) -> None:
    log.error("a thread failed", exc_info=arguments.exc_value)


def write(entries: Sequence[msgspec.Struct]) -> None:
    """Write log entries directly: logging handlers would cost more than the request itself."""
    text = _encoder.encode_lines(entries)
    while text:
        text = text[os.write(2, text) :]
