"""How a server starts: what it says of its database and its address, and when it accepts connections."""

import socket

import pytest

from plankeeper.cli.serve import bind_socket
from plankeeper.cli.startup import address_warnings, describe_database
from plankeeper.core.settings import Settings


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


@pytest.mark.parametrize(
    "host, public_url, warns",
    [
        ("127.0.0.1", "", False),
        ("127.8.9.1", "", False),
        ("::1", "", False),
        ("localhost", "", False),
        ("0.0.0.0", "", True),  # noqa: S104
        ("::", "", True),
        ("192.0.2.1", "", True),
        ("plans.example.com", "", True),
        ("0.0.0.0", "https://plans.example.com", False),  # noqa: S104
    ],
)
def test_a_server_that_others_reach_needs_its_address(host: str, public_url: str, warns: bool) -> None:
    settings = Settings.read({"PLANKEEPER_HOST": host, "PLANKEEPER_PUBLIC_URL": public_url})
    assert [f"listens on {host} without PLANKEEPER_PUBLIC_URL: " in each for each in address_warnings(settings)] == (
        [True] if warns else []
    )


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_connections_are_refused_until_a_worker_listens(host: str) -> None:
    """A proxy takes another server at once, instead of waiting for one that starts."""
    with bind_socket(Settings.read({"PLANKEEPER_HOST": host, "PLANKEEPER_PORT": "0"})) as bound:
        address = bound.getsockname()[:2]
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(address)
        bound.listen()
        socket.create_connection(address).close()
