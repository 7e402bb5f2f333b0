"""A buffer of rows that are written to the database once a second, off the path of requests."""

import asyncio
import logging
from abc import ABC, abstractmethod

log = logging.getLogger("plankeeper")

FLUSH_INTERVAL = 1.0  # seconds
CLOSE_TIMEOUT = 2.0  # seconds that a stopping worker waits for the database


class WriteBuffer(ABC):
    """The buffer of one worker. `contents` names the lost rows in log lines."""

    contents: str
    _flushing: asyncio.Task[None] | None = None

    @abstractmethod
    async def flush(self) -> None:
        """Write the buffered rows. They stay in the buffer if the database is unavailable."""

    async def watch(self) -> None:
        """Write buffered rows periodically, until cancelled. A write that has begun then goes on until `close`."""
        while True:
            await asyncio.sleep(FLUSH_INTERVAL)
            self._flushing = asyncio.create_task(self.flush())
            await asyncio.shield(self._flushing)  # cancelled, it would lose the rows that it has taken

    async def close(self) -> None:
        """Write the remaining rows, unless the database takes longer than CLOSE_TIMEOUT."""
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT):
                if self._flushing:
                    await self._flushing
                await self.flush()
        except TimeoutError:
            log.warning("the last rows are lost: the database does not respond", extra={"contents": self.contents})
