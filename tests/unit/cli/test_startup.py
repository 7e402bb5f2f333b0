"""What the log tells of the database's address: its hosts, and no part of a password."""

import pytest

from plankeeper.cli.startup import describe_database
from plankeeper.settings import Settings


@pytest.mark.parametrize(
    "url, hosts",
    [
        ("postgresql://u:p@db.example.com/d", "db.example.com"),
        ("postgresql://u:p@pg1,pg2:5433/d?target_session_attrs=read-write", "pg1,pg2:5433"),
        ("postgresql:///d?host=/run/postgresql", "/run/postgresql"),
        # Characters of a password that end the host if they aren't encoded.
        ("postgresql://u:hidden/more@db.example.com/d", "unknown"),
        ("postgresql://u:hidden?more@db.example.com/d", "unknown"),
        ("postgresql://u:hidden#more@db.example.com/d", "unknown"),
        ("postgresql://u:hidden[more@db.example.com/d", "unknown"),
    ],
)
def test_the_hosts_of_the_database(url: str, hosts: str) -> None:
    assert describe_database(Settings.read({"PLANKEEPER_DATABASE_URL": url})) == hosts


def test_the_embedded_database_has_a_folder() -> None:
    assert describe_database(Settings.read({})) == "embedded in .plankeeper"
