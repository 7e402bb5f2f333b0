"""When each resource changed, indexes for sorted lists, and the key that seals their cursors."""

from plankeeper.database.migrations import steps

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    # First a default that is the same for all existing rows, so that no row is rewritten.
    steps.execute("alter table team_members add column if not exists updated_at timestamptz not null default now()")
    steps.execute("alter table account_managers add column if not exists updated_at timestamptz not null default now()")
    steps.execute("alter table note_types add column if not exists updated_at timestamptz not null default now()")
    steps.execute(
        "alter table invoice_view_sessions add column if not exists updated_at timestamptz not null default now()"
    )
    steps.execute(
        "alter table webhook_endpoints add column if not exists updated_at timestamptz not null default now()"
    )
    steps.execute("alter table team_members alter column updated_at set default clock_timestamp()")
    steps.execute("alter table account_managers alter column updated_at set default clock_timestamp()")
    steps.execute("alter table note_types alter column updated_at set default clock_timestamp()")
    steps.execute("alter table invoice_view_sessions alter column updated_at set default clock_timestamp()")
    steps.execute("alter table webhook_endpoints alter column updated_at set default clock_timestamp()")
    steps.create_index("invoice_view_sessions_by_moment", "invoice_view_sessions (plan_manager_id, updated_at, id)")
    steps.create_index("participants_by_plan_end_date", "participants (plan_manager_id, plan_end_date, id)")
    steps.create_index("invoices_by_date", "invoices (plan_manager_id, invoice_date, id)")
    steps.create_index("invoices_by_total", "invoices (plan_manager_id, total, id)")
    steps.execute("""
        create table if not exists cursor_keys (
            id integer primary key default 1 check (id = 1),
            key text not null default gen_random_uuid()::text || gen_random_uuid()::text
        )
    """)
    steps.execute("insert into cursor_keys default values on conflict do nothing")
