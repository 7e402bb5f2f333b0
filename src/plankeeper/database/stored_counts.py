"""Stored numbers of rows, as sums: each write appends a row with a difference, so writers never wait for each other.

Participants are counted by status and state, invoices by claim status and approval status.
"""

from collections.abc import Sequence
from typing import Literal, LiteralString
from uuid import UUID

from plankeeper.database.client import Executor

CountedList = Literal["participants", "invoices"]


def add_counts(list_name: LiteralString, differences: LiteralString) -> LiteralString:
    """A statement that appends differences: it selects two values of each row, and 1 for a new or -1 for an old row."""
    return f"""
    insert into stored_counts (plan_manager_id, list, status, second_status, count)
    select $1, '{list_name}', status, coalesce(second_status, ''), sum(difference)
    from ({differences}) differences (status, second_status, difference)
    group by status, coalesce(second_status, '')
    having sum(difference) <> 0
"""


SUM = """
    select coalesce(sum(count), 0)::bigint
    from stored_counts
    where plan_manager_id = $1 and list = $2
        and ($3::text[] is null or status = any ($3))
        and ($4::text[] is null or second_status = any ($4))
"""


async def sum_counts(
    db: Executor,
    plan_manager_id: UUID,
    list_name: CountedList,
    statuses: Sequence[str] | None,
    second_statuses: Sequence[str] | None,
) -> int:
    """The stored number of rows with one of some statuses and one of some second statuses; null stands for all."""
    return await db.one(int, SUM, plan_manager_id, list_name, statuses, second_statuses)


COMPACT = """
    with crowded as (
        -- one task compacts the counts of all plan managers
        select plan_manager_id, list, status, second_status
        from stored_counts
        group by plan_manager_id, list, status, second_status
        having count(*) > 50
        limit $1
    ), removed as (
        delete from stored_counts counts using crowded
        where counts.plan_manager_id = crowded.plan_manager_id and counts.list = crowded.list
            and counts.status = crowded.status and counts.second_status = crowded.second_status
        returning counts.plan_manager_id, counts.list, counts.status, counts.second_status, counts.count
    ), compacted as (
        insert into stored_counts (plan_manager_id, list, status, second_status, count)
        select plan_manager_id, list, status, second_status, sum(count)
        from removed
        group by plan_manager_id, list, status, second_status
    )
    select count(*) from removed
"""


async def compact(db: Executor, max_groups: int = 100) -> int:
    """Sum up counts that consist of many rows, and return the number of rows removed."""
    return await db.one(int, COMPACT, max_groups)
