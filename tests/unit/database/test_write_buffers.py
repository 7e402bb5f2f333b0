"""Buffers of rows: what a stopping worker has taken from its buffer is written too."""

import asyncio

import pytest

from plankeeper.database import write_buffer
from plankeeper.database.write_buffer import WriteBuffer


class Rows(WriteBuffer):
    contents = "rows"

    def __init__(self) -> None:
        self.buffered = ["first"]
        self.written: list[str] = []
        self.is_taken = asyncio.Event()

    async def flush(self) -> None:
        taken, self.buffered = self.buffered, []
        self.is_taken.set()
        await asyncio.sleep(0.05)
        self.written += taken


async def stop_while_writing(rows: Rows) -> None:
    watching = asyncio.create_task(rows.watch())
    await rows.is_taken.wait()
    rows.buffered.append("second")
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    await rows.close()


async def test_rows_that_are_being_written_when_a_worker_stops_are_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_buffer, "FLUSH_INTERVAL", 0)
    rows = Rows()
    await stop_while_writing(rows)
    assert rows.written == ["first", "second"]


async def test_a_worker_does_not_wait_longer_for_a_database_that_does_not_respond(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(write_buffer, "FLUSH_INTERVAL", 0)
    monkeypatch.setattr(write_buffer, "CLOSE_TIMEOUT", 0.001)
    rows = Rows()
    await stop_while_writing(rows)
    assert rows.written == []
    assert "the last rows are lost: the database does not respond" in caplog.text
