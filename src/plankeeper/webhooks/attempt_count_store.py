"""SQL of the counts of attempts by endpoint and hour."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from plankeeper.database.client import Executor, Transaction
from plankeeper.database.row_mapping import value_lists
from plankeeper.webhooks.schemas import AttemptHour

ADD = """
    insert into webhook_attempt_hours (plan_manager_id, webhook_endpoint_id, hour, succeeded, failed)
    select plan_manager_id, webhook_endpoint_id, hour, succeeded, failed
    from unnest($1::uuid[], $2::uuid[], $3::timestamptz[], $4::integer[], $5::integer[])
        as added (plan_manager_id, webhook_endpoint_id, hour, succeeded, failed)
    on conflict (plan_manager_id, webhook_endpoint_id, hour) do update set
        succeeded = webhook_attempt_hours.succeeded + excluded.succeeded,
        failed = webhook_attempt_hours.failed + excluded.failed
"""


async def add(tx: Transaction, counts: Sequence[AttemptHour]) -> None:
    """Add counts to those that are stored. They are in order of the primary key, so that workers can't deadlock."""
    await tx.execute(ADD, *value_lists(AttemptHour, counts))


LIST_SINCE = """
    select plan_manager_id, webhook_endpoint_id, hour, succeeded, failed
    from webhook_attempt_hours
    where plan_manager_id = $1 and ($2::uuid is null or webhook_endpoint_id = $2) and hour >= $3
    order by webhook_endpoint_id, hour
"""


async def list_since(
    db: Executor, plan_manager_id: UUID, endpoint_id: UUID | None, since: datetime
) -> list[AttemptHour]:
    """The counts of one endpoint or of all endpoints since a time."""
    return await db.rows(AttemptHour, LIST_SINCE, plan_manager_id, endpoint_id, since)


PURGE = "delete from webhook_attempt_hours where hour < statement_timestamp() - interval '25 hours'"


async def purge(db: Executor) -> None:
    """Delete the counts of all plan managers that are too old to be shown on a page."""
    await db.execute(PURGE)
