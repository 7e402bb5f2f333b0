"""Accounts that sign in to the console, their roles, sessions and invitations."""

from alembic import op

revision = "0006"
down_revision = "0005"

STATEMENTS = """
-- One person is one account, whoever's people it belongs to; its roles are account_roles.
create table accounts (
    id uuid primary key,
    email text not null,
    name text not null,
    password_hash text not null,
    totp_secret text,
    -- Of the last code that was used: none is taken twice.
    totp_counter bigint not null default 0,
    created_at timestamptz not null
);

create unique index accounts_email_key on accounts (lower(email));

-- By the hash of an email, whether or not it has an account: so failures tell nobody which emails have one.
create table account_failures (
    subject bytea primary key,
    failures integer not null,
    failed_at timestamptz not null,
    locked_until timestamptz not null
);

create index account_failures_by_moment on account_failures (failed_at);

create table account_recovery_codes (
    account_id uuid not null references accounts (id) on delete cascade,
    code_hash bytea not null,
    used_at timestamptz,
    primary key (account_id, code_hash)
);

create table account_roles (
    plan_manager_id uuid not null references plan_managers (id),
    account_id uuid not null references accounts (id) on delete cascade,
    role text not null check (role in ('owner', 'manager', 'viewer')),
    created_at timestamptz not null,
    primary key (plan_manager_id, account_id)
);

create index account_roles_by_account on account_roles (account_id);

create table account_sessions (
    token_hash bytea primary key,
    account_id uuid not null references accounts (id) on delete cascade,
    chosen_plan_manager_id uuid,
    created_at timestamptz not null,
    last_seen_at timestamptz not null,
    expires_at timestamptz not null,
    address text not null,
    user_agent text not null,
    second_step_due boolean not null,
    -- Who loses a role loses the choice with it.
    constraint account_sessions_chosen_plan_manager_id_fkey foreign key (chosen_plan_manager_id, account_id)
        references account_roles (plan_manager_id, account_id) on delete set null (chosen_plan_manager_id)
);

create index account_sessions_by_account on account_sessions (account_id);

-- The token's index is not unique: a unique one would have to carry the plan manager, and 256 random bits need none.
create table account_invitations (
    plan_manager_id uuid not null references plan_managers (id),
    id uuid not null,
    email text not null,
    name text,
    role text not null check (role in ('owner', 'manager', 'viewer')),
    token_hash bytea not null,
    invited_by text not null,
    created_at timestamptz not null,
    expires_at timestamptz not null,
    accepted_at timestamptz,
    primary key (plan_manager_id, id)
);

create index account_invitations_by_token on account_invitations (token_hash);

-- Who is invited again has the newest invitation alone.
create unique index account_invitations_email_key on account_invitations (plan_manager_id, lower(email))
    where accepted_at is null
"""


def upgrade() -> None:
    for statement in STATEMENTS.split(";\n\n"):
        op.execute(statement)
