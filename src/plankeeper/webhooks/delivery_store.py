"""Deliveries in SQL, from where they are looked at: lists, tests, retries."""

from uuid import UUID

from plankeeper.database.client import Executor, Transaction
from plankeeper.http.schemas import unset_to_none
from plankeeper.webhooks.schemas import DeliveryListQuery, WebhookDelivery

LIST_PAGE = """
    select id, webhook_endpoint_id, event_id, event_type, status, attempts::json, next_attempt_at, created_at
    from webhook_deliveries
    where plan_manager_id = $1 and webhook_endpoint_id = $2 and id > $3
        and ($4::text is null or status = $4)
        and ($5::text is null or event_type = $5)
    order by id
    limit $6 offset $7
"""


async def list_page(
    db: Executor, plan_manager_id: UUID, endpoint_id: UUID, query: DeliveryListQuery
) -> list[WebhookDelivery]:
    """The rows of one page and one more, which tells whether there are more."""
    return await db.rows(
        WebhookDelivery,
        LIST_PAGE,
        plan_manager_id,
        endpoint_id,
        query.start,
        unset_to_none(query.status),
        unset_to_none(query.event_type),
        query.limit + 1,
        query.offset,
    )


LATEST = """
    select id, webhook_endpoint_id, event_id, event_type, status, attempts::json, next_attempt_at, created_at
    from webhook_deliveries
    where plan_manager_id = $1 and webhook_endpoint_id = $2
        and id < coalesce($3::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
        and ($4::text is null or status = $4)
    order by id desc
    limit $5
"""


async def latest(
    db: Executor, plan_manager_id: UUID, endpoint_id: UUID, before: UUID | None, status: str | None, limit: int
) -> list[WebhookDelivery]:
    """Deliveries newest first, those behind `before` alone where it is given."""
    return await db.rows(WebhookDelivery, LATEST, plan_manager_id, endpoint_id, before, status, limit)


COUNT = """
    select count(*)
    from webhook_deliveries
    where plan_manager_id = $1 and webhook_endpoint_id = $2
        and ($3::text is null or status = $3)
        and ($4::text is null or event_type = $4)
"""


async def count(db: Executor, plan_manager_id: UUID, endpoint_id: UUID, query: DeliveryListQuery) -> int:
    return await db.one(
        int, COUNT, plan_manager_id, endpoint_id, unset_to_none(query.status), unset_to_none(query.event_type)
    )


INSERT = """
    insert into webhook_deliveries (plan_manager_id, id, webhook_endpoint_id, event_id, event_type, status,
        next_attempt_at, created_at)
    values ($1, time_ordered_uuid(), $2, $3, $4, 'pending', clock_timestamp(), clock_timestamp())
"""


async def insert(tx: Transaction, plan_manager_id: UUID, endpoint_id: UUID, event_id: UUID, event_type: str) -> None:
    """A delivery of one event to one endpoint, whether it asked for that type or not."""
    await tx.execute(INSERT, plan_manager_id, endpoint_id, event_id, event_type)


GET_ENDPOINT_ID = "select webhook_endpoint_id from webhook_deliveries where plan_manager_id = $1 and id = $2"


async def get_endpoint_id(tx: Transaction, plan_manager_id: UUID, delivery_id: UUID) -> UUID | None:
    """The endpoint of a delivery; null where there is no such delivery."""
    return await tx.one_or_none(UUID, GET_ENDPOINT_ID, plan_manager_id, delivery_id)


RETRY = """
    update webhook_deliveries set status = 'pending', next_attempt_at = clock_timestamp()
    where plan_manager_id = $1 and id = $2
    returning id, webhook_endpoint_id, event_id, event_type, status, attempts::json, next_attempt_at, created_at
"""


async def retry(tx: Transaction, plan_manager_id: UUID, delivery_id: UUID) -> WebhookDelivery | None:
    """One more attempt at once, whatever came of the delivery before; null where it is gone."""
    return await tx.one_or_none(WebhookDelivery, RETRY, plan_manager_id, delivery_id)
