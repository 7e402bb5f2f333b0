"""Rejected requests of API keys that belong to no plan manager, by key and reason."""

from plankeeper.database.migrations import steps

revision = "0043"
down_revision = "0042"


def upgrade() -> None:
    # One row for each key and reason, on the coordinator of Citus as the keys are: a rejected key may act for several
    # plan managers.
    steps.execute("""
        create table if not exists api_key_rejections (
            api_key_id uuid not null,
            reason text not null,
            requests bigint not null,
            first_at timestamptz not null,
            last_at timestamptz not null,
            method text not null,
            route text,
            user_agent text,
            request_id text not null,
            primary key (api_key_id, reason)
        )
    """)
    steps.add_constraint(
        "api_key_rejections", "api_key_rejections_api_key_id_fkey", "foreign key (api_key_id) references api_keys"
    )
