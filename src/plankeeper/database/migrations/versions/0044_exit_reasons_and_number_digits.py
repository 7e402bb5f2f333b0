"""When each exit reason changed, as in every other list, and an index of participant numbers without spaces."""

from plankeeper.database.migrations import steps

revision = "0044"
down_revision = "0043"


def upgrade() -> None:
    # First a default that is the same for all existing rows, so that no row is rewritten.
    steps.execute("alter table exit_reasons add column if not exists updated_at timestamptz not null default now()")
    steps.execute("alter table exit_reasons alter column updated_at set default clock_timestamp()")
    steps.create_index(
        "participants_by_number_digits",
        "participants (plan_manager_id, replace(participant_number, ' ', '') text_pattern_ops, id)",
    )
