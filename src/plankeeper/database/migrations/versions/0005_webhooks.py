"""Webhook endpoints, and the deliveries of events to them."""

from alembic import op

revision = "0005"
down_revision = "0004"

STATEMENTS = """
-- An import makes an event for each row, and nobody wants a million calls because of it.
alter table events add column notify boolean not null default true;

create table webhook_endpoints (
    plan_manager_id uuid not null references plan_managers (id),
    id uuid not null,
    url text not null,
    description text,
    event_types text[] not null,
    payload text not null check (payload in ('thin', 'full')),
    active boolean not null,
    disabled_reason text,
    created_at timestamptz not null,
    secret text not null,
    -- Signs beside the new one for a while after a rotation.
    old_secret text,
    old_secret_until timestamptz,
    -- Since when every attempt has failed.
    failing_since timestamptz,
    -- Events up to this position of the feed have become deliveries, or were not wanted.
    fanned_out_to bigint not null,
    primary key (plan_manager_id, id)
);

-- A worker that claims a delivery puts its next attempt off by a minute: that is its lease.
create table webhook_deliveries (
    plan_manager_id uuid not null references plan_managers (id),
    id uuid not null,
    webhook_endpoint_id uuid not null,
    event_id uuid not null,
    event_type text not null,
    status text not null check (status in ('pending', 'succeeded', 'failed', 'cancelled')),
    made integer not null default 0,
    attempts jsonb not null default '[]',
    next_attempt_at timestamptz,
    created_at timestamptz not null,
    primary key (plan_manager_id, id),
    constraint webhook_deliveries_webhook_endpoint_id_fkey foreign key (plan_manager_id, webhook_endpoint_id)
        references webhook_endpoints (plan_manager_id, id) on delete cascade
);

create index webhook_deliveries_pending on webhook_deliveries (webhook_endpoint_id, next_attempt_at)
    where status = 'pending';

create index webhook_deliveries_by_endpoint on webhook_deliveries (plan_manager_id, webhook_endpoint_id, id);

create index webhook_deliveries_by_moment on webhook_deliveries (created_at);

-- The ids of what PostgreSQL makes itself: UUIDs of version 7, which it has none of before release 18.
create function time_ordered_uuid() returns uuid language sql volatile as $$
    select encode(
        set_byte(
            overlay(
                uuid_send(gen_random_uuid()) placing
                substring(int8send((extract(epoch from clock_timestamp()) * 1000)::bigint) from 3) from 1 for 6),
            6, (get_byte(uuid_send(gen_random_uuid()), 0) & 15) | 112),
        'hex')::uuid
$$
"""


def upgrade() -> None:
    for statement in STATEMENTS.split(";\n\n"):
        op.execute(statement)
