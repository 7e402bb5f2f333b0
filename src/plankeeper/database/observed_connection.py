"""Connections that report their statements, for the log of slow statements and for traces."""

import time
from collections.abc import Callable
from typing import Any

import asyncpg

# Called after each statement: its text, its seconds, and its error. It must be fast, and must not raise.
OnStatement = Callable[[str, float, BaseException | None], None]


def notify_all(*observers: OnStatement | None) -> OnStatement | None:
    """One observer for all that aren't None, or None."""
    given = [each for each in observers if each]
    if len(given) < 2:
        return given[0] if given else None

    def notify(statement: str, seconds: float, error: BaseException | None) -> None:
        for each in given:
            each(statement, seconds, error)

    return notify


_Connection: Any = asyncpg.Connection  # without types that pyright accepts in strict mode


def _ignore(_statement: str, _seconds: float, _error: BaseException | None) -> None:
    """While the connection is opened, asyncpg runs statements of its own."""


class ObservedConnection(_Connection):
    """Reports statements and COPY. The rows of a cursor aren't reported."""

    on_statement: OnStatement = staticmethod(_ignore)

    async def fetch(self, query: str, *args: Any, **options: Any) -> Any:
        return await self._observe(query, _Connection.fetch(self, query, *args, **options))

    async def fetchrow(self, query: str, *args: Any, **options: Any) -> Any:
        return await self._observe(query, _Connection.fetchrow(self, query, *args, **options))

    async def execute(self, query: str, *args: Any, **options: Any) -> Any:
        return await self._observe(query, _Connection.execute(self, query, *args, **options))

    async def copy_records_to_table(self, table_name: str, **options: Any) -> Any:
        return await self._observe(f"copy {table_name}", _Connection.copy_records_to_table(self, table_name, **options))

    async def _observe(self, statement: str, running: Any) -> Any:
        started_at = time.perf_counter()
        try:
            result = await running
        except BaseException as error:
            self.on_statement(statement, time.perf_counter() - started_at, error)
            raise
        self.on_statement(statement, time.perf_counter() - started_at, None)
        return result
