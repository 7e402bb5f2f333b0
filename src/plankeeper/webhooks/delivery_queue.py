"""Deliveries in SQL, from where the work is done: made of events, claimed by workers, settled, forgotten."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from uuid import UUID

from plankeeper.database.client import Queries, Transaction
from plankeeper.http.schemas import json_text
from plankeeper.webhooks.schemas import Behind, Claim, Claimed, Settlement


async def fan_out(session: Queries, plan_manager_ids: Sequence[UUID], most_due: int) -> list[Behind]:
    """Turn events into deliveries, in the order of the feed: the plan managers that may have more events waiting.

    An endpoint gets no more than `most_due` deliveries to make: what it is behind with waits in the feed, so that
    neither a flood of writes nor a slow endpoint makes work before there is time for it. It gets more when half of
    them are made, so that many come at once.
    """
    return await session.rows(
        Behind,
        """
        with endpoint as materialized (
            select plan_manager_id, id, event_types, fanned_out_to from webhook_endpoints
            where plan_manager_id = any ($1) and active order by plan_manager_id, id for no key update
        ), roomy as materialized (
            select endpoint.*, $2 - (select count(*) from (select from webhook_deliveries
                where webhook_endpoint_id = endpoint.id and status = 'pending' and next_attempt_at <= clock_timestamp()
                limit $2) due) as room from endpoint
        ), news as materialized (
            select roomy.plan_manager_id, roomy.id as webhook_endpoint_id, event.id, event.type, event.position, notify
                and event_types && array['*', event.type, split_part(event.type, '.', 1) || '.*'] as wanted
            from roomy cross join lateral (
                select id, type, position, notify from events
                where plan_manager_id = roomy.plan_manager_id and position > roomy.fanned_out_to
                order by position limit case when roomy.room > $2 / 2 then roomy.room else 0 end) event
        ), made as (
            insert into webhook_deliveries (plan_manager_id, id, webhook_endpoint_id, event_id, event_type, status,
                next_attempt_at, created_at)
            select plan_manager_id, time_ordered_uuid(), webhook_endpoint_id, id, type, 'pending', clock_timestamp(),
                statement_timestamp() from (select * from news where wanted order by position) wanted
        ), moved as (
            update webhook_endpoints kept set fanned_out_to = newest.position
            from (select webhook_endpoint_id, max(position) as position from news group by 1) newest
            where kept.plan_manager_id = any ($1) and kept.id = newest.webhook_endpoint_id returning kept.id
        )
        select roomy.plan_manager_id, bool_or(moved.id is not null) as has_moved
        from roomy left join moved on moved.id = roomy.id
        where moved.id is not null or roomy.room <= $2 / 2 group by roomy.plan_manager_id
        """,
        plan_manager_ids, most_due,
    )  # fmt: skip


async def claim(db: Queries, busy: Mapping[UUID, int], per_endpoint: int, most: int, skew: timedelta) -> list[Claimed]:
    """Deliveries that are due, oldest first for each endpoint, and for each no more than it has places left.

    `busy` says how many this worker is sending to which endpoint; one that has only failed lately has one place.
    What is claimed comes up again in a minute, unless it is settled before: so what a dead worker had is taken over.
    """
    return await db.rows(
        Claimed,
        """
        with recursive pending as (
            -- tenants: all, on purpose; one probe of the index for each endpoint that has something pending
            (select webhook_endpoint_id as id, plan_manager_id from webhook_deliveries where status = 'pending'
                order by webhook_endpoint_id limit 1)
            union all
            select next.id, next.plan_manager_id from pending cross join lateral (
                select webhook_endpoint_id as id, plan_manager_id from webhook_deliveries
                where status = 'pending' and webhook_endpoint_id > pending.id order by webhook_endpoint_id limit 1
            ) next
        ), due as materialized (
            select found.plan_manager_id, found.id
            from pending
            join webhook_endpoints endpoint on endpoint.plan_manager_id = pending.plan_manager_id
                and endpoint.id = pending.id
            left join unnest($1::uuid[], $2::bigint[]) as busy (id, places) on busy.id = pending.id
            cross join lateral (
                select delivery.plan_manager_id, delivery.id from webhook_deliveries delivery
                where status = 'pending' and webhook_endpoint_id = pending.id
                    and next_attempt_at <= clock_timestamp() + $5::interval
                order by next_attempt_at limit greatest(case when endpoint.failing_since is null then $3::bigint
                    else 1 end - coalesce(busy.places, 0), 0) for update skip locked
            ) found
            limit $4
        )
        update webhook_deliveries delivery set next_attempt_at = clock_timestamp() + $5::interval + interval '1 minute'
        from due where delivery.plan_manager_id = due.plan_manager_id and delivery.id = due.id
        returning delivery.plan_manager_id, delivery.id
        """,
        list(busy), list(busy.values()), per_endpoint, most, skew,
    )  # fmt: skip


async def claims(db: Queries, claimed: Sequence[Claimed], skew: timedelta) -> list[Claim]:
    """What must be known to send what was claimed, oldest first."""
    return await db.rows(
        Claim,
        """
        select delivery.plan_manager_id, delivery.id, delivery.made, delivery.event_id, delivery.event_type,
            event.created_at as event_created_at, event.resource_kind, event.resource_id,
            case when endpoint.payload = 'full' then event.data end as data,
            delivery.webhook_endpoint_id, endpoint.url, endpoint.payload, endpoint.secret,
            case when endpoint.old_secret_until > clock_timestamp() + $3::interval then endpoint.old_secret end
                as old_secret
        -- Laterals with a limit: each row is looked up by its key, whatever PostgreSQL thinks of how many there are.
        from unnest($1::uuid[], $2::uuid[]) as claimed (plan_manager_id, id)
        cross join lateral (
            select plan_manager_id, id, made, event_id, event_type, webhook_endpoint_id from webhook_deliveries
            where plan_manager_id = claimed.plan_manager_id and id = claimed.id limit 1
        ) delivery
        cross join lateral (
            select url, payload, secret, old_secret, old_secret_until from webhook_endpoints
            where plan_manager_id = delivery.plan_manager_id and id = delivery.webhook_endpoint_id limit 1
        ) endpoint
        cross join lateral (
            select created_at, resource_kind, resource_id, data, position from events
            where plan_manager_id = delivery.plan_manager_id and id = delivery.event_id limit 1
        ) event
        order by event.position nulls last, delivery.id
        """,
        [each.plan_manager_id for each in claimed], [each.id for each in claimed], skew,
    )  # fmt: skip


async def settle(tx: Transaction, settlements: Sequence[Settlement], skew: timedelta) -> None:
    """Write down attempts; one that another worker has made meanwhile stays as that one told it."""
    await tx.execute(
        """
        with told as (
            select * from unnest($1::uuid[], $2::uuid[], $3::int[], $4::text[], $5::text[], $6::interval[])
                as told (plan_manager_id, id, made, status, attempt, wait)
            order by plan_manager_id, id
        ), kept as materialized (
            -- A lateral with a limit: looked up by its key, and not found among all that is pending.
            select told.*
            from told cross join lateral (
                select from webhook_deliveries
                where plan_manager_id = told.plan_manager_id and id = told.id and made = told.made
                    and status = 'pending'
                limit 1
                for no key update
            ) delivery
        )
        update webhook_deliveries delivery set status = kept.status, made = kept.made + 1,
            next_attempt_at = clock_timestamp() + $7::interval + kept.wait, attempts = attempts || kept.attempt::jsonb
        from kept
        where delivery.plan_manager_id = kept.plan_manager_id and delivery.id = kept.id
        """,
        [each.claim.plan_manager_id for each in settlements], [each.claim.id for each in settlements],
        [each.claim.made for each in settlements], [each.status for each in settlements],
        [json_text(each.attempt) for each in settlements], [each.wait for each in settlements], skew,
    )  # fmt: skip


async def note(
    tx: Transaction, plan_manager_ids: Sequence[UUID], endpoint_ids: Sequence[UUID], good: Sequence[bool],
    gone: Sequence[bool], bound: timedelta, skew: timedelta,
) -> list[UUID]:  # fmt: skip
    """Note how attempts at endpoints ended: the endpoints that have only failed for as long as `bound`.

    One statement locks them all in the order in which the sequencer does, so that neither waits for the other in turn.
    """
    return await tx.rows(
        UUID,
        """
        with found as (
            select endpoint.plan_manager_id, endpoint.id, told.good
            from webhook_endpoints endpoint
            join unnest($1::uuid[], $2::uuid[], $3::bool[], $4::bool[]) as told (plan_manager_id, id, good, gone)
                on told.plan_manager_id = endpoint.plan_manager_id and told.id = endpoint.id
            where told.gone or case when told.good then failing_since is not null else active
                and (failing_since is null or failing_since <= clock_timestamp() + $6::interval - $5::interval) end
            order by endpoint.plan_manager_id, endpoint.id
            for no key update of endpoint
        ), noted as (
            update webhook_endpoints endpoint set failing_since =
                case when not found.good then coalesce(failing_since, clock_timestamp() + $6::interval) end
            from found
            where endpoint.plan_manager_id = found.plan_manager_id and endpoint.id = found.id
            returning endpoint.id, endpoint.failing_since
        )
        select id from noted where failing_since <= clock_timestamp() + $6::interval - $5::interval
        """,
        plan_manager_ids, endpoint_ids, good, gone, bound, skew,
    )  # fmt: skip


async def cancel(tx: Transaction, plan_manager_id: UUID, endpoint_id: UUID) -> None:
    """Nothing more goes to an endpoint."""
    await tx.execute(
        """
        with pending as (
            select id from webhook_deliveries
            where plan_manager_id = $1 and webhook_endpoint_id = $2 and status = 'pending'
            order by id
            for no key update
        )
        update webhook_deliveries delivery set status = 'cancelled', next_attempt_at = null
        from pending
        where delivery.plan_manager_id = $1 and delivery.id = pending.id
        """,
        plan_manager_id, endpoint_id,
    )  # fmt: skip


async def purge(session: Queries, days: int, most: int = 5000) -> None:
    """Forget deliveries that are older than so many days, some at a time."""
    await session.execute(
        """
        delete from webhook_deliveries where ctid = any (array(
            -- tenants: all, on purpose
            select ctid from webhook_deliveries
            where created_at < clock_timestamp() - $1 * interval '1 day'
            order by created_at limit $2
        ))
        """,
        days, most,
    )  # fmt: skip
