"""Quotas count by the database's minute. Here is what keeps a test from depending on when that minute ends."""

from collections.abc import Callable
from typing import TypeVar

from plankeeper.database.client import Executor
from support.server import RunningServer

T = TypeVar("T")

HOLD = """
    insert into rate_limits (subject, minute, granted, used, lease)
    values ($1, date_trunc('minute', statement_timestamp()) + interval '1 minute', 0, 0, 0)
    on conflict (subject) do update set minute = excluded.minute, granted = 0, used = 0, lease = 0
"""


async def hold_minute(db: Executor, subject: str) -> None:
    """Begin a subject's next minute already: it lasts for more than a minute from now on."""
    await db.execute(HOLD, subject)


async def minute_of(db: Executor) -> str:
    return await db.one(str, "select date_trunc('minute', clock_timestamp())::text")


def within_one_minute(server: RunningServer, work: Callable[[], T]) -> T:
    """The result of work during which no minute has ended; it is done again where one has."""
    for _ in range(5):
        minute = server.run(minute_of(server.db))
        found = work()
        if server.run(minute_of(server.db)) == minute:
            return found
    raise AssertionError("it takes too long to fit in a minute")
