"""Who works beside a server steps back while there is too little processor for both."""

import time
from contextlib import suppress
from pathlib import Path

_SCHEDSTAT = Path("/proc/self/schedstat")  # Linux: nanoseconds run, nanoseconds waited for a processor, turns
FACTOR = 10.0  # how many times as long as it was kept waiting a process rests
MAX_DELAY = 1.0  # seconds


class CpuBackoff:
    """Knows how long this process has been kept waiting for a processor: by others, who need it."""

    def __init__(self) -> None:
        self._cpu_wait = cpu_wait_seconds()
        self._checked_at = time.monotonic()

    def delay(self) -> float:
        """How long to rest now, in seconds. Waiting for less than a twentieth of the time is nothing."""
        previous_wait, self._cpu_wait = self._cpu_wait, cpu_wait_seconds()
        previous_check, self._checked_at = self._checked_at, time.monotonic()
        wait = self._cpu_wait - previous_wait
        return min(MAX_DELAY, wait * FACTOR) if wait > (self._checked_at - previous_check) / 20 else 0.0


def cpu_wait_seconds() -> float:
    """Seconds that this process has waited for a processor; 0 where the system does not say."""
    with suppress(OSError, ValueError, IndexError):
        return int(_SCHEDSTAT.read_text().split()[1]) / 1e9
    return 0.0
