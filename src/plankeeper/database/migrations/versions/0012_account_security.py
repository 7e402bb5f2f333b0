"""Creators by account, known devices, failures by network, required two-factor authentication, last activity."""

from alembic import op

revision = "0012"
down_revision = "0011"

# Statements without a foreign key to accounts: a key or an event can outlive the account.
STATEMENTS = """
alter table api_keys add column created_by_account_id uuid;

alter table account_invitations add column invited_by_account_id uuid;

-- Keys and invitations that people created in the console before this migration: their events have the account.
update api_keys set created_by_account_id = event.actor_id::uuid
from api_key_plan_managers reach join events event on event.plan_manager_id = reach.plan_manager_id
    and event.resource_id = reach.api_key_id::text and event.type = 'api_key.created' and event.actor_kind = 'user'
where reach.api_key_id = api_keys.id;

update account_invitations set invited_by_account_id = event.actor_id::uuid
from events event
where event.plan_manager_id = account_invitations.plan_manager_id
    and event.resource_id = account_invitations.id::text and event.type = 'account.invited'
    and event.actor_kind = 'user' and event.created_at >= account_invitations.created_at - interval '1 minute';

-- Browsers that completed a sign-in.
create table account_devices (
    account_id uuid not null references accounts (id) on delete cascade,
    token_hash bytea not null,
    created_at timestamptz not null,
    last_used_at timestamptz not null,
    primary key (account_id, token_hash)
);

create index account_devices_by_token on account_devices (token_hash);

-- Until now, subjects were emails only.
delete from account_failures;

-- A subject is the hash of an email with a network, a device or a session. This is the hash of the email alone.
alter table account_failures add column email_hash bytea not null;

create index account_failures_by_email on account_failures (email_hash);

alter table plan_managers add column requires_two_factor boolean not null default false;

-- When the account last used the console for this plan manager.
alter table account_roles add column last_seen_at timestamptz;

-- The plan managers for which the session's sign-in is recorded as an event.
alter table account_sessions add column recorded_for uuid[] not null default '{}'
"""


def upgrade() -> None:
    for statement in STATEMENTS.split(";\n\n"):
        op.execute(statement)
