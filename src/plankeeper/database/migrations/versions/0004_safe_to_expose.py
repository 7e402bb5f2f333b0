"""Rate limits across servers, answers kept for retries, and what a key needs to be rotated and watched."""

from alembic import op

revision = "0004"
down_revision = "0003"

STATEMENTS = """
alter table api_keys
    -- Requests a minute; null: the server's default; 0: no limit.
    add column rate_limit bigint check (rate_limit >= 0),
    -- The first of a key and its rotations.
    add column original_id uuid,
    add column last_used_at timestamptz,
    -- When its expiry was told of.
    add column warned_at timestamptz;

update api_keys set original_id = id;

alter table api_keys alter column original_id set not null;

create index api_keys_by_expiry on api_keys (expires_at) where revoked_at is null and warned_at is null;

-- What a key or an address used of its quota in the newest minute that it was seen in. Workers take leases of it.
-- Unlogged: what a crash loses is a minute's count.
create unlogged table rate_limits (
    subject text primary key,
    minute timestamptz not null,
    granted bigint not null,
    used bigint not null,
    lease bigint not null
);

create index rate_limits_by_minute on rate_limits (minute);

-- The answers to requests with an Idempotency-Key; without one while the request runs.
create table idempotency_records (
    plan_manager_id uuid not null references plan_managers (id),
    original_key_id uuid not null,
    path text not null,
    idempotency_key text not null,
    request_hash bytea not null,
    status integer,
    body bytea,
    created_at timestamptz not null,
    primary key (plan_manager_id, original_key_id, path, idempotency_key)
);

create index idempotency_records_by_moment on idempotency_records (created_at)
"""


def upgrade() -> None:
    for statement in STATEMENTS.split(";\n\n"):
        op.execute(statement)
