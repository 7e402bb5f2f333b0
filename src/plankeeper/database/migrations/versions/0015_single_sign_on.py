"""Single sign-on with OpenID Connect: providers of plan managers, identities of accounts, sign-ins in progress."""

from alembic import op

revision = "0015"
down_revision = "0014"

STATEMENTS = """
create table single_sign_on_providers (
    plan_manager_id uuid primary key references plan_managers (id),
    -- New for each configuration: sessions of a provider that was removed don't belong to the next one.
    id uuid not null,
    issuer text not null,
    client_id text not null,
    encrypted_client_secret text not null,
    allowed_domains text[] not null,
    created_at timestamptz not null
);

alter table plan_managers add column requires_single_sign_on boolean not null default false;

-- The people of providers. A subject is the provider's id of a person, which is never given to another person.
create table account_identities (
    issuer text not null,
    subject text not null,
    account_id uuid not null references accounts (id) on delete cascade,
    created_at timestamptz not null,
    primary key (issuer, subject)
);

create index account_identities_by_account on account_identities (account_id);

-- Browsers that were sent to a provider and haven't come back.
create table single_sign_on_flows (
    token_hash bytea primary key,
    provider_id uuid not null,
    next_path text not null,
    invitation_token_hash bytea,
    expires_at timestamptz not null
);

create index single_sign_on_flows_by_expiry on single_sign_on_flows (expires_at);

-- Identities that wait for the password of the account that they will belong to.
create table pending_identities (
    token_hash bytea primary key,
    provider_id uuid not null,
    issuer text not null,
    subject text not null,
    email text not null,
    next_path text not null,
    invitation_token_hash bytea,
    expires_at timestamptz not null
);

create index pending_identities_by_expiry on pending_identities (expires_at);

-- What a session was signed in with: the account's password, and the providers with these ids.
alter table account_sessions
    add column with_password boolean not null default true,
    add column provider_ids uuid[] not null default '{}'
"""


def upgrade() -> None:
    for statement in STATEMENTS.split(";\n\n"):
        op.execute(statement)
