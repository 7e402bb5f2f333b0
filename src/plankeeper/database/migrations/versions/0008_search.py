"""What the console searches by: the beginnings of names, numbers and emails."""

from alembic import op

revision = "0008"
down_revision = "0007"

STATEMENTS = """
-- `text_pattern_ops` compares bytes whatever the database's collation is: only so is a beginning a range. Equality is
-- the same in both, so the API's filters are served by these too.
create index participants_by_first_name on participants (plan_manager_id, lower(first_name) text_pattern_ops, id);

create index participants_by_last_name on participants (plan_manager_id, lower(last_name) text_pattern_ops, id);

drop index participants_by_number;

create index participants_by_number on participants (plan_manager_id, participant_number text_pattern_ops, id);

drop index participants_by_email;

create index participants_by_email on participants (plan_manager_id, lower(email) text_pattern_ops, id);

create index providers_by_name on providers (plan_manager_id, lower(entity_name) text_pattern_ops, id);

-- An ABN is written with spaces or without, and searched for either way.
create index providers_by_abn_digits on providers (plan_manager_id, replace(abn, ' ', '') text_pattern_ops, id);

drop index providers_by_email;

create index providers_by_email on providers (plan_manager_id, lower(email) text_pattern_ops, id)
"""


def upgrade() -> None:
    for statement in STATEMENTS.split(";\n\n"):
        op.execute(statement)
