"""The exact records that a page of a list showed, and webhook endpoints in the access log."""

from plankeeper.database.migrations import steps

revision = "0039"
down_revision = "0038"


def upgrade() -> None:
    steps.execute("alter table access_records add column if not exists resource_ids uuid[]")
    steps.drop_constraint("access_records", "access_records_resource_kind_check")
    steps.add_constraint(
        "access_records",
        "access_records_kind_check",
        "check (resource_kind in ('participant', 'invoice', 'webhook_endpoint'))",
    )
    steps.create_index(
        "access_records_by_listed",
        "access_records using gin (plan_manager_id, resource_ids) where resource_ids is not null",
    )
    steps.create_index(
        "access_records_by_range", "access_records (plan_manager_id, first_id, last_id) where first_id is not null"
    )
