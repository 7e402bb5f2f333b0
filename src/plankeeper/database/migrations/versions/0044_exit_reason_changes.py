"""When each exit reason changed, as in every other list."""

from plankeeper.database.migrations import steps

revision = "0044"
down_revision = "0043"


def upgrade() -> None:
    # First a default that is the same for all existing rows, so that no row is rewritten.
    steps.execute("alter table exit_reasons add column if not exists updated_at timestamptz not null default now()")
    steps.execute("alter table exit_reasons alter column updated_at set default clock_timestamp()")
