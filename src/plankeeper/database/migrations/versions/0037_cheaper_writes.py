"""What each write of a participant maintained, and nothing needs."""

from plankeeper.database.migrations import steps

revision = "0037"
down_revision = "0036"


def upgrade() -> None:
    # No search has read it since 0025.
    steps.drop_index("participants_by_first_name")
    # The row that an event or a total is about has the same foreign key, and plan managers are never deleted. Each
    # check locks the plan manager's row, which all writes of an office share: three took a tenth of a create.
    steps.drop_constraint("events", "events_plan_manager_id_fkey")
    steps.drop_constraint("participant_counts", "participant_counts_plan_manager_id_fkey")
