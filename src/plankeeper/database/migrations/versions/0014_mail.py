"""Mails that are waiting to be sent, and links to reset a password."""

from alembic import op

revision = "0014"
down_revision = "0012"

STATEMENTS = """
-- Holds no secrets: the links of a mail are created when it is sent.
create table outgoing_mails (
    id uuid primary key default time_ordered_uuid(),
    content json not null,
    created_at timestamptz not null,
    attempt_count integer not null default 0,
    next_attempt_at timestamptz not null,
    expires_at timestamptz not null
);

create index outgoing_mails_by_next_attempt on outgoing_mails (next_attempt_at);

create index outgoing_mails_by_expiry on outgoing_mails (expires_at);

-- One link per account: a new one replaces the old one.
create table account_password_resets (
    account_id uuid primary key references accounts (id) on delete cascade,
    token_hash bytea not null,
    expires_at timestamptz not null
);

create unique index account_password_resets_token_hash_key on account_password_resets (token_hash)
"""


def upgrade() -> None:
    for statement in STATEMENTS.split(";\n\n"):
        op.execute(statement)
