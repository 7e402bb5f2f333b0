"""Invoice view sessions that the console started, why a warning was ignored, and lists of invoices with warnings."""

from alembic import op

revision = "0009"
down_revision = "0008"

STATEMENTS = """
-- Only those that the console started end for want of a heartbeat: imported ones are as they were.
alter table invoice_view_sessions add column in_console boolean not null default false;

create index invoice_view_sessions_open on invoice_view_sessions (last_heartbeat)
    where in_console and session_ended is null;

create table invoice_ignored_warnings (
    plan_manager_id uuid not null,
    invoice_id uuid not null,
    error_code text not null,
    reason text not null,
    ignored_by text not null,
    ignored_at timestamptz not null,
    primary key (plan_manager_id, invoice_id, error_code),
    foreign key (plan_manager_id, invoice_id) references invoices (plan_manager_id, id) on delete cascade
);

-- Few invoices have a warning that counts: a list of those alone would pass over all the others.
create index invoices_with_errors on invoices (plan_manager_id, id) where errors;

create index invoices_with_errors_by_provider on invoices (plan_manager_id, pm_provider_id, id) where errors;

create index invoices_with_errors_by_claim_status on invoices (plan_manager_id, claim_status, id) where errors;

create index invoices_with_errors_by_approval_status on invoices (plan_manager_id, approval_status, id) where errors
"""


def upgrade() -> None:
    for statement in STATEMENTS.split(";\n\n"):
        op.execute(statement)
