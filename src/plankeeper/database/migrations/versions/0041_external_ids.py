"""The ids of records in other systems."""

from plankeeper.database.migrations import steps

revision = "0041"
down_revision = "0040"


def upgrade() -> None:
    # An index only of the rows with such an id costs the others nothing when they are written.
    steps.execute("alter table participants add column if not exists external_id text")
    steps.create_index(
        "participants_external_id_key",
        "participants (plan_manager_id, external_id) where external_id is not null",
        unique=True,
    )
    steps.execute("alter table providers add column if not exists external_id text")
    steps.create_index(
        "providers_external_id_key",
        "providers (plan_manager_id, external_id) where external_id is not null",
        unique=True,
    )
    steps.execute("alter table team_members add column if not exists external_id text")
    steps.create_index(
        "team_members_external_id_key",
        "team_members (plan_manager_id, external_id) where external_id is not null",
        unique=True,
    )
