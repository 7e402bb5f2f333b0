"""The oldest servers that work with the schema."""

from alembic import op

revision = "0019"
down_revision = "0017"

STATEMENTS = """
-- One row. A server that expects an older revision than this one can't work with the schema.
create table schema_compatibility (
    one boolean primary key default true check (one),
    oldest_compatible text not null
);

insert into schema_compatibility (oldest_compatible) values ('0019')
"""


def upgrade() -> None:
    for statement in STATEMENTS.split(";\n\n"):
        op.execute(statement)
