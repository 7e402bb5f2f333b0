"""Mails in the order in which they are sent, and the mail of an invitation."""

from alembic import op

revision = "0016"
down_revision = "0015"

STATEMENTS = """
-- Links to reset a password first: they are requested by a waiting person, and expire early.
create index outgoing_mails_by_turn on outgoing_mails ((content ->> 'kind' <> 'password_reset'), next_attempt_at);

drop index outgoing_mails_by_next_attempt;

create index outgoing_mails_by_invitation on outgoing_mails ((content ->> 'invitation_id'))
    where content ->> 'invitation_id' is not null
"""


def upgrade() -> None:
    for statement in STATEMENTS.split(";\n\n"):
        op.execute(statement)
