"""The time of a record's last change, which is also its version for conditional requests."""

from datetime import UTC, datetime, timedelta
from typing import LiteralString

# Of a written row: the time that the application has set, so that the response and the event contain it, unless it is
# missing or old. The commit watermark allows for clocks that differ, but not for a statement that waited for long.
UPDATED_AT: LiteralString = """
    case when updated_at > statement_timestamp() - interval '15 seconds' then updated_at
        else statement_timestamp() end"""


def next_updated_at(previous: datetime) -> datetime:
    """The time of a change: later than that of the previous one, also if the clock has been set back."""
    return max(datetime.now(UTC), previous + timedelta(microseconds=1))
