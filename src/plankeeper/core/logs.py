"""Logs: one JSON object per line on standard error. Error messages are left out, as they may contain personal data."""

import atexit
import logging
import os
import re
import select
import sys
import threading
import traceback
from collections.abc import Sequence
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

import msgspec

LEVELS = ("debug", "info", "warning", "error")

MAX_BUFFERED_BYTES = 4 * 2**20  # of each process, for lines that can't be written yet: about 15,000
FLUSH_TIMEOUT = 1.0  # seconds

log = logging.getLogger("plankeeper")

_encoder = msgspec.json.Encoder(enc_hook=str)
# The attributes of every record. Other attributes were passed as `extra` and become fields of the line.
_OWN_ATTRIBUTES = {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName", "color_message"}


class JsonFormatter(logging.Formatter):
    """A record as JSON, with the fields in `extra`, such as `request_id`.

    An exception is logged with its class and its SQLSTATE, from the level `error` on with its locations in the
    code, and always without its text.
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


class _BackgroundWriter:
    """Writes lines to standard error in a thread, so that a reader that stops doesn't stop the process.

    Lines that exceed the buffer, and lines that can't be written, such as to a full disk, are dropped and counted.
    """

    def __init__(self) -> None:
        self.dropped_lines = 0
        self._changed = threading.Condition()
        self._chunks: list[bytes] = []
        self._unwritten_bytes = 0  # of the chunks, and of those that the thread writes
        self._has_thread = False
        self._is_line_cut = False  # the last bytes that were written are the beginning of a line

    def write(self, text: str) -> None:
        """As a stream of a logging handler."""
        self.append(text.encode())

    def append(self, lines: bytes) -> None:
        with self._changed:
            if self._unwritten_bytes + len(lines) > MAX_BUFFERED_BYTES:
                self.dropped_lines += lines.count(b"\n")
                return
            self._chunks.append(lines)
            self._unwritten_bytes += len(lines)
            if not self._has_thread:
                self._has_thread = True
                threading.Thread(target=self._run, name="log writer", daemon=True).start()
                atexit.register(self.wait)
            self._changed.notify_all()

    def wait(self) -> None:
        """Wait until everything is written, for FLUSH_TIMEOUT at most."""
        with self._changed:
            self._changed.wait_for(lambda: not self._unwritten_bytes, FLUSH_TIMEOUT)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._chunks)
                lines, self._chunks = b"".join(self._chunks), []
            dropped = self._write(lines)
            with self._changed:
                self.dropped_lines += dropped
                self._unwritten_bytes -= len(lines)
                self._changed.notify_all()

    def _write(self, lines: bytes) -> int:
        """Write lines, and return how many of them were not written completely."""
        start = b"\n" if self._is_line_cut else b""
        data = start + lines
        view, position = memoryview(data), 0
        try:
            while position < len(view):
                # The lines of other processes come between two writes, and never into one of PIPE_BUF bytes at most.
                end = data.rfind(b"\n", position, position + select.PIPE_BUF) + 1 or data.find(b"\n", position) + 1
                try:
                    position += os.write(2, view[position : end or None])
                except BlockingIOError:  # another program made the pipe non-blocking
                    select.select([], [2], [])
        except OSError:
            pass
        if position:
            self._is_line_cut = view[position - 1] != ord("\n")
        return lines.count(b"\n", max(0, position - len(start)))


_writer = _BackgroundWriter()


def dropped_lines() -> int:
    """The number of dropped lines of this process."""
    return _writer.dropped_lines


def flush() -> None:
    """Wait until the lines of this process are written, for FLUSH_TIMEOUT at most."""
    _writer.wait()


def configure(level: str = "info", *, in_background: bool = False) -> None:
    """Log everything in this process as JSON, also warnings of Python and exceptions that nothing else handles.

    `level` is for Plankeeper's own lines. Libraries log warnings and errors; uvicorn also logs its start at `debug`.
    `in_background`: for processes of a server, in which nothing may wait for the reader of the log.
    """
    # Without a stream, the handler writes to sys.stderr.
    handler = logging.StreamHandler(_writer if in_background else None)
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
    _writer.append(_encoder.encode_lines(entries))
