"""Search for participants by date of birth, and by the words of an address."""

from plankeeper.database.migrations import steps

revision = "0040"
down_revision = "0039"


def upgrade() -> None:
    steps.create_index(
        "participants_by_birth_or_address",
        """participants using gin (plan_manager_id, date_of_birth,
            search_text(array[address_line_1, address_line_2, city], array[postcode]) gin_trgm_ops)""",
    )
