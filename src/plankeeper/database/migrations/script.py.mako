"""${message}."""

from plankeeper.database.migrations import steps

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}


def upgrade() -> None:
    steps.execute("")
