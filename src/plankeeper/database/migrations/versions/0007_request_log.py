"""The log of API requests that the console shows."""

from alembic import op

revision = "0007"
down_revision = "0006"

STATEMENTS = """
-- A row is what one worker answered to one plan manager's keys in about a second: a row a request would cost each
-- request more than it tells. `requests` is an array of arrays, oldest first: json, as it is written and read as a
-- whole.
create table api_request_batches (
    plan_manager_id uuid not null references plan_managers (id),
    id uuid not null,
    ended_at timestamptz not null,
    count integer not null,
    requests json not null,
    primary key (plan_manager_id, id)
);

-- Rows live for days at most: compressing them would cost each request more than their place is worth.
alter table api_request_batches alter column requests set storage external;

create index api_request_batches_by_moment on api_request_batches (ended_at)
"""


def upgrade() -> None:
    for statement in STATEMENTS.split(";\n\n"):
        op.execute(statement)
