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

    @abstractmethod
    async def flush(self) -> None:
        """Write the buffered rows. They stay in the buffer if the database is unavailable."""

    async def watch(self) -> None:
        """Write buffered rows periodically, until cancelled."""
        while True:
            await asyncio.sleep(FLUSH_INTERVAL)
            await self.flush()

    async def close(self) -> None:
        """Write the remaining rows, unless the database takes longer than CLOSE_TIMEOUT."""
        try:
            await asyncio.wait_for(self.flush(), CLOSE_TIMEOUT)
        except TimeoutError:
            log.warning("the last rows are lost: the database does not respond", extra={"contents": self.contents})
