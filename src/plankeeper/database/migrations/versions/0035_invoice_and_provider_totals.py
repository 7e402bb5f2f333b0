"""Totals of invoices and providers that are summed, not counted."""

from plankeeper.database.citus import distribute_table
from plankeeper.database.migrations import steps

revision = "0035"
down_revision = "0034"


def upgrade() -> None:
    steps.execute("""
        create table if not exists invoice_counts (
            plan_manager_id uuid not null,
            claim_status text not null,
            approval_status text not null,
            id uuid not null default gen_random_uuid(),
            amount bigint not null,
            primary key (plan_manager_id, claim_status, approval_status, id)
        )
    """)
    steps.execute("""
        create table if not exists provider_counts (
            plan_manager_id uuid not null,
            id uuid not null default gen_random_uuid(),
            amount bigint not null,
            primary key (plan_manager_id, id)
        )
    """)
    steps.execute(distribute_table("invoice_counts"))
    steps.execute(distribute_table("provider_counts"))
    steps.add_constraint(
        "invoice_counts",
        "invoice_counts_plan_manager_id_fkey",
        "foreign key (plan_manager_id) references plan_managers",
    )
    steps.add_constraint(
        "provider_counts",
        "provider_counts_plan_manager_id_fkey",
        "foreign key (plan_manager_id) references plan_managers",
    )
    # What the rows are ahead of the sums: nothing the second time. A server of the previous release that still writes
    # doesn't add to the sums. A periodic task corrects them with the same statements.
    steps.execute("""
        insert into invoice_counts (plan_manager_id, claim_status, approval_status, amount)
        select plan_manager_id, claim_status, approval_status, sum(amount)
        from (
            select plan_manager_id, claim_status, approval_status, count(*) as amount
            from invoices group by plan_manager_id, claim_status, approval_status
            union all
            select plan_manager_id, claim_status, approval_status, -sum(amount)
            from invoice_counts group by plan_manager_id, claim_status, approval_status
        ) differences
        group by plan_manager_id, claim_status, approval_status
        having sum(amount) <> 0
    """)
    steps.execute("""
        insert into provider_counts (plan_manager_id, amount)
        select plan_manager_id, sum(amount)
        from (
            select plan_manager_id, count(*) as amount from providers group by plan_manager_id
            union all
            select plan_manager_id, -sum(amount) from provider_counts group by plan_manager_id
        ) differences
        group by plan_manager_id
        having sum(amount) <> 0
    """)
