"""Standard names for columns. A running server of the previous version must be restarted after this migration."""

from alembic import op

revision = "0011"
down_revision = "0010"

STATEMENTS = """
alter table account_sessions rename column second_step_due to two_factor_pending;

alter table webhook_deliveries rename column made to attempt_count;

alter table webhook_endpoints rename column fanned_out_to to last_position;

alter table import_files rename column made_by to created_by
"""


def upgrade() -> None:
    for statement in STATEMENTS.split(";\n\n"):
        op.execute(statement)
