"""Webhook endpoints in SQL."""

from collections.abc import Sequence
from datetime import datetime
from typing import LiteralString
from uuid import UUID

from plankeeper.core.json import to_json
from plankeeper.core.lists import PageRows, fetch_page
from plankeeper.database.citus import Nodes
from plankeeper.database.client import Executor, Transaction
from plankeeper.database.lists.filtered_list import FilteredList
from plankeeper.database.lists.statements import BY_UPDATED_AT
from plankeeper.database.row_ids import HAS_ID
from plankeeper.database.versions import UPDATED_AT, next_updated_at
from plankeeper.webhooks.schemas import (
    FailingEndpoint,
    ReplayStart,
    UnhealthyEndpoints,
    WebhookEndpoint,
    WebhookEndpointListQuery,
    WebhookEndpointRow,
)

WRITTEN_COLUMNS: LiteralString = "id, url, description, event_types, payload, active, disabled_reason, created_at"
COLUMNS: LiteralString = f"{WRITTEN_COLUMNS}, updated_at"
STATE_COLUMNS: LiteralString = "secret, old_secret, old_secret_until, failing_since, last_position"

LIST = FilteredList(
    "webhook_endpoints",
    WebhookEndpointListQuery,
    sorts=BY_UPDATED_AT,
)


async def list_page(db: Executor, plan_manager_id: UUID, query: WebhookEndpointListQuery) -> PageRows[WebhookEndpoint]:
    return await fetch_page(db, plan_manager_id, query, LIST, get_many)


GET_MANY: LiteralString = f"select {COLUMNS} from webhook_endpoints where plan_manager_id = $1 and {HAS_ID}"


async def get_many(db: Executor, plan_manager_id: UUID, endpoint_ids: Sequence[UUID]) -> list[WebhookEndpoint]:
    """The endpoints that exist among the ids."""
    return await db.rows(WebhookEndpoint, GET_MANY, plan_manager_id, endpoint_ids)


COUNT = "select count(*) from webhook_endpoints where plan_manager_id = $1"


async def count(db: Executor, plan_manager_id: UUID) -> int:
    """The number of all endpoints."""
    return await db.one(int, COUNT, plan_manager_id)


COUNT_ACTIVE = "select count(*) from webhook_endpoints where plan_manager_id = $1 and active"


async def count_active(db: Executor, plan_manager_id: UUID) -> int:
    return await db.one(int, COUNT_ACTIVE, plan_manager_id)


LIST_FAILING = """
    select id, url, failing_since, disabled_reason, (
        select next_attempt_at from webhook_deliveries
        where plan_manager_id = $1 and webhook_endpoint_id = endpoint.id and status = 'pending'
        order by next_attempt_at
        limit 1
    ) as next_attempt_at
    from webhook_endpoints endpoint
    where plan_manager_id = $1 and case when active then failing_since is not null else disabled_reason is not null end
    order by id
"""


async def list_failing(db: Executor, plan_manager_id: UUID) -> list[FailingEndpoint]:
    """The endpoints that get no messages because of failures, with the time of their next attempt."""
    return await db.rows(FailingEndpoint, LIST_FAILING, plan_manager_id)


GET: LiteralString = f"select {COLUMNS} from webhook_endpoints where plan_manager_id = $1 and id = $2"


async def get(db: Executor, plan_manager_id: UUID, endpoint_id: UUID) -> WebhookEndpoint | None:
    return await db.one_or_none(WebhookEndpoint, GET, plan_manager_id, endpoint_id)


SELECT_FOR_UPDATE: LiteralString = f"""
    select {COLUMNS}, {STATE_COLUMNS}
    from webhook_endpoints
    where plan_manager_id = $1 and id = $2
    for update
"""


async def select_for_update(tx: Transaction, plan_manager_id: UUID, endpoint_id: UUID) -> WebhookEndpointRow | None:
    """An endpoint with its secrets, locked until the transaction ends."""
    return await tx.one_or_none(WebhookEndpointRow, SELECT_FOR_UPDATE, plan_manager_id, endpoint_id)


LOCK_PLAN_MANAGER = "select id from plan_managers where id = $1 for no key update"


async def lock_plan_manager(tx: Transaction, plan_manager_id: UUID) -> None:
    """Keep other transactions from creating an endpoint until this one ends.

    This is a separate statement, so that the next one sees what other transactions committed in the meantime.
    """
    await tx.execute(LOCK_PLAN_MANAGER, plan_manager_id)


UPSERT: LiteralString = f"""
    insert into webhook_endpoints (plan_manager_id, {WRITTEN_COLUMNS}, updated_at, {STATE_COLUMNS})
    select $1, {WRITTEN_COLUMNS}, {UPDATED_AT}, {STATE_COLUMNS}
    from json_populate_recordset(null::webhook_endpoints, $2)
    on conflict (plan_manager_id, id) do update set
        url = excluded.url, description = excluded.description, event_types = excluded.event_types,
        payload = excluded.payload, active = excluded.active, disabled_reason = excluded.disabled_reason,
        secret = excluded.secret, old_secret = excluded.old_secret,
        old_secret_until = excluded.old_secret_until, failing_since = excluded.failing_since,
        last_position = excluded.last_position, updated_at = excluded.updated_at
"""


async def upsert(tx: Transaction, plan_manager_id: UUID, endpoint: WebhookEndpointRow) -> None:
    """Insert an endpoint or replace an existing one, and set its `updated_at`."""
    endpoint.updated_at = next_updated_at(endpoint.updated_at)
    await tx.execute(UPSERT, plan_manager_id, to_json([endpoint]))


DELETE: LiteralString = f"delete from webhook_endpoints where plan_manager_id = $1 and id = $2 returning {COLUMNS}"


async def delete(tx: Transaction, plan_manager_id: UUID, endpoint_id: UUID) -> WebhookEndpoint | None:
    """Delete an endpoint with its deliveries, and return the deleted endpoint."""
    return await tx.one_or_none(WebhookEndpoint, DELETE, plan_manager_id, endpoint_id)


# Ids of UUIDv7 contain the times of events, by the clock of the server that created them. Positions are searched from
# an hour before. Around the time itself, the time of the event is compared.
FIND_REPLAY_START = """
    select coalesce(min(position) - 1, 0) as position, count(*) as events
    from event_order placed
    where plan_manager_id = $1 and notify and event_id >= $4
        and position >= (
            select position from event_marks
            where plan_manager_id = $1 and minute >= $3::timestamptz - interval '1 hour'
            order by minute
            limit 1
        )
        and type in (
            select event_types.code
            from webhook_endpoints endpoint
            join event_types on endpoint.event_types
                && array['*', event_types.name, split_part(event_types.name, '.', 1) || '.*']
            where endpoint.plan_manager_id = $1 and endpoint.id = $2
        )
        and case when event_id < $5 then (
            select created_at >= $3::timestamptz from events event
            where event.plan_manager_id = $1 and event.id = placed.event_id
        ) else true end
"""


async def find_replay_start(
    tx: Transaction, plan_manager_id: UUID, endpoint_id: UUID, since: datetime, min_event_id: UUID, certain_id: UUID
) -> ReplayStart:
    """Find the position before the first event since a time, and the number of events for an endpoint.

    Any event since that time has `min_event_id` or a higher id, and any event from `certain_id` on is since that time.
    """
    return await tx.one(ReplayStart, FIND_REPLAY_START, plan_manager_id, endpoint_id, since, min_event_id, certain_id)


DISABLE_ALL = """
    update webhook_endpoints
    set active = false, disabled_reason = $2, updated_at = greatest($3, updated_at)
    where plan_manager_id = $1 and active
    returning id
"""


async def disable_all(tx: Transaction, plan_manager_id: UUID, reason: str, at: datetime) -> list[UUID]:
    """Disable the active endpoints, and return their ids. Their pending deliveries stay."""
    return await tx.rows(UUID, DISABLE_ALL, plan_manager_id, reason, at)


PLAN_MANAGERS_BEHIND = """
    -- one task looks for endpoints that have not read the feed to its end
    select distinct plan_manager_id from webhook_endpoints endpoint
    where active and ($1::uuid[] is null or plan_manager_id = any ($1)) and exists (
        select from event_order placed
        where placed.plan_manager_id = endpoint.plan_manager_id and placed.position > endpoint.last_position
            and ($1::uuid[] is null or placed.plan_manager_id = any ($1))
    )
"""


async def plan_managers_behind(db: Executor, nodes: Nodes) -> list[UUID]:
    """The plan managers with an active endpoint for which there may be events."""
    return await nodes.collect(db, lambda ids: db.rows(UUID, PLAN_MANAGERS_BEHIND, ids))


COUNT_UNHEALTHY = """
    -- the operator's view of all plan managers
    select count(*) filter (where active and failing_since is not null) as failing,
        count(*) filter (where not active and disabled_reason is not null) as disabled,
        min(failing_since) filter (where active) as failing_since
    from webhook_endpoints
"""


async def count_unhealthy(db: Executor) -> UnhealthyEndpoints:
    return await db.one(UnhealthyEndpoints, COUNT_UNHEALTHY)
