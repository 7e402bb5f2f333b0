"""SQL of leases. The minute is the database's, so that servers with different clocks agree on it."""

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from plankeeper.database.client import Executor
from plankeeper.database.row_mapping import value_lists


class UsageReport(Struct):
    """A worker's usage of its lease for `minute`, and the number of requests that it asks for in the current minute."""

    subject: str
    minute: datetime
    quota: int
    used: int
    returned: int
    requested: int


class Lease(Struct):
    """The quota's usage by all workers, and the new lease of this worker. The minute ends in `seconds`."""

    subject: str
    minute: datetime
    used: int
    lease: int
    seconds: float


ENSURE_ROWS = """
    insert into rate_limits (subject, minute, granted, used, lease)
    select unnest($1::text[]), date_trunc('minute', statement_timestamp()), 0, 0, 0
    order by 1
    on conflict (subject) do nothing
"""


async def ensure_rows(db: Executor, subjects: Sequence[str]) -> None:
    """Insert rows for new subjects."""
    await db.execute(ENSURE_ROWS, subjects)


LEASE = """
    with report as materialized (
        select * from unnest($1::text[], $2::timestamptz[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[])
            as report (subject, minute, quota, used, returned, requested)
    ), locked as materialized (
        select subject, minute, granted, used, date_trunc('minute', statement_timestamp()) as this_minute
        from rate_limits where subject = any ($1) order by subject for update
    ), in_minute as materialized (
        select locked.*, case when locked.minute > this_minute + interval '1 minute' then this_minute
            else greatest(locked.minute, this_minute) end as current
        from locked
    ), totals as materialized (
        select in_minute.subject, in_minute.current, report.quota, report.requested,
            case when in_minute.minute = in_minute.current then in_minute.granted else 0 end
                - case when report.minute = in_minute.current then report.returned else 0 end as granted,
            case when in_minute.minute = in_minute.current then in_minute.used else 0 end
                + case when report.minute = in_minute.current then report.used else 0 end as used
        from in_minute join report on report.subject = in_minute.subject
    )
    update rate_limits set minute = current, used = totals.used, lease = least(requested, free),
        granted = totals.granted + least(requested, free)
    from totals, greatest((quota - totals.granted) / 8, least(1, quota - totals.granted), 0) as free
    where rate_limits.subject = totals.subject
    returning rate_limits.subject, rate_limits.minute, rate_limits.used, rate_limits.lease,
        extract(epoch from rate_limits.minute + interval '1 minute' - clock_timestamp())::float8 as seconds
"""


async def lease(db: Executor, reports: Sequence[UsageReport]) -> list[Lease]:
    """Add the reported usage, and return new leases. Subjects without a row are left out.

    A lease is at most an eighth of the remaining quota, so that an idle worker does not hold the last requests of a
    minute. Rows are locked in a fixed order, so that concurrent reports do not deadlock. A report that waited for
    a lock must not set the minute back; only a clock that is more than a minute behind may.
    """
    return await db.rows(Lease, LEASE, *value_lists(UsageReport, reports))


PURGE = "delete from rate_limits where minute < statement_timestamp() - interval '5 minutes'"


async def purge(db: Executor) -> None:
    """Delete subjects without requests in the last minutes."""
    await db.execute(PURGE)
