"""Who works beside a server steps back while there is too little processor for both."""

import time
from contextlib import suppress
from pathlib import Path

_STANDING = Path("/proc/self/schedstat")  # Linux: nanoseconds run, nanoseconds waited for a processor, turns
PATIENCE = 10.0  # how many times as long as it was kept waiting a process rests
LONGEST = 1.0  # seconds


class Manners:
    """Knows how long this process has been kept waiting for a processor: by others, who need it."""

    def __init__(self) -> None:
        self._waited = waited()
        self._seen = time.monotonic()

    def rest(self) -> float:
        """How long to rest now, in seconds. Waiting for less than a twentieth of the time is nothing."""
        before, self._waited = self._waited, waited()
        seen, self._seen = self._seen, time.monotonic()
        kept = self._waited - before
        return min(LONGEST, kept * PATIENCE) if kept > (self._seen - seen) / 20 else 0.0


def waited() -> float:
    """Seconds that this process has waited for a processor; 0 where the system does not say."""
    with suppress(OSError, ValueError, IndexError):
        return int(_STANDING.read_text().split()[1]) / 1e9
    return 0.0
