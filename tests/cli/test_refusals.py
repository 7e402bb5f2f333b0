"""Errors of commands: one sentence, nothing on standard output, and an exit code above 0."""

import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import click
import pytest

from plankeeper.cli.parameter_types import DURATION, NAME
from plankeeper.database import schema
from support.client import Client
from support.cluster import SharedCluster, execute
from support.program import Done, environment, run_plankeeper
from support.rechecks import stop_server_rechecks
from support.server import RunningServer, wait_until

UNKNOWN_ID = "00000000-0000-0000-0000-000000000001"


def error_message(done: Done) -> str:
    """The sentence."""
    assert done.stdout == ""
    assert done.returncode in (1, 2)
    assert "Traceback" not in done.stderr
    assert "--traceback" not in done.stderr
    return done.stderr.strip().splitlines()[-1]


@pytest.mark.parametrize("name", ["", " ", "two\nlines", "bell\a", "\u2028", "\0", "x" * 256, "\udcff"])
def test_a_name_must_be_a_single_line_of_text(name: str) -> None:
    with pytest.raises(click.BadParameter, match="one line of 1 to 255 characters"):
        NAME.convert(name, None, None)


@pytest.mark.parametrize(
    "text,seconds", [("30s", 30), ("15m", 900), ("12h", 43_200), ("90d", 7_776_000), ("999999d", 86_399_913_600)]
)
def test_a_duration_is_a_number_and_a_unit(text: str, seconds: int) -> None:
    assert DURATION.convert(text, None, None) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "90", "d", "0d", "-1d", "1.5h", "1w", "1 d", "1D", "1d1h", "9999999d", "٣d"])
def test_an_invalid_duration_is_rejected(text: str) -> None:
    with pytest.raises(click.BadParameter, match="such as 30s, 15m, 12h or 90d"):
        DURATION.convert(text, None, None)


def test_every_error_is_reported(cluster: SharedCluster, api: Client) -> None:
    unknown, known = ("--plan-manager", UNKNOWN_ID), ("--plan-manager", api.plan_manager_id)
    url, folder = "PLANKEEPER_DATABASE_URL", "PLANKEEPER_DATA_DIR"
    listing = ["plan-managers", "list"]
    cases: list[tuple[list[str], dict[str, str], str]] = [
        (["serve"], {"PLANKEEPER_TIME_ZONE": "Mars"}, "PLANKEEPER_TIME_ZONE is 'Mars'; it must be the name of a time"),
        (listing, {url: "postgresql://u:p@localhost:port/db"}, "Cannot connect with PLANKEEPER_DATABASE_URL"),
        (listing, {url: "postgresql://u:p@127.0.0.1:99999/db"}, "Cannot connect with PLANKEEPER_DATABASE_URL"),
        (listing, {url: "postgresql://u:p@127.0.0.1:1,127.0.0.1:70000/db"}, "there is no port 70000; the highest"),
        (["serve"], {url: "postgresql://u@nosuchhost.invalid/db"}, "The database is unavailable"),
        (["migrate"], {url: "postgresql:///x?host=/nowhere"}, "The database is unavailable"),
        (listing, {url: cluster.dsn_of("absent")}, 'database "absent" does not exist'),
        (["serve"], {folder: "/proc/x"}, "The database in /proc/x cannot be used"),
        (["export", "invoices", *unknown], {}, f"There is no plan manager {UNKNOWN_ID}"),
        (["keys", "create", "--name", "x", *unknown], {}, f"There is no plan manager {UNKNOWN_ID}"),
        (["keys", "create", "--name", "a\nb", *known], {}, "Invalid value for '--name': must be one line"),
        (["recheck", *unknown], {}, f"There is no plan manager {UNKNOWN_ID}"),
        (["export", "people", *known], {}, "'people' is not one of 'exit-reasons'"),
        (["export", "invoices", "--plan-manager", "1"], {}, "'1' is not a UUID"),
        (["openapi", "--check", sys.executable], {}, "differs from the server's OpenAPI document: run `make openapi`"),
        # It opens, and every read of it fails, as that of a file on a disk that was pulled out.
        (["import", "invoices", "/proc/self/mem", *known], {}, "Cannot read /proc/self/mem: Input/output error"),
    ]
    for command, more, sentence in cases:
        done = run_plankeeper(*command, **(more if folder in more else {url: cluster.dsn} | more))
        assert sentence in error_message(done), (command, more)


@pytest.mark.parametrize("name", ["absent", "empty"])
def test_a_command_without_a_data_folder_creates_none(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    folder, unknown = tmp_path / name, ("--plan-manager", UNKNOWN_ID)
    people, file = ["--email", "a@example.com", *unknown], tmp_path / "file.csv"
    file.write_text("first_name\n")
    where = f"no data folder at {folder}" if name == "absent" else f"no database in {folder}"
    expected = (
        f"There is {where}. Set PLANKEEPER_DATA_DIR to the data folder of your server, or PLANKEEPER_DATABASE_URL to"
        " the address of your database. `plankeeper serve` creates a new data folder."
    )
    for command in (
        ["webhook-worker"], ["distribute"], ["privileges"], ["doctor"], ["recheck", *unknown],
        ["plan-managers", "create", "--name", "x"], ["plan-managers", "list"], ["keys", "list"],
        ["keys", "create", "--name", "x", *unknown], ["accounts", "list"], ["sso", "list"],
        ["accounts", "create", "--name", "x", "--role", "owner", *people], ["backup", str(tmp_path / "backup")],
        ["import", "participants", str(file), *unknown], ["export", "participants", *unknown],
    ):  # fmt: skip
        done = run_plankeeper(*command, PLANKEEPER_DATA_DIR=str(folder))
        assert (done.returncode, expected in done.stdout + done.stderr) == (1, True), (command, done)
        assert sorted(each.name for each in tmp_path.rglob("*")) == ["empty", "file.csv"], command


def test_a_wrong_password_and_a_missing_privilege_are_reported(server: RunningServer, cluster: SharedCluster) -> None:
    rules = cluster.location / "plankeeper_hba.conf"
    before = rules.read_text()
    rules.write_text("local all locked_out scram-sha-256\n" + before)
    execute(cluster.dsn, "create role locked_out login password 'right'", "select pg_reload_conf()")
    own = cluster.dsn.replace("user=plankeeper", "user=locked_out")
    try:
        for command in (["plan-managers", "list"], ["doctor"]):
            done = run_plankeeper(*command, PLANKEEPER_DATABASE_URL=own + "&password=wrong")
            assert done.returncode == 1
            assert 'password authentication failed for user "locked_out"' in done.stdout + done.stderr
        done = run_plankeeper("plan-managers", "list", PLANKEEPER_DATABASE_URL=own + "&password=right")
        assert (
            error_message(done)
            == "Error: The database user lacks a privilege: permission denied for table alembic_version."
        )
    finally:
        rules.write_text(before)
        execute(cluster.dsn, "select pg_reload_conf()", "drop role locked_out")


def test_a_newer_database_is_not_downgraded(cluster: SharedCluster) -> None:
    own = cluster.new_database(migrated=False)
    execute(own, "create table alembic_version as select '9999' as version_num")
    execute(own, "create table schema_compatibility as select '9999' as oldest_compatible")
    reported = error_message(run_plankeeper("migrate", PLANKEEPER_DATABASE_URL=own))
    assert reported.startswith(
        "Error: The database's schema is 9999, but this Plankeeper supports no newer schema than"
        f" {schema.LATEST_REVISION}."
    )
    sick = run_plankeeper("doctor", PLANKEEPER_DATABASE_URL=own)
    assert sick.returncode == 1
    assert "supports no newer schema" in sick.stdout
    assert "plankeeper migrate" not in sick.stdout


def test_the_current_folder_may_be_deleted(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    done = subprocess.run(
        ["sh", "-c", 'cd "$0" && rmdir "$0" && exec "$@" keys list', str(gone), sys.executable, "-m", "plankeeper"],
        env=environment({}), capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert "No such file or directory" in error_message(Done(done.returncode, done.stdout, done.stderr))


def test_a_key_created_by_a_command_has_its_scopes_until_it_is_revoked(
    cluster: SharedCluster, server: RunningServer, new_plan_manager: Callable[[], Any]
) -> None:
    own = {"PLANKEEPER_DATABASE_URL": cluster.dsn}
    one, two, three = (str(new_plan_manager()) for _ in range(3))
    made = ("keys", "create", "--name", "reader", "--plan-manager", one, "--plan-manager", two.upper())
    key = run_plankeeper(*made, "--scope", "read", **own).stdout.removesuffix("\n")
    [line] = [
        each for each in run_plankeeper("keys", "list", **own).stdout.splitlines() if f"…{key[-4:]}  read  " in each
    ]
    assert line.endswith(f"  no expiry  never used  {','.join(sorted([one, two]))}  reader")
    client = Client(server.url, key, two)
    assert client.get("/participants").status_code == 200
    assert client.post("/participants", {}).json()["error"] == "insufficient_scope"
    client.plan_manager_id = three
    assert client.get("/participants").json()["error"] == "plan_manager_not_allowed"
    client.plan_manager_id = two
    assert run_plankeeper("keys", "revoke", line.split()[0], **own).stdout == "Revoked: reader\n"
    wait_until(lambda: client.get("/participants").status_code == 401)
    assert client.get("/participants").json()["error"] == "invalid_api_key"
    client.http.close()


def test_a_recheck_reports_how_many_invoices_it_checked(
    cluster: SharedCluster, api: Client, import_rows: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_server_rechecks(monkeypatch)
    person = api.create("/participants", {"status": "Active"})["id"]
    import_rows(api, "invoices", [{"participant_id": person}, {"participant_id": None}])
    api.put(f"/participants/{person}", {"status": "Inactive"})
    command = ("recheck", "--plan-manager", api.plan_manager_id)
    for changed in (1, 0):
        done = run_plankeeper(*command, PLANKEEPER_DATABASE_URL=cluster.dsn)
        assert done.stdout == f"2 invoices checked, {changed} changed\n"
