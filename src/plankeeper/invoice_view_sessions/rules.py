"""Limits for the durations that a browser reports: never more than the elapsed time allows."""

from datetime import timedelta
from typing import NamedTuple

HEARTBEAT_TIMEOUT = timedelta(seconds=60)  # without a heartbeat; then the session ends
IDLE_PERIOD_SECONDS = 60  # without input; then the browser counts an idle period


class Durations(NamedTuple):
    """The durations of a session up to a heartbeat, in whole seconds."""

    active_seconds: int
    engaged_seconds: int
    idle_count: int


def clamp(active_ms: int, engaged_ms: int, idle_count: int, elapsed: timedelta, previous: Durations) -> Durations:
    """Limit reported durations to possible values, which never decrease.

    `elapsed` is the length of the session by the server's clock. It limits the active time, which limits the engaged
    time; each idle period takes at least a minute.
    """
    seconds = max(0, int(elapsed.total_seconds()))
    active = max(previous.active_seconds, min(active_ms // 1000, seconds))
    engaged = max(previous.engaged_seconds, min(engaged_ms // 1000, active))
    return Durations(active, engaged, max(previous.idle_count, min(idle_count, seconds // IDLE_PERIOD_SECONDS)))
