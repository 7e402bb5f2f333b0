"""The bin: records that were deleted in the console, and can be restored."""

from plankeeper.database.citus import distribute_table
from plankeeper.database.migrations import steps

revision = "0024"
down_revision = "0023"


def upgrade() -> None:
    steps.execute("""
        create table if not exists bin (
            plan_manager_id uuid not null,
            id uuid not null,
            kind text not null check (kind in ('participant', 'provider')),
            resource_id uuid not null,
            name text,
            deleted_at timestamptz not null,
            deleted_by text,
            snapshot jsonb not null,
            primary key (plan_manager_id, id)
        )
    """)
    steps.execute(distribute_table("bin"))
    steps.add_constraint(
        "bin", "bin_plan_manager_id_fkey", "foreign key (plan_manager_id) references plan_managers (id)"
    )
    steps.create_index("bin_by_resource", "bin (plan_manager_id, resource_id)")
