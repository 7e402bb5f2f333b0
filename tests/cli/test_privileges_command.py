"""`plankeeper privileges`, and what other commands do and say about the role that serves."""

from collections.abc import Iterator
from functools import partial

import pytest

from plankeeper.database.privileges import TABLE_PRIVILEGES
from plankeeper.database.schema import LATEST_REVISION
from plankeeper.server.embedded_postgres.creation import SERVING_ROLE
from support.cluster import SharedCluster, as_owner, execute
from support.program import Done, run_plankeeper

DONE = f"The role {SERVING_ROLE} has its privileges.\n"
HEALTHY = f"ok    the role {SERVING_ROLE} owns nothing\n"


@pytest.fixture
def empty(cluster: SharedCluster) -> Iterator[str]:
    """The address of an empty database with the role that serves, which has no privileges there."""
    owned = cluster.new_database(migrated=False)
    yield owned.replace("user=postgres", f"user={SERVING_ROLE}")
    cluster.drop(owned)


def error_message(done: Done) -> str:
    assert done.returncode == 1, done
    [sentence] = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
    return sentence


def run_with_both(dsn: str, *command: str) -> Done:
    urls = {"PLANKEEPER_DATABASE_URL": dsn, "PLANKEEPER_OWNER_DATABASE_URL": as_owner(dsn)}
    return run_plankeeper(*command, **urls)


def test_migrate_creates_the_tables_as_the_owner_and_gives_the_other_role_its_privileges(empty: str) -> None:
    serving = partial(run_plankeeper, PLANKEEPER_DATABASE_URL=empty)
    message = error_message(serving("migrate"))
    assert "lacks a privilege" in message
    assert message.endswith("Set PLANKEEPER_OWNER_DATABASE_URL to the address with the role that owns the tables.")
    done = run_with_both(empty, "migrate")
    assert done.stdout == f"The schema is now {LATEST_REVISION}.\n{DONE}", done.stderr
    assert serving("plan-managers", "create", "--name", "Test").returncode == 0
    assert HEALTHY in serving("doctor").stdout
    assert run_with_both(empty, "migrate").stdout == f"The schema is already {LATEST_REVISION}.\n{DONE}"


def test_the_dry_run_prints_sql_that_does_the_same(dsn: str) -> None:
    printed = run_with_both(dsn, "privileges", "--dry-run").stdout
    execute(dsn, f"revoke all on {', '.join(TABLE_PRIVILEGES)} from {SERVING_ROLE}")
    assert run_plankeeper("plan-managers", "list", PLANKEEPER_DATABASE_URL=dsn).returncode == 1
    execute(dsn, *printed.splitlines())
    assert HEALTHY in run_plankeeper("doctor", PLANKEEPER_DATABASE_URL=dsn).stdout


def test_missing_privileges_stop_a_server_and_the_command_gives_them(dsn: str) -> None:
    execute(dsn, f"revoke insert on participants from {SERVING_ROLE}")
    expected = f"the role {SERVING_ROLE} lacks privileges (insert on participants): run `plankeeper privileges`"
    serving = partial(run_plankeeper, PLANKEEPER_DATABASE_URL=dsn)
    assert f"FAIL  {expected}\n" in serving("doctor").stdout
    done = serving("serve", "--port", "0")
    assert (done.returncode, expected[1:] in done.stderr) == (1, True), done
    assert run_with_both(dsn, "privileges").stdout == DONE
    assert HEALTHY in serving("doctor").stdout


def test_a_role_that_owns_the_tables_needs_nothing_and_is_warned_about(dsn: str) -> None:
    owning = partial(run_plankeeper, PLANKEEPER_DATABASE_URL=as_owner(dsn))
    assert owning("privileges").stdout == (
        "PLANKEEPER_DATABASE_URL has the role that owns the tables: it needs no privileges.\n"
    )
    assert "warn  the server's database role postgres is a superuser: " in owning("doctor").stdout


def test_addresses_of_different_databases_are_rejected(dsn: str, empty: str) -> None:
    urls = {"PLANKEEPER_DATABASE_URL": dsn, "PLANKEEPER_OWNER_DATABASE_URL": as_owner(empty)}
    names = [each.removeprefix("postgresql:///").partition("?")[0] for each in (dsn, empty)]
    assert error_message(run_plankeeper("migrate", **urls)) == (
        "Error: PLANKEEPER_DATABASE_URL and PLANKEEPER_OWNER_DATABASE_URL are different databases"
        f" ({names[0]}, {names[1]}). They must be the same one, with different roles."
    )


def test_a_role_that_does_not_own_the_tables_cannot_give_privileges(dsn: str) -> None:
    message = error_message(run_plankeeper("privileges", PLANKEEPER_DATABASE_URL=dsn))
    assert message == (
        f"Error: The role {SERVING_ROLE} doesn't own the tables: set PLANKEEPER_OWNER_DATABASE_URL to the address with"
        " the role that does."
    )


def test_the_commands_of_the_owner_say_which_address_is_wrong(dsn: str) -> None:
    wrong = dsn.replace(f"user={SERVING_ROLE}", "user=absent")
    for command in (["migrate"], ["privileges"], ["backup", "x"]):
        urls = {"PLANKEEPER_DATABASE_URL": dsn, "PLANKEEPER_OWNER_DATABASE_URL": wrong}
        message = error_message(run_plankeeper(*command, **urls))
        assert message.startswith("Error: Cannot connect with PLANKEEPER_OWNER_DATABASE_URL: "), message
    message = error_message(run_plankeeper("migrate", PLANKEEPER_OWNER_DATABASE_URL=wrong))
    assert message.startswith("Error: PLANKEEPER_OWNER_DATABASE_URL requires PLANKEEPER_DATABASE_URL"), message
    urls = {"PLANKEEPER_DATABASE_URL": wrong, "PLANKEEPER_OWNER_DATABASE_URL": as_owner(dsn)}
    message = error_message(run_plankeeper("privileges", **urls))
    assert message.endswith("Correct it, then run `plankeeper privileges`."), message
