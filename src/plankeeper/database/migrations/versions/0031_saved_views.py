"""Saved views of the console's lists, and the columns and the density that people have chosen for them."""

from plankeeper.database.citus import distribute_table
from plankeeper.database.migrations import steps

revision = "0031"
down_revision = "0030"


def upgrade() -> None:
    _create_saved_views()
    _create_list_settings()


def _create_saved_views() -> None:
    # Without references to accounts, which are on Citus not on the nodes of plan managers.
    steps.execute("""
        create table if not exists saved_views (
            plan_manager_id uuid not null,
            id uuid not null,
            owner_id uuid not null,
            list_kind text not null,
            name text not null,
            query text not null,
            is_shared boolean not null,
            created_at timestamptz not null,
            primary key (plan_manager_id, id)
        )
    """)
    steps.execute(distribute_table("saved_views"))
    steps.add_constraint(
        "saved_views", "saved_views_plan_manager_id_fkey", "foreign key (plan_manager_id) references plan_managers"
    )


def _create_list_settings() -> None:
    steps.execute("""
        create table if not exists list_settings (
            plan_manager_id uuid not null,
            account_id uuid not null,
            list_kind text not null,
            columns text[],
            density text not null,
            primary key (plan_manager_id, account_id, list_kind)
        )
    """)
    steps.execute(distribute_table("list_settings"))
    steps.add_constraint(
        "list_settings", "list_settings_plan_manager_id_fkey", "foreign key (plan_manager_id) references plan_managers"
    )
