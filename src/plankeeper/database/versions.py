"""The version of a record: the time of its last change. ETags, forms and updates compare it."""

from datetime import UTC, datetime, timedelta
from typing import LiteralString

from plankeeper.database.combined_writes import Write
from plankeeper.database.row_ids import records_of

# Of a written row: the time that the application has set, so that the response and the event contain it, unless it is
# missing or old. The commit watermark allows for clocks that differ, but not for a statement that waited for long.
UPDATED_AT: LiteralString = """
    case when updated_at > statement_timestamp() - interval '15 seconds' then updated_at
        else statement_timestamp() end"""


def later_version(moment: LiteralString, updated_at: LiteralString = "updated_at") -> LiteralString:
    """What an update sets `updated_at` to: a moment, or just after the row's version if that is later.

    Citus accepts a sum with an interval, which depends on the time zone, of a column only in a sub-select.
    """
    return f"(select greatest({moment}, {updated_at} + interval '1 microsecond'))"


_EPOCH, _MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)


def next_updated_at(previous: datetime) -> datetime:
    """The time of a change: later than that of the previous one, also if the clock has been set back."""
    return max(datetime.now(UTC), previous + _MICROSECOND)


def format_version(updated_at: datetime) -> str:
    """A version as text: microseconds in hexadecimal."""
    return f"{(updated_at - _EPOCH) // _MICROSECOND:x}"


def parse_version(text: str) -> datetime | None:
    """The version in a text of `format_version`, or None for another text."""
    try:
        return _EPOCH + int(text, 16) * _MICROSECOND
    except (ValueError, OverflowError):
        return None


def changed_rows(table: LiteralString, columns: LiteralString, returning: LiteralString = "record.id") -> LiteralString:
    """The common table expressions that replace rows with the records in the JSON list `$2`.

    `new_<table>` are the records, `changed_<table>` the rows. If `$3` isn't null, the rows must have this version. A
    concurrent update that commits first leaves no row with it, even if this statement waited for that update.
    """
    return f"""
    new_{table} as materialized {records_of(table)},
    changed_{table} as (
        update {table} record set
            -- the sub-select only turns the columns of `new` into a list
            ({columns}, updated_at) = (
                select {columns}, greatest({UPDATED_AT}, record.updated_at + interval '1 microsecond')
                from (select new.*) written
            )
        from new_{table} new
        where record.plan_manager_id = $1 and record.id = new.id
            and record.updated_at = coalesce($3, record.updated_at)
        returning {returning}
    )"""


def compose_update(table: LiteralString, columns: LiteralString) -> Write:
    """The update of a resource: see `changed_rows`. It fails if it changes nothing."""
    return Write(changed_rows(table, columns), "", parameters=3, changed=f"changed_{table}")
