"""Files between their check and their import in the console."""

from alembic import op

revision = "0010"
down_revision = "0009"

STATEMENTS = """
-- A browser cannot send a file twice by itself: what was checked is kept until it is imported, an hour at most.
create table import_files (
    plan_manager_id uuid not null references plan_managers (id),
    id uuid not null,
    resource text not null,
    name text not null,
    content bytea not null,
    made_by uuid not null,
    created_at timestamptz not null,
    primary key (plan_manager_id, id)
);

create index import_files_by_moment on import_files (created_at)
"""


def upgrade() -> None:
    for statement in STATEMENTS.split(";\n\n"):
        op.execute(statement)
