"""Forms whose session ended before they were sent, encrypted with a key that the database doesn't have."""

from plankeeper.database.migrations import steps

revision = "0026"
down_revision = "0025"


def upgrade() -> None:
    steps.execute("""
        create table if not exists form_drafts (
            token_hash bytea primary key,
            account_ids uuid[] not null,
            sealed bytea not null,
            created_at timestamptz not null
        )
    """)
    steps.create_index("form_drafts_by_time", "form_drafts (created_at)")
