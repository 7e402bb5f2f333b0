"""What the console searches by: the beginnings of names, numbers and emails."""

from alembic import op

revision = "0008"
down_revision = "0007"

STATEMENTS = """
create index participants_by_first_name on participants (plan_manager_id, lower(first_name) text_pattern_ops, id);

create index participants_by_last_name on participants (plan_manager_id, lower(last_name) text_pattern_ops, id)
"""


def upgrade() -> None:
    for statement in STATEMENTS.split(";\n\n"):
        op.execute(statement)
