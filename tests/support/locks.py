"""Waits until statements wait for a lock. On Citus, only its workers show that they do."""

import asyncio

from plankeeper.database.client import Executor

WAITING = """
    select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'
"""


async def wait_for_locks(db: Executor, *tasks: asyncio.Task[object], count: int = 1) -> None:
    """Until this many connections to the database wait for a lock; fails if one of the tasks ends before."""
    while await db.one(int, WAITING) < count:
        assert not any(each.done() for each in tasks)
        await asyncio.sleep(0.01)
