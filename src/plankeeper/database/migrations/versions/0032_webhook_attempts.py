"""What each webhook attempt sent and received, and counts of attempts by hour."""

from plankeeper.database.citus import distribute_table
from plankeeper.database.migrations import steps

revision = "0032"
down_revision = "0031"


def upgrade() -> None:
    # Beside `attempts`, which the API returns.
    steps.execute("""
        alter table webhook_deliveries add column if not exists attempt_details jsonb not null default '[]'
    """)
    # Without a foreign key to the endpoint: its lock could cause a deadlock with the deletion of the endpoint.
    steps.execute("""
        create table if not exists webhook_attempt_hours (
            plan_manager_id uuid not null,
            webhook_endpoint_id uuid not null,
            hour timestamptz not null,
            succeeded integer not null,
            failed integer not null,
            primary key (plan_manager_id, webhook_endpoint_id, hour)
        )
    """)
    steps.execute(distribute_table("webhook_attempt_hours"))
    steps.add_constraint(
        "webhook_attempt_hours",
        "webhook_attempt_hours_plan_manager_id_fkey",
        "foreign key (plan_manager_id) references plan_managers",
    )
    steps.create_index("webhook_attempt_hours_by_hour", "webhook_attempt_hours (hour)")
