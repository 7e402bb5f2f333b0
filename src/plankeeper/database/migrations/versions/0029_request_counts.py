"""Counts of API requests: by minute for a plan manager, and by day for a key."""

from plankeeper.database.citus import distribute_table
from plankeeper.database.migrations import steps

revision = "0029"
down_revision = "0028"


def upgrade() -> None:
    _create_minutes()
    _create_key_days()


def _create_minutes() -> None:
    steps.execute("""
        create table if not exists api_request_minutes (
            plan_manager_id uuid not null,
            minute timestamptz not null,
            requests integer not null,
            rejected integer not null,
            failed integer not null,
            primary key (plan_manager_id, minute)
        )
    """)
    steps.execute(distribute_table("api_request_minutes"))
    steps.add_constraint(
        "api_request_minutes",
        "api_request_minutes_plan_manager_id_fkey",
        "foreign key (plan_manager_id) references plan_managers",
    )
    steps.create_index("api_request_minutes_by_minute", "api_request_minutes (minute)")


def _create_key_days() -> None:
    steps.execute("""
        create table if not exists api_key_days (
            plan_manager_id uuid not null,
            api_key_id uuid not null,
            day date not null,
            status integer not null,
            error_code text not null,
            requests integer not null,
            primary key (plan_manager_id, api_key_id, day, status, error_code)
        )
    """)
    steps.execute(distribute_table("api_key_days"))
    steps.add_constraint(
        "api_key_days", "api_key_days_plan_manager_id_fkey", "foreign key (plan_manager_id) references plan_managers"
    )
    steps.create_index("api_key_days_by_day", "api_key_days (day)")
