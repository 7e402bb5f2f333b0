"""Deliveries in SQL, for the API and the console: lists, tests and retries."""

from collections.abc import Sequence
from datetime import datetime
from typing import LiteralString, NamedTuple
from uuid import UUID

from plankeeper.core.ids import uuid7_lower_bound
from plankeeper.database.client import Executor, Transaction
from plankeeper.events.store import EVENT_COLUMNS, WITHOUT_SEQUENCE
from plankeeper.webhooks.schemas import DeliveryCount, DeliveryDetails, WebhookDelivery

# Workers generate the ids, and the database sets the times of creation: how much their clocks can differ, in ms.
MAX_CLOCK_DIFFERENCE = 60 * 60 * 1000

COLUMNS: LiteralString = """
        id, webhook_endpoint_id, event_id, event_type, status, attempts::json, next_attempt_at, created_at"""


class DeliveryFilter(NamedTuple):
    """The conditions on deliveries; null selects all. Times are from the first until before the second.

    `after` and `before` are ids. `attempted_since` and `attempted_before` are set together: they select deliveries
    with an attempt at that time.
    """

    after: UUID | None = None
    before: UUID | None = None
    statuses: Sequence[str] | None = None
    event_type: str | None = None
    created_since: datetime | None = None
    created_before: datetime | None = None
    attempted_since: datetime | None = None
    attempted_before: datetime | None = None
    event_id: UUID | None = None


def id_bounds(start: datetime | None, end: datetime | None) -> tuple[UUID | None, UUID | None]:
    """The `after` and `before` of deliveries of a time: ids are in order of time, and limit the range of an index."""
    return (
        _shift(uuid7_lower_bound(start), -MAX_CLOCK_DIFFERENCE) if start else None,
        _shift(uuid7_lower_bound(end), MAX_CLOCK_DIFFERENCE) if end else None,
    )


def _shift(delivery_id: UUID, milliseconds: int) -> UUID:
    return UUID(int=max(0, delivery_id.int + (milliseconds << 80)))


ATTEMPTS_OF_TIME: LiteralString = """
            select from jsonb_array_elements(attempts) attempt
            where (attempt ->> 'at')::timestamptz >= $9 and (attempt ->> 'at')::timestamptz < $10"""
MATCHING: LiteralString = f"""
    from webhook_deliveries
    where plan_manager_id = $1 and webhook_endpoint_id = $2
        and id > coalesce($3::uuid, '00000000-0000-0000-0000-000000000000')
        and id < coalesce($4::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff')
        and ($5::text[] is null or status = any ($5))
        and ($6::text is null or event_type = $6)
        and ($7::timestamptz is null or created_at >= $7)
        and ($8::timestamptz is null or created_at < $8)
        and ($9::timestamptz is null or exists ({ATTEMPTS_OF_TIME}
        ))"""
# $11 is the event: a statement of its own, because the deliveries of an event have their own index.
OF_ALL_EVENTS: LiteralString = f"{MATCHING} and $11::uuid is null"
OF_EVENT: LiteralString = f"{MATCHING} and event_id = $11"
LIST_NEWEST: LiteralString = f"select {COLUMNS} {OF_ALL_EVENTS} order by id desc limit $12"
LIST_NEWEST_OF_EVENT: LiteralString = f"select {COLUMNS} {OF_EVENT} order by id desc limit $12"


async def list_newest(
    db: Executor, plan_manager_id: UUID, endpoint_id: UUID, filters: DeliveryFilter, limit: int
) -> list[WebhookDelivery]:
    """The matching deliveries, the newest first."""
    values = (endpoint_id, *filters, limit)
    if filters.event_id is None:
        return await db.rows(WebhookDelivery, LIST_NEWEST, plan_manager_id, *values)
    return await db.rows(WebhookDelivery, LIST_NEWEST_OF_EVENT, plan_manager_id, *values)


LIST_OLDEST: LiteralString = f"select {COLUMNS} {OF_ALL_EVENTS} order by id limit $12"
LIST_OLDEST_OF_EVENT: LiteralString = f"select {COLUMNS} {OF_EVENT} order by id limit $12"


async def list_oldest(
    db: Executor, plan_manager_id: UUID, endpoint_id: UUID, filters: DeliveryFilter, limit: int
) -> list[WebhookDelivery]:
    """The matching deliveries, the oldest first."""
    values = (endpoint_id, *filters, limit)
    if filters.event_id is None:
        return await db.rows(WebhookDelivery, LIST_OLDEST, plan_manager_id, *values)
    return await db.rows(WebhookDelivery, LIST_OLDEST_OF_EVENT, plan_manager_id, *values)


def _count(matching: LiteralString) -> LiteralString:
    return f"""
    select count(*) as deliveries, coalesce(sum(attempts), 0)::bigint as attempts
    from (
        select case when $9::timestamptz is not null then (select count(*) from ({ATTEMPTS_OF_TIME}) of_time) end
            as attempts
        {matching}
        limit $12
    ) counted
"""


COUNT_MATCHING: LiteralString = _count(OF_ALL_EVENTS)
COUNT_MATCHING_OF_EVENT: LiteralString = _count(OF_EVENT)


async def count_matching(
    db: Executor, plan_manager_id: UUID, endpoint_id: UUID, filters: DeliveryFilter, max_deliveries: int
) -> DeliveryCount:
    """The number of matching deliveries, of at most `max_deliveries`, and of their attempts in the time selected."""
    values = (endpoint_id, *filters, max_deliveries)
    if filters.event_id is None:
        return await db.one(DeliveryCount, COUNT_MATCHING, plan_manager_id, *values)
    return await db.one(DeliveryCount, COUNT_MATCHING_OF_EVENT, plan_manager_id, *values)


GET: LiteralString = f"select {COLUMNS} from webhook_deliveries where plan_manager_id = $1 and id = $2"


async def get(db: Executor, plan_manager_id: UUID, delivery_id: UUID) -> WebhookDelivery | None:
    """A delivery of any endpoint."""
    return await db.one_or_none(WebhookDelivery, GET, plan_manager_id, delivery_id)


GET_DETAILS: LiteralString = f"""
    select delivery.id, delivery.webhook_endpoint_id, delivery.event_id, delivery.event_type, delivery.status,
        delivery.attempts::json, delivery.next_attempt_at, delivery.created_at, delivery.attempt_details::json,
        {EVENT_COLUMNS},
        event.data as event_data, event.previous as event_previous, event.request_id as event_request_id,
        (select position from event_order where plan_manager_id = $1 and event_id = delivery.event_id)
            as event_sequence
    from webhook_deliveries delivery
    left join lateral (
        select {WITHOUT_SEQUENCE} from events where plan_manager_id = $1 and id = delivery.event_id
    ) event on true
    where delivery.plan_manager_id = $1 and delivery.webhook_endpoint_id = $2 and delivery.id = $3
"""


async def get_details(
    db: Executor, plan_manager_id: UUID, endpoint_id: UUID, delivery_id: UUID
) -> DeliveryDetails | None:
    """A delivery of an endpoint with the requests and responses of its attempts, and its event."""
    return await db.one_or_none(DeliveryDetails, GET_DETAILS, plan_manager_id, endpoint_id, delivery_id)


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
