"""Reads a cursor in batches, and has PostgreSQL read the next batch while the caller works on one."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import Any

BATCH_SIZE = 1000


async def read_batches(cursor: Any) -> AsyncGenerator[Sequence[Any]]:
    """The records of asyncpg's cursor. Until the generator is closed, the connection can be busy."""
    fetching = asyncio.create_task(cursor.fetch(BATCH_SIZE))
    try:
        while records := await fetching:
            fetching = asyncio.create_task(cursor.fetch(BATCH_SIZE))
            await asyncio.sleep(0)  # the task sends its request
            yield records
    finally:
        await asyncio.gather(fetching, return_exceptions=True)
