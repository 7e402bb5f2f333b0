"""Indexes for invoices with a certain warning, and for deleted invoices."""

from plankeeper.database.migrations import steps

revision = "0033"
down_revision = "0032"


def upgrade() -> None:
    steps.create_index("invoices_by_warning", "invoices using gin (plan_manager_id, error_codes) where errors")
    steps.create_index("invoices_deleted", "invoices (plan_manager_id, id) where is_deleted")
