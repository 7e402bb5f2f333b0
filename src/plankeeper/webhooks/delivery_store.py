"""Deliveries in SQL, for the API and the console: lists, tests and retries."""

from typing import LiteralString
from uuid import UUID

from plankeeper.database.client import Executor, Transaction
from plankeeper.http.schemas import unset_to_none
from plankeeper.webhooks.schemas import DeliveryDetails, DeliveryListQuery, WebhookDelivery

COLUMNS: LiteralString = """
        id, webhook_endpoint_id, event_id, event_type, status, attempts::json, next_attempt_at, created_at"""

LIST_PAGE: LiteralString = f"""
    select {COLUMNS}
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
    """The rows of one page, and one more if another page follows."""
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


LATEST: LiteralString = f"""
    select {COLUMNS}
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
    """The newest deliveries first; with `before`, only those older than it."""
    return await db.rows(WebhookDelivery, LATEST, plan_manager_id, endpoint_id, before, status, limit)


GET_DETAILS = """
    select delivery.id, delivery.webhook_endpoint_id, delivery.event_id, delivery.event_type, delivery.status,
        delivery.attempts::json, delivery.next_attempt_at, delivery.created_at, delivery.attempt_details::json,
        event.created_at as event_created_at, event.resource_kind, event.resource_id, event.data
    from webhook_deliveries delivery
    left join events event on event.plan_manager_id = $1 and event.id = delivery.event_id
    where delivery.plan_manager_id = $1 and delivery.webhook_endpoint_id = $2 and delivery.id = $3
"""


async def get_details(
    db: Executor, plan_manager_id: UUID, endpoint_id: UUID, delivery_id: UUID
) -> DeliveryDetails | None:
    """A delivery of an endpoint with what its attempts sent and received, and its event."""
    return await db.one_or_none(DeliveryDetails, GET_DETAILS, plan_manager_id, endpoint_id, delivery_id)


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
    """Insert a delivery of an event, whatever event types the endpoint receives."""
    await tx.execute(INSERT, plan_manager_id, endpoint_id, event_id, event_type)


GET_ENDPOINT_ID = "select webhook_endpoint_id from webhook_deliveries where plan_manager_id = $1 and id = $2"


async def get_endpoint_id(tx: Transaction, plan_manager_id: UUID, delivery_id: UUID) -> UUID | None:
    """The id of a delivery's endpoint; None for an unknown delivery."""
    return await tx.one_or_none(UUID, GET_ENDPOINT_ID, plan_manager_id, delivery_id)


RETRY: LiteralString = f"""
    update webhook_deliveries set status = 'pending', next_attempt_at = statement_timestamp()
    where plan_manager_id = $1 and id = $2
    returning {COLUMNS}
"""


async def retry(tx: Transaction, plan_manager_id: UUID, delivery_id: UUID) -> WebhookDelivery | None:
    """Schedule another attempt now, whatever the status; None for an unknown delivery."""
    return await tx.one_or_none(WebhookDelivery, RETRY, plan_manager_id, delivery_id)
