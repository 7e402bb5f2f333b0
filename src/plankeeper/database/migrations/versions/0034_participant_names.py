"""An index for the order of participants by last and first name."""

from plankeeper.database.migrations import steps

revision = "0034"
down_revision = "0033"


def upgrade() -> None:
    steps.create_index(
        "participants_by_full_name",
        "participants (plan_manager_id,"
        " (lower(last_name) || chr(1) || coalesce(lower(first_name), '')) text_pattern_ops, id)",
    )
