"""A function with which a write fails if what it has read has changed since."""

from plankeeper.database.migrations import steps

revision = "0036"
down_revision = "0035"

REQUIRE_UNCHANGED = """
    create or replace function require_unchanged(is_unchanged boolean) returns void
    language plpgsql set search_path = public, pg_temp as $$
    begin
        if not is_unchanged then
            raise serialization_failure using message = 'the row has changed since it was read';
        end if;
    end $$
"""


def upgrade() -> None:
    steps.execute(REQUIRE_UNCHANGED)
