"""Who created API keys and invitations, by account."""

from alembic import op

revision = "0012"
down_revision = "0011"

# Statements without a foreign key to accounts: a key or an event can outlive the account.
STATEMENTS = """
alter table api_keys add column created_by_account_id uuid;

alter table account_invitations add column invited_by_account_id uuid;

-- Keys and invitations that people created in the console before this migration: their events have the account.
update api_keys set created_by_account_id = event.actor_id::uuid
from api_key_plan_managers reach join events event on event.plan_manager_id = reach.plan_manager_id
    and event.resource_id = reach.api_key_id::text and event.type = 'api_key.created' and event.actor_kind = 'user'
where reach.api_key_id = api_keys.id;

update account_invitations set invited_by_account_id = event.actor_id::uuid
from events event
where event.plan_manager_id = account_invitations.plan_manager_id
    and event.resource_id = account_invitations.id::text and event.type = 'account.invited'
    and event.actor_kind = 'user' and event.created_at >= account_invitations.created_at - interval '1 minute'
"""


def upgrade() -> None:
    for statement in STATEMENTS.split(";\n\n"):
        op.execute(statement)
