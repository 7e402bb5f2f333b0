"""Leases of quotas in SQL. The minute is the database's, so that servers with other clocks agree on it."""

from collections.abc import Sequence

from plankeeper.database.client import Executor
from plankeeper.rate_limits.schemas import Lease, UsageReport

ENSURE_ROWS = """
    insert into rate_limits (subject, minute, granted, used, lease)
    select unnest($1::text[]), date_trunc('minute', statement_timestamp()), 0, 0, 0
    order by 1
    on conflict (subject) do nothing
"""


async def ensure_rows(db: Executor, subjects: Sequence[str]) -> None:
    """Rows for subjects that have none."""
    await db.execute(ENSURE_ROWS, subjects)


LEASE = """
    with report as materialized (
        select * from unnest($1::text[], $2::timestamptz[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[])
            as report (subject, minute, quota, used, returned, requested)
    ), kept as materialized (
        select subject, minute, granted, used, date_trunc('minute', statement_timestamp()) as this_minute
        from rate_limits where subject = any ($1) order by subject for update
    ), dated as materialized (
        select kept.*, case when kept.minute > this_minute + interval '1 minute' then this_minute
            else greatest(kept.minute, this_minute) end as current
        from kept
    ), settled as materialized (
        select dated.subject, dated.current, report.quota, report.requested,
            case when dated.minute = dated.current then dated.granted else 0 end
                - case when report.minute = dated.current then report.returned else 0 end as granted,
            case when dated.minute = dated.current then dated.used else 0 end
                + case when report.minute = dated.current then report.used else 0 end as used
        from dated join report on report.subject = dated.subject
    )
    update rate_limits set minute = current, used = settled.used, lease = least(requested, free),
        granted = settled.granted + least(requested, free)
    from settled, greatest((quota - settled.granted) / 8, least(1, quota - settled.granted), 0) as free
    where rate_limits.subject = settled.subject
    returning rate_limits.subject, rate_limits.minute, rate_limits.used, rate_limits.lease,
        extract(epoch from rate_limits.minute + interval '1 minute' - clock_timestamp())::float8 as seconds
"""


async def lease(db: Executor, reports: Sequence[UsageReport]) -> list[Lease]:
    """Take in reports, and grant what is requested where the quota has it; subjects without a row are left out.

    A lease is at most an eighth of what is left, so that the last requests of a minute are not held by a worker that
    gets none. The rows are locked in one order: workers that report together wait, and never deadlock. Who has waited
    must not put the minute back; only a clock that was set back may.
    """
    return await db.rows(Lease, LEASE, *([getattr(report, name) for report in reports] for name in UsageReport._fields))


PURGE = "delete from rate_limits where minute < statement_timestamp() - interval '5 minutes'"


async def purge(db: Executor) -> None:
    """Forget subjects that were not seen for some minutes."""
    await db.execute(PURGE)
