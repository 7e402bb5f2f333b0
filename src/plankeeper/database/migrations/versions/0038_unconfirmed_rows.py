"""Rows of an import that are skipped until somebody confirms them."""

from plankeeper.database.migrations import steps

revision = "0038"
down_revision = "0037"


def upgrade() -> None:
    steps.execute("""
        alter table imports
            add column if not exists unconfirmed_count integer not null default 0,
            add column if not exists included_lines integer[] not null default '{}'
    """)
