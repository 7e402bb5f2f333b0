"""Lists of participants that stay quick: totals that are summed, not counted, and an index for each filter."""

from alembic import op

revision = "0002"
down_revision = "0001"

STATEMENTS = """
-- A write of participants appends what it changed in number; the sum is the total. Nobody updates a row, so that
-- writers of one plan manager never wait for each other; the sequencer folds the rows now and then.
create table participant_counts (
    plan_manager_id uuid not null references plan_managers (id),
    status text not null,
    state text not null,
    id uuid not null default gen_random_uuid(),
    amount bigint not null,
    primary key (plan_manager_id, status, state, id)
);

insert into participant_counts (plan_manager_id, status, state, amount)
select plan_manager_id, status, coalesce(state, ''), count(*)
from participants
group by plan_manager_id, status, coalesce(state, '');

drop index participants_by_number;

create index participants_by_number on participants (plan_manager_id, participant_number, id);

create index participants_by_email on participants (plan_manager_id, lower(email), id);

create index participants_by_account_manager on participants (plan_manager_id, account_manager_id, id);

create index participants_by_moment on participants (plan_manager_id, updated_at, id);

create index participants_by_state on participants (plan_manager_id, state, id);

create index participants_by_status on participants (plan_manager_id, status, id);

create index participants_by_status_and_state on participants (plan_manager_id, status, state, id)
"""


def upgrade() -> None:
    for statement in STATEMENTS.split(";\n\n"):
        op.execute(statement)
