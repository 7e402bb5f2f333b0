"""Access records: who viewed, listed or exported which participant or invoice."""

from plankeeper.database.migrations import steps

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    # Without a reference to plan_managers, which took a third of an insert to check: plan managers are never deleted.
    steps.execute("""
        create table if not exists access_records (
            plan_manager_id uuid not null,
            id uuid not null,
            accessed_at timestamptz not null,
            actor_kind text not null check (actor_kind in ('api_key', 'user', 'system')),
            actor_id text,
            actor_name text,
            action text not null check (action in ('viewed', 'listed', 'exported')),
            resource_kind text not null check (resource_kind in ('participant', 'invoice')),
            resource_id uuid,
            query text,
            first_id uuid,
            last_id uuid,
            request_id text,
            primary key (plan_manager_id, id)
        )
    """)
    steps.create_index(
        "access_records_by_resource", "access_records (plan_manager_id, resource_id, id) where resource_id is not null"
    )
