"""Slow the webhook worker down while the API needs the processor."""

import time
from contextlib import suppress
from pathlib import Path

_SCHEDSTAT = Path(
    "/proc/self/schedstat"
)  # Linux: nanoseconds running, nanoseconds waiting for a processor, time slices
FACTOR = 10.0  # seconds of pause for each second of waiting for a processor
MAX_DELAY = 1.0  # seconds


class CpuBackoff:
    """Measures how long this process waited for a processor that other processes used."""

    def __init__(self) -> None:
        self._cpu_wait = cpu_wait_seconds()
        self._checked_at = time.monotonic()

    def delay(self) -> float:
        """The pause in seconds since the last call: 0 if the process waited for less than a twentieth of the time."""
        previous_wait, self._cpu_wait = self._cpu_wait, cpu_wait_seconds()
        previous_check, self._checked_at = self._checked_at, time.monotonic()
        wait = self._cpu_wait - previous_wait
        return min(MAX_DELAY, wait * FACTOR) if wait > (self._checked_at - previous_check) / 20 else 0.0


def cpu_wait_seconds() -> float:
    """Seconds that this process has waited for a processor; 0 on systems that don't report it."""
    with suppress(OSError, ValueError, IndexError):
        return int(_SCHEDSTAT.read_text().split()[1]) / 1e9
    return 0.0
