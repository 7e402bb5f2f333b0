"""No search reads the index by first name since the search in names of 0025."""

from plankeeper.database.migrations import steps

revision = "0037"
down_revision = "0036"


def upgrade() -> None:
    steps.drop_index("participants_by_first_name")
