"""Retention of imports: unfinished ones, rejected rows, and the records of imports."""

import time

from plankeeper.database.client import Database
from plankeeper.imports import store

CHECK_INTERVAL = 60.0  # seconds


class ImportRetention:
    """A periodic task: deletes expired data once a minute. A retention of None keeps it forever."""

    def __init__(self, file_hours: int, rejected_row_days: int | None, record_days: int | None) -> None:
        self._file_hours, self._rejected_row_days, self._record_days = file_hours, rejected_row_days, record_days
        self._next_check = 0.0

    async def __call__(self, db: Database) -> None:
        if time.monotonic() < self._next_check:
            return
        self._next_check = time.monotonic() + CHECK_INTERVAL
        await store.purge_uploaded(db, self._file_hours)
        if self._rejected_row_days:
            await store.purge_rejected(db, self._rejected_row_days)
            await store.clear_columns(db, self._rejected_row_days)
        if self._record_days:
            await store.purge_imported(db, self._record_days)
