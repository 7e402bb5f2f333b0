"""The webhook deliveries of an event."""

from plankeeper.database.migrations import steps

revision = "0042"
down_revision = "0041"


def upgrade() -> None:
    steps.create_index("webhook_deliveries_by_event", "webhook_deliveries (plan_manager_id, event_id)")
