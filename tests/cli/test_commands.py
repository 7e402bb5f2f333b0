"""The commands, run as programs on their own database."""

import json
import re
import socket
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from plankeeper.cli.doctor import python_warnings
from plankeeper.database import schema
from support.cluster import SharedCluster, execute
from support.program import run_plankeeper, run_program
from support.secret_keys import shared_key_file

KEY_PATTERN = re.compile(r"plk_[0-9A-Za-z]{38}")
UUID_PATTERN = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@pytest.fixture(scope="module")
def dsn(cluster: SharedCluster) -> str:
    """A database with the schema, for this module."""
    return cluster.new_database()


def test_plan_managers_and_keys_are_created_listed_and_revoked(dsn: str) -> None:
    env = {"PLANKEEPER_DATABASE_URL": dsn}
    before = datetime.now(UTC)
    made = run_plankeeper("plan-managers", "create", "--name", "Acacia Plans", **env)
    plan_manager = made.stdout.strip()
    assert UUID_PATTERN.fullmatch(plan_manager)
    again = run_plankeeper("plan-managers", "create", "--name", "Twice", "--id", plan_manager, **env)
    assert (again.returncode, again.stdout) == (1, "")
    assert again.stderr == f"Error: The plan manager {plan_manager} already exists. Choose another --id.\n"
    [line] = run_plankeeper("plan-managers", "list", **env).stdout.splitlines()
    assert line in {f"{plan_manager}  {each:%Y-%m-%d}  Acacia Plans" for each in (before, datetime.now(UTC))}

    name = "a long name that a narrow terminal would wrap, " * 4
    key = run_plankeeper("keys", "create", "--name", name, "--plan-manager", plan_manager, "--expires-in", "90d", **env)
    assert KEY_PATTERN.fullmatch(key.stdout.removesuffix("\n")), key
    [listed] = run_plankeeper("keys", "list", COLUMNS="40", **env).stdout.splitlines()
    key_id = listed.split()[0]
    assert UUID_PATTERN.fullmatch(key_id)
    assert "active" in listed
    assert "read+write" in listed
    assert listed.endswith(name)
    assert key.stdout.strip() not in listed

    revoked = run_plankeeper("keys", "revoke", key_id, **env)
    assert revoked.stdout == f"Revoked: {name}\n"
    assert "revoked" in run_plankeeper("keys", "list", **env).stdout
    missing = run_plankeeper("keys", "revoke", plan_manager, **env)
    assert missing.returncode == 1
    assert missing.stderr == f"Error: There is no key {plan_manager}. See `plankeeper keys list`.\n"


@pytest.mark.parametrize("duration", ["90", "0d", "1w", "-5m", "1.5h", "d"])
def test_an_invalid_duration_is_rejected(duration: str) -> None:
    plan_manager = "017a5f00-0000-7000-8000-00000000da7a"
    rejected = run_plankeeper("keys", "create", "--name", "x", "--plan-manager", plan_manager, "--expires-in", duration)
    assert rejected.returncode == 2
    assert f"'{duration}' is not a duration, such as 30s, 15m, 12h or 90d" in rejected.stderr


def test_a_file_is_imported_and_exported(dsn: str, tmp_path: Path) -> None:
    env = {"PLANKEEPER_DATABASE_URL": dsn}
    plan_manager = run_plankeeper("plan-managers", "create", "--name", "Files", **env).stdout.strip()
    whose = ("--plan-manager", plan_manager)
    file = tmp_path / "providers.csv"
    file.write_text("entity_name,abn\nBanksia Care,51824753556\nWrong Pty Ltd,123\n")
    taken = run_plankeeper("import", "providers", str(file), *whose, **env)
    assert taken.stdout == "providers: 2 lines: 2 created, 0 changed, 0 unchanged\n"
    assert taken.stderr == "Warning: line 3: abn '123' is not 11 digits with a valid check digit\n"

    exported = run_plankeeper("export", "providers", *whose, **env)
    assert [json.loads(line)["entity_name"] for line in exported.stdout.splitlines()] == [
        "Banksia Care",
        "Wrong Pty Ltd",
    ]
    again = run_plankeeper("import", "providers", "-", *whose, stdin=exported.stdout.encode(), **env)
    assert again.stdout == "providers: 2 lines: 0 created, 0 changed, 2 unchanged\n"

    bad = b'{"entity_name": 5}\n{"entity_name": "good"}\n{"abn": "1", "colour": "red"}\n'
    rejected = run_plankeeper("import", "providers", "-", *whose, stdin=bad, **env)
    assert (rejected.returncode, rejected.stdout) == (1, "")
    assert rejected.stderr.splitlines()[0] == "line 1: entity_name: must be a string or null, not a whole number"
    assert rejected.stderr.splitlines()[1].startswith("line 3: colour: is unknown")
    assert rejected.stderr.splitlines()[-1] == "2 invalid lines: nothing was written."
    assert len(run_plankeeper("export", "providers", *whose, **env).stdout.splitlines()) == 2
    checked = run_plankeeper("recheck", *whose, **env)
    assert checked.stdout == "0 invoices checked, 0 changed\n"


def test_errors_are_reported_in_one_sentence(dsn: str, tmp_path: Path) -> None:
    env = {"PLANKEEPER_DATABASE_URL": dsn}
    nobody = "017a5f00-0000-7000-8000-0000000000aa"
    file = tmp_path / "some.csv"
    file.write_text("entity_name\nx\n")
    unknown = run_plankeeper("import", "providers", str(file), "--plan-manager", nobody, **env)
    assert unknown.stderr == f"Error: There is no plan manager {nobody}. See `plankeeper plan-managers list`.\n"
    for wrong in (str(tmp_path / "none.csv"), str(tmp_path)):
        missing = run_plankeeper("import", "providers", wrong, "--plan-manager", nobody, **env)
        assert missing.returncode == 2
        assert wrong in missing.stderr
    shut = run_plankeeper("keys", "list", PLANKEEPER_DATABASE_URL="postgresql://nobody@127.0.0.1:9/none")
    assert shut.returncode == 1
    assert shut.stderr.startswith("Error: The database is unavailable: ")
    junk = run_plankeeper("keys", "list", PLANKEEPER_DATABASE_URL="mysql://x")
    assert junk.returncode == 1
    assert "PLANKEEPER_DATABASE_URL" in junk.stderr
    port = run_plankeeper("keys", "list", PLANKEEPER_PORT="http", **env)
    assert port.stderr == "Error: PLANKEEPER_PORT is 'http'; it must be a port number from 0 to 65535.\n"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = str(taken.getsockname()[1])
        busy = run_program("serve", "--port", number, PLANKEEPER_DATA_DIR=str(tmp_path / "data"))
    assert busy.returncode == 1
    assert f"Cannot listen on 127.0.0.1 port {number}" in busy.stderr
    assert not (tmp_path / "data").exists()
    blocked = tmp_path / "file"
    blocked.write_text("")
    folder = run_plankeeper("keys", "list", PLANKEEPER_DATA_DIR=str(blocked / "data"))
    assert folder.returncode == 1
    assert str(blocked / "data") in folder.stderr


def test_an_external_database_is_migrated_on_request(cluster: SharedCluster, tmp_path: Path) -> None:
    database = cluster.new_database(migrated=False)
    env = {"PLANKEEPER_DATABASE_URL": database, "PLANKEEPER_DOCUMENTS_URL": tmp_path.as_uri()}
    for command in (["serve"], ["keys", "list"]):
        rejected = run_plankeeper(*command, **env)
        assert rejected.returncode == 1
        assert "Run `plankeeper migrate`." in rejected.stderr
    sick = run_plankeeper("doctor", **env)
    assert sick.returncode == 1
    assert f"FAIL  schema empty, but {schema.LATEST_REVISION} is required: run `plankeeper migrate`" in sick.stdout
    assert run_plankeeper("migrate", **env).stdout == f"The schema is now {schema.LATEST_REVISION}.\n"
    assert run_plankeeper("migrate", **env).stdout == f"The schema is already {schema.LATEST_REVISION}.\n"
    well = run_plankeeper("doctor", PLANKEEPER_SECRET_KEY_FILE=str(shared_key_file()), **env)
    assert well.returncode == 0
    expected = [f"{state}  {text}" for state, text in python_warnings(sys.version_info[:3])]
    found = [line for line in well.stdout.splitlines() if not line.startswith("ok")]
    assert [line for line in found if "the server's database role postgres is a superuser" not in line] == expected
    assert run_plankeeper("keys", "list", **env).stdout == ""


def test_links_and_warnings_follow_the_public_url(dsn: str) -> None:
    env = {"PLANKEEPER_DATABASE_URL": dsn, "PLANKEEPER_PUBLIC_URL": "https://plans.example.com/"}
    plan_manager = run_plankeeper("plan-managers", "create", "--name", "Acacia Plans", **env).stdout.strip()
    arguments = ["--email", "sam@example.com", "--name", "Sam", "--plan-manager", plan_manager, "--role", "owner"]
    link = run_plankeeper("accounts", "create", *arguments, **env).stdout
    assert link.startswith("https://plans.example.com/console/invitations/")
    warning = "warn  PLANKEEPER_PUBLIC_URL is set without PLANKEEPER_TRUSTED_PROXIES: "
    assert warning in run_plankeeper("doctor", **env).stdout
    assert warning not in run_plankeeper("doctor", PLANKEEPER_TRUSTED_PROXIES="10.0.0.1", **env).stdout


def test_a_database_with_a_newer_schema_is_left_unchanged(cluster: SharedCluster) -> None:
    address = cluster.new_database()
    execute(address, "update alembic_version set version_num = '9999'")
    execute(address, "update schema_compatibility set oldest_compatible = '9999'")
    rejected = run_plankeeper("serve", PLANKEEPER_DATABASE_URL=address)
    assert rejected.returncode == 1
    assert "The database's schema is 9999, but this Plankeeper supports no newer schema than" in rejected.stderr


def test_the_openapi_document_can_be_compared(project: Path, tmp_path: Path) -> None:
    assert run_plankeeper("openapi", "--check", str(project / "openapi.json")).returncode == 0
    other = tmp_path / "other.json"
    other.write_text("{}")
    differs = run_plankeeper("openapi", "--check", str(other))
    assert (differs.returncode, differs.stderr) == (
        1,
        f"Error: {other} differs from the server's OpenAPI document: run `make openapi`.\n",
    )
