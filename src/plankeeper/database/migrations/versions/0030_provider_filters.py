"""Indexes for the filters of providers."""

from plankeeper.database.migrations import steps

revision = "0030"
down_revision = "0029"


def upgrade() -> None:
    steps.create_index("providers_by_state", "providers (plan_manager_id, state, id)")
    steps.create_index("providers_by_activity", "providers (plan_manager_id, active, id)")
