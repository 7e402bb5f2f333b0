"""An index for each filter of the lists of providers and invoices."""

from alembic import op

revision = "0003"
down_revision = "0002"

STATEMENTS = """
create index providers_by_abn on providers (plan_manager_id, abn, id);

create index providers_by_email on providers (plan_manager_id, lower(email), id);

create index providers_by_moment on providers (plan_manager_id, updated_at, id);

create index invoices_by_provider on invoices (plan_manager_id, pm_provider_id, id);

drop index invoices_by_number;

create index invoices_by_number on invoices (plan_manager_id, invoice_number, id);

create index invoices_by_claim_status on invoices (plan_manager_id, claim_status, id);

create index invoices_by_approval_status on invoices (plan_manager_id, approval_status, id);

create index invoices_by_moment on invoices (plan_manager_id, updated_at, id)
"""


def upgrade() -> None:
    for statement in STATEMENTS.split(";\n\n"):
        op.execute(statement)
