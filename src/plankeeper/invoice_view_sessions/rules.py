"""What a page may claim of a session: never more than can have been."""

from datetime import timedelta
from typing import NamedTuple

HEARTBEAT_TIMEOUT = timedelta(seconds=60)
"""How long the console waits for a heartbeat before a session is over."""

IDLE_PERIOD_SECONDS = 60
"""Seconds without input after which nobody is engaged: so many must go by for each time of it."""


class Durations(NamedTuple):
    """What was measured of a session up to a heartbeat; whole seconds."""

    active_seconds: int
    engaged_seconds: int
    idle_count: int


def clamp(active_ms: int, engaged_ms: int, idle_count: int, elapsed: timedelta, previous: Durations) -> Durations:
    """What a page has measured as far as it can be true, and never less than it said before.

    `elapsed` is the session's time by the server's clock. Nobody is active for longer than the session lasts, or
    engaged for longer than active, or idle more often than its time has minutes.
    """
    seconds = max(0, int(elapsed.total_seconds()))
    active = max(previous.active_seconds, min(active_ms // 1000, seconds))
    engaged = max(previous.engaged_seconds, min(engaged_ms // 1000, active))
    return Durations(active, engaged, max(previous.idle_count, min(idle_count, seconds // IDLE_PERIOD_SECONDS)))
