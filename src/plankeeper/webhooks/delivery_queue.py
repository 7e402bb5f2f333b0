"""Deliveries in SQL, for the workers: created from events, claimed, updated after an attempt, purged."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import LiteralString
from uuid import UUID

from plankeeper.core.json import to_json
from plankeeper.database.citus import Nodes, shard_key
from plankeeper.database.client import Executor, Transaction
from plankeeper.events.store import EVENT_COLUMNS, WITHOUT_SEQUENCE
from plankeeper.webhooks.schemas import DeliveryBacklog, DeliveryJob, DeliveryUpdate, FanOutEndpoint

LOCK_ENDPOINTS = """
    select id, event_types, last_position, (
        select count(*)
        from (
            select from webhook_deliveries
            where plan_manager_id = $1 and webhook_endpoint_id = endpoint.id and status = 'pending'
                and next_attempt_at <= statement_timestamp()
            limit $2
        ) due
    ) as due
    from webhook_endpoints endpoint
    where plan_manager_id = $1 and active
    order by id
    for no key update skip locked
"""


async def lock_endpoints(tx: Transaction, plan_manager_id: UUID, max_due: int) -> list[FanOutEndpoint]:
    """Lock the active endpoints of a plan manager that aren't locked yet. Counts up to `max_due` deliveries."""
    return await tx.rows(FanOutEndpoint, LOCK_ENDPOINTS, plan_manager_id, max_due)


INSERT_MANY = """
    insert into webhook_deliveries (plan_manager_id, id, webhook_endpoint_id, event_id, event_type, status,
        next_attempt_at, created_at)
    select $1, id, webhook_endpoint_id, event_id, event_type, 'pending', clock_timestamp(), statement_timestamp()
    from unnest($2::uuid[], $3::uuid[], $4::uuid[], $5::text[])
        as new_delivery (id, webhook_endpoint_id, event_id, event_type)
"""


async def insert_many(
    tx: Transaction, plan_manager_id: UUID, deliveries: Sequence[tuple[UUID, UUID, UUID, str]]
) -> None:
    """Insert pending deliveries: their ids, and the endpoint, the event and the type of event of each."""
    columns = [list(column) for column in zip(*deliveries, strict=True)]
    await tx.execute(INSERT_MANY, plan_manager_id, *columns)


ADVANCE_ENDPOINTS = """
    update webhook_endpoints endpoint set last_position = advanced.position
    from unnest($2::uuid[], $3::bigint[]) as advanced (id, position)
    where endpoint.plan_manager_id = $1 and endpoint.id = advanced.id
"""


async def advance_endpoints(tx: Transaction, plan_manager_id: UUID, positions: Mapping[UUID, int]) -> None:
    """Record the positions up to which the endpoints have read the feed."""
    await tx.execute(ADVANCE_ENDPOINTS, plan_manager_id, list(positions), list(positions.values()))


LIST_DUE = """
    with recursive pending as (
        -- one probe of the index for each endpoint with pending deliveries, of any plan manager
        (select webhook_endpoint_id as id, plan_manager_id from webhook_deliveries where status = 'pending'
            order by webhook_endpoint_id limit 1)
        union all
        select next.id, next.plan_manager_id from pending cross join lateral (
            select webhook_endpoint_id as id, plan_manager_id from webhook_deliveries
            where status = 'pending' and webhook_endpoint_id > pending.id order by webhook_endpoint_id limit 1
        ) next
    )
    select distinct pending.plan_manager_id
    from pending
    join webhook_endpoints endpoint on endpoint.plan_manager_id = pending.plan_manager_id and endpoint.id = pending.id
    cross join lateral (
        select from webhook_deliveries
        where status = 'pending' and webhook_endpoint_id = pending.id
            and next_attempt_at <= statement_timestamp() + $3::interval
        limit 1
    ) due
    where pending.id <> all (case when endpoint.failing_since is null then $1::uuid[] else $2::uuid[] end)
"""

# Citus doesn't distribute the recursion of LIST_DUE.
LIST_DUE_ON_CITUS = """
    select distinct endpoint.plan_manager_id
    from webhook_endpoints endpoint
    where ($4::uuid[] is null or endpoint.plan_manager_id = any ($4))
        and endpoint.id <> all (case when endpoint.failing_since is null then $1::uuid[] else $2::uuid[] end)
        and exists (
            select from webhook_deliveries delivery
            where ($4::uuid[] is null or delivery.plan_manager_id = any ($4))
                and delivery.plan_manager_id = endpoint.plan_manager_id and delivery.webhook_endpoint_id = endpoint.id
                and delivery.status = 'pending' and delivery.next_attempt_at <= statement_timestamp() + $3::interval
        )
"""


async def list_due(
    db: Executor, nodes: Nodes, in_flight: Mapping[UUID, int], max_per_endpoint: int, clock_offset: timedelta
) -> list[UUID]:
    """The plan managers with due deliveries that `claim_due` would claim."""
    busy = list(in_flight)
    full = [id_ for id_, attempts in in_flight.items() if attempts >= max_per_endpoint]
    if not db.is_citus:
        return await db.rows(UUID, LIST_DUE, full, busy, clock_offset)
    return await nodes.collect(db, lambda ids: db.rows(UUID, LIST_DUE_ON_CITUS, full, busy, clock_offset, ids))


CLAIM_DUE: LiteralString = f"""
    with due as materialized (
        select candidate.plan_manager_id, candidate.id, endpoint.url, endpoint.payload, endpoint.secret,
            endpoint.old_secret, endpoint.old_secret_until
        from webhook_endpoints endpoint
        left join unnest($2::uuid[], $3::bigint[]) as busy (id, attempts) on busy.id = endpoint.id
        cross join lateral (
            select plan_manager_id, id from webhook_deliveries
            where webhook_endpoint_id = endpoint.id and status = 'pending'
                and next_attempt_at <= statement_timestamp() + $6::interval
                and ($7::uuid is null or plan_manager_id = $7)
            order by next_attempt_at limit greatest(case when endpoint.failing_since is null then $4::bigint
                else 1 end - coalesce(busy.attempts, 0), 0) for update skip locked
        ) candidate
        where endpoint.plan_manager_id = any ($1) and ($7::uuid is null or endpoint.plan_manager_id = $7)
        limit $5
    ), claimed as (
        update webhook_deliveries delivery
        set next_attempt_at = statement_timestamp() + $6::interval + interval '1 minute'
        from due
        where delivery.plan_manager_id = due.plan_manager_id and delivery.id = due.id
            and ($7::uuid is null or delivery.plan_manager_id = $7)
        returning delivery.plan_manager_id, delivery.id, delivery.attempt_count, delivery.event_id,
            delivery.event_type, delivery.webhook_endpoint_id
    )
    select claimed.plan_manager_id, claimed.id, claimed.attempt_count, claimed.event_type as sent_type,
        {EVENT_COLUMNS},
        case when due.payload = 'full' then event.data end as event_data,
        case when due.payload = 'full' then event.previous end as event_previous,
        event.request_id as event_request_id, placed.position as event_sequence,
        claimed.webhook_endpoint_id, due.url, due.payload, due.secret,
        case when due.old_secret_until > statement_timestamp() + $6::interval then due.old_secret end as old_secret
    from claimed
    join due on due.id = claimed.id
    -- A lateral with a limit: a look-up by key, whatever number of rows PostgreSQL estimates.
    cross join lateral (
        select {WITHOUT_SEQUENCE} from events
        where plan_manager_id = claimed.plan_manager_id and id = claimed.event_id
            and ($7::uuid is null or plan_manager_id = $7)
        limit 1
    ) event
    left join lateral (
        select position from event_order
        where plan_manager_id = claimed.plan_manager_id and event_id = claimed.event_id
            and ($7::uuid is null or plan_manager_id = $7)
        limit 1
    ) placed on true
    order by placed.position nulls last, claimed.id
"""


async def claim_due(
    db: Executor,
    plan_manager_ids: Sequence[UUID],
    in_flight: Mapping[UUID, int],
    max_per_endpoint: int,
    limit: int,
    clock_offset: timedelta,
) -> list[DeliveryJob]:
    """Claim due deliveries of plan managers, the oldest of each endpoint first, up to its limit of concurrent attempts.

    Return them with the values that the worker needs, oldest first. `in_flight` counts this worker's attempts by
    endpoint. A failing endpoint has a limit of one. A claim is a lease of one minute: other workers then take over the
    deliveries of a worker that has stopped.
    """
    busy = (list(in_flight), list(in_flight.values()))
    limits = (max_per_endpoint, limit, clock_offset)
    return await db.rows(DeliveryJob, CLAIM_DUE, plan_manager_ids, *busy, *limits, shard_key(db, plan_manager_ids))


SAVE_ATTEMPTS = """
    with result as (
        select *
        from unnest($1::uuid[], $2::uuid[], $3::int[], $4::text[], $5::text[], $6::interval[], $9::text[])
            as result (plan_manager_id, id, attempt_count, status, attempt, wait, detail)
        order by plan_manager_id, id
    ), job as materialized (
        -- A lateral with a limit: a look-up by key, without a scan of the pending deliveries.
        select result.*
        from result cross join lateral (
            select from webhook_deliveries
            where plan_manager_id = result.plan_manager_id and id = result.id
                and attempt_count = result.attempt_count and status = 'pending'
                and ($8::uuid is null or plan_manager_id = $8)
            limit 1
            for no key update
        ) delivery
    )
    update webhook_deliveries delivery set status = job.status, attempt_count = job.attempt_count + 1,
        -- In UTC, because `timestamptz + interval` depends on the time zone, which Citus rejects for a value of a row.
        next_attempt_at = (statement_timestamp() at time zone 'UTC' + $7::interval + job.wait) at time zone 'UTC',
        attempts = attempts || job.attempt::jsonb, attempt_details = attempt_details || job.detail::jsonb
    from job
    where delivery.plan_manager_id = job.plan_manager_id and delivery.id = job.id
        and ($8::uuid is null or delivery.plan_manager_id = $8)
"""


async def save_attempts(tx: Transaction, updates: Sequence[DeliveryUpdate], clock_offset: timedelta) -> None:
    """Save attempts. Skips an attempt if another worker has saved one for the delivery since the claim."""
    plan_manager_ids = [each.job.plan_manager_id for each in updates]
    await tx.execute(
        SAVE_ATTEMPTS,
        plan_manager_ids,
        [each.job.id for each in updates],
        [each.job.attempt_count for each in updates],
        [each.status for each in updates],
        [to_json(each.attempt) for each in updates],
        [each.delay for each in updates],
        clock_offset,
        shard_key(tx, plan_manager_ids),
        [to_json(each.detail) for each in updates],
    )


UPDATE_ENDPOINT_HEALTH = """
    with candidate as (
        select endpoint.plan_manager_id, endpoint.id, result.succeeded
        from webhook_endpoints endpoint
        join unnest($1::uuid[], $2::uuid[], $3::bool[], $4::bool[]) as result (plan_manager_id, id, succeeded, gone)
            on result.plan_manager_id = endpoint.plan_manager_id and result.id = endpoint.id
        where ($7::uuid is null or endpoint.plan_manager_id = $7) and (
            result.gone or case when result.succeeded then failing_since is not null else active
            and (failing_since is null or failing_since <= statement_timestamp() + $6::interval - $5::interval) end)
        order by endpoint.plan_manager_id, endpoint.id
        for no key update of endpoint
    ), updated as (
        update webhook_endpoints endpoint set failing_since =
            case when not candidate.succeeded then coalesce(failing_since, clock.now) end
        from candidate, (select statement_timestamp() + $6::interval as now) clock
        where endpoint.plan_manager_id = candidate.plan_manager_id and endpoint.id = candidate.id
            and ($7::uuid is null or endpoint.plan_manager_id = $7)
        returning endpoint.id, endpoint.failing_since
    )
    select id from updated where failing_since <= statement_timestamp() + $6::interval - $5::interval
"""


async def update_endpoint_health(
    tx: Transaction,
    plan_manager_ids: Sequence[UUID],
    endpoint_ids: Sequence[UUID],
    succeeded: Sequence[bool],
    gone: Sequence[bool],
    disable_after: timedelta,
    clock_offset: timedelta,
) -> list[UUID]:
    """Record the start of endpoints' failures. Return the endpoints without a successful attempt for `disable_after`.

    One statement locks all endpoints in the same order as the sequencer: otherwise the two could deadlock.
    """
    results = (plan_manager_ids, endpoint_ids, succeeded, gone)
    times = (disable_after, clock_offset)
    return await tx.rows(UUID, UPDATE_ENDPOINT_HEALTH, *results, *times, shard_key(tx, plan_manager_ids))


CANCEL_PENDING = """
    with pending as (
        select id from webhook_deliveries
        where plan_manager_id = $1 and webhook_endpoint_id = $2 and status = 'pending'
        order by id
        for no key update
    )
    update webhook_deliveries delivery set status = 'cancelled', next_attempt_at = null
    from pending
    where delivery.plan_manager_id = $1 and delivery.id = pending.id
"""


async def cancel_pending(tx: Transaction, plan_manager_id: UUID, endpoint_id: UUID) -> None:
    """Cancel the pending deliveries of an endpoint."""
    await tx.execute(CANCEL_PENDING, plan_manager_id, endpoint_id)


GET_BACKLOG = """
    -- the backlog of all plan managers together
    select waiting, lag_seconds, failing, failing_endpoints
    from (
        select count(*) filter (where failing_since is null and is_due) as waiting,
            coalesce(extract(epoch from max(waiting_for) filter (where failing_since is null and is_due)), 0)::float8
                as lag_seconds,
            count(*) filter (where failing_since is not null) as failing
        from (
            select plan_manager_id, webhook_endpoint_id, next_attempt_at <= statement_timestamp() as is_due,
                statement_timestamp() - next_attempt_at as waiting_for
            from webhook_deliveries where status = 'pending'
        ) pending
        join webhook_endpoints endpoint on endpoint.plan_manager_id = pending.plan_manager_id
            and endpoint.id = pending.webhook_endpoint_id
    ) deliveries
    cross join (
        select count(*) as failing_endpoints from webhook_endpoints where active and failing_since is not null
    ) endpoints
"""


async def get_backlog(db: Executor) -> DeliveryBacklog:
    """Count pending deliveries, apart for endpoints that fail. Deliveries that a worker has claimed aren't due."""
    return await db.one(DeliveryBacklog, GET_BACKLOG)


PURGE = """
    -- one task deletes the old deliveries of all plan managers
    delete from webhook_deliveries delivery using (
        select plan_manager_id, id from webhook_deliveries
        where created_at < statement_timestamp() - $1 * interval '1 day'
        order by created_at limit $2
    ) expired
    where delivery.plan_manager_id = expired.plan_manager_id and delivery.id = expired.id
"""


async def purge(db: Executor, retention_days: int, limit: int = 5000) -> None:
    """Delete up to `limit` deliveries older than `retention_days`."""
    await db.execute(PURGE, retention_days, limit)
