"""The order of events in narrow tables of its own. Stop all servers: older ones would not queue their events."""

from alembic import op

revision = "0017"
down_revision = "0016"

STATEMENTS = """
-- The codes that stand for the types of events in event_order. A sequencer adds a type when it first occurs.
create table event_types (
    code smallint primary key,
    name text not null unique
);

insert into event_types (code, name)
select row_number() over (order by type), type from (select distinct type from events) types;

-- Committed events without a position, in batches of at most 100. `types` has one element if all types are the same.
-- The three tables refer to events, which refer to plan managers: the reference of the event itself is enough.
create table event_queue (
    plan_manager_id uuid not null,
    id uuid not null,
    event_ids uuid[] not null check (cardinality(event_ids) between 1 and 100),
    types text[] not null,
    notify boolean not null,
    primary key (plan_manager_id, id),
    check (cardinality(types) in (1, cardinality(event_ids)))
);

-- A row is at most 6 kB: it stays in the table itself.
alter table event_queue alter column event_ids set storage plain, alter column types set storage plain;

-- Every row is deleted within a second, and a look at the table passes over its dead rows.
alter table event_queue set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500,
    autovacuum_vacuum_cost_delay = 0);

create table event_order (
    plan_manager_id uuid not null,
    position bigint not null,
    event_id uuid not null,
    type smallint not null,
    notify boolean not null
);

insert into event_order (plan_manager_id, position, event_id, type, notify)
select event.plan_manager_id, event.position, event.id, type.code, event.notify
from events event
join event_types type on type.name = event.type
where event.position is not null
order by event.position;

insert into event_queue (plan_manager_id, id, event_ids, types, notify)
select plan_manager_id, (array_agg(id order by id))[1], array_agg(id order by id), array_agg(type order by id), notify
from (
    select plan_manager_id, id, type, notify,
        (row_number() over (partition by plan_manager_id, notify order by id) - 1) / 100 as batch
    from events
    where position is null
) waiting
group by plan_manager_id, notify, batch;

alter table event_order add primary key (plan_manager_id, position);

create unique index event_order_by_event on event_order (plan_manager_id, event_id);

create index event_order_by_type on event_order (plan_manager_id, type, position);

-- The first position that was assigned in each minute. It never decreases from a minute to a later one.
create table event_marks (
    plan_manager_id uuid not null,
    minute timestamptz not null,
    position bigint not null,
    primary key (plan_manager_id, minute)
);

-- Of older events only the time of the write is known, which is a little earlier.
insert into event_marks (plan_manager_id, minute, position)
select plan_manager_id, minute,
    min(min(position)) over (partition by plan_manager_id order by minute desc)
from (
    select plan_manager_id, date_trunc('minute', created_at at time zone 'UTC') at time zone 'UTC' as minute, position
    from events
    where position is not null
) placed
group by plan_manager_id, minute;

-- Positions came from one sequence. Now each plan manager has its own, which continue after its newest event.
update webhook_endpoints endpoint set last_position = least(last_position, coalesce((
    select max(position) from event_order placed where placed.plan_manager_id = endpoint.plan_manager_id
), 0));

-- With the column, its three indexes are dropped.
alter table events drop column position, add column import_id uuid;

drop sequence event_positions;

create index events_by_resource on events (plan_manager_id, resource_id, id);

create index events_by_participant on events (plan_manager_id, (
    case resource_kind when 'participant' then resource_id else coalesce(data, previous) ->> 'participant_id' end
), id) where resource_kind in ('participant', 'team_member', 'invoice');

create index events_by_import on events (plan_manager_id, import_id, id) where import_id is not null;

-- Rows are only appended: small steps keep the visibility map current, and the statistics close to the truth.
alter table events set (autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);

alter table event_order set (autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05)
"""


def upgrade() -> None:
    for statement in STATEMENTS.split(";\n\n"):
        op.execute(statement)
