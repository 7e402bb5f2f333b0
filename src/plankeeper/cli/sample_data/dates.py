"""Moves the sample data to the day on which it is loaded. Ids stay, so that the same records have the same ids."""

from datetime import date, datetime, time, timedelta

from plankeeper.cli.sample_data.random_values import (
    LAST_DAY,
    LAST_MOMENT,
    Row,
    format_datetime,
    parse_datetime,
)

# A date of birth doesn't move.
_DATES = (
    "onboard_date",
    "date_ceased",
    "start_date",
    "end_date",
    "plan_start_date",
    "plan_end_date",
    "invoice_date",
    "due_date",
    "service_date_from",
    "service_date_to",
)
_DATETIMES = ("created_at", "held_at", "session_started", "session_ended", "last_heartbeat")


def move_dates(row: Row, now: datetime) -> Row:
    """The row as of `now`, whose date becomes the last day. Nothing has happened after `now`."""
    days = timedelta(days=(now.date() - LAST_DAY).days)
    moved = dict(row)
    for name in _DATES:
        if row.get(name):
            moved[name] = (date.fromisoformat(row[name]) + days).isoformat()
    for name in _DATETIMES:
        if row.get(name):
            moved[name] = format_datetime(_before_now(parse_datetime(row[name]) + days, LAST_MOMENT + days, now))
    for name in ("line_items", "components", "periods"):
        if name in row:
            moved[name] = [move_dates(part, now) for part in row[name]]
    return moved


def _before_now(moment: datetime, end: datetime, now: datetime) -> datetime:
    """A time of today moves towards midnight, so that all times of the data, up to `end`, are before `now`."""
    midnight = datetime.combine(now.date(), time(), now.tzinfo)
    if moment < midnight or now >= end:
        return moment
    return midnight + (moment - midnight) * ((now - midnight) / (end - midnight))
