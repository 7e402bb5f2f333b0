"""Legal holds on participants."""

from plankeeper.database.migrations import steps

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    # Without a reference to participants: a hold can keep the events of a deleted one.
    steps.execute("""
        create table if not exists legal_holds (
            plan_manager_id uuid not null references plan_managers (id),
            participant_id uuid not null,
            reason text not null,
            created_at timestamptz not null,
            created_by text not null,
            primary key (plan_manager_id, participant_id)
        )
    """)
