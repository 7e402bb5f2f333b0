"""Indexes for the sums of the console's home page, and links between accounts and account managers."""

from plankeeper.database.citus import distribute_table
from plankeeper.database.migrations import steps

revision = "0028"
down_revision = "0027"


def upgrade() -> None:
    create_indexes()
    create_account_manager_links()


def create_indexes() -> None:
    # With the columns that the sums use, so that none of them reads the table.
    steps.create_index(
        "invoices_by_creation",
        "invoices (plan_manager_id, created_at, id)"
        " include (claim_status, is_deleted, pm_provider_id, total, participant_id)",
    )
    steps.create_index(
        "invoices_open",
        "invoices (plan_manager_id, created_at, id) include (claim_status, approval_status, total, participant_id)"
        " where claim_status not in ('paid', 'rejected', 'cancelled') and not is_deleted",
    )
    steps.create_index(
        "invoices_on_hold_with_errors",
        "invoices (plan_manager_id, created_at, id) include (error_codes, ignored_error_codes, total, participant_id)"
        " where claim_status = 'on_hold' and errors and not is_deleted",
    )
    steps.create_index(
        "participants_active",
        "participants (plan_manager_id, plan_end_date, id) include (account_manager_id) where status = 'Active'",
    )


def create_account_manager_links() -> None:
    # Without a reference to accounts, which are on Citus not on the nodes of plan managers.
    steps.execute("""
        create table if not exists account_manager_links (
            plan_manager_id uuid not null,
            account_id uuid not null,
            account_manager_id uuid not null,
            primary key (plan_manager_id, account_id)
        )
    """)
    steps.execute(distribute_table("account_manager_links"))
    steps.add_constraint(
        "account_manager_links",
        "account_manager_links_plan_manager_id_fkey",
        "foreign key (plan_manager_id) references plan_managers (id)",
    )
    steps.add_constraint(
        "account_manager_links",
        "account_manager_links_account_manager_id_fkey",
        "foreign key (plan_manager_id, account_manager_id) references account_managers (plan_manager_id, id)",
    )
