"""`plankeeper migrate`: its progress, a lock that another transaction holds, and schemas of newer releases."""

import asyncio
import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from plankeeper.cli import progress
from plankeeper.cli.progress import migrate_with_progress
from plankeeper.cli.startup import progress_writer
from plankeeper.database import schema
from plankeeper.database.client import Database
from plankeeper.database.migrations import steps
from support import next_release
from support.cluster import as_owner, execute
from support.program import environment, run_plankeeper
from support.terminal import read_terminal

DATABASE_URL = "PLANKEEPER_DATABASE_URL"


@pytest.fixture
def next_migrations(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The program is the next release."""
    next_release.use_migrations(monkeypatch, tmp_path)


@contextmanager
def reading_transaction(dsn: str) -> Generator[None]:
    """A transaction that has read participants, such as that of a backup."""
    loop = asyncio.new_event_loop()
    connection: Any = loop.run_until_complete(asyncpg.connect(dsn))
    loop.run_until_complete(connection.execute("begin; lock table participants in access share mode"))
    try:
        yield
    finally:
        loop.run_until_complete(connection.close())
        loop.close()


def test_lines_show_the_progress(empty_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "REPORT_INTERVAL", 0.0)
    monkeypatch.setattr(progress, "_MIGRATION_POLL_INTERVAL", 0.001)
    done = run_plankeeper("migrate", **{DATABASE_URL: empty_dsn})
    assert (done.returncode, done.stdout) == (0, f"The schema is now {schema.LATEST_REVISION}.\n")
    assert "0001 The first schema" in done.stderr


def test_a_short_migration_shows_no_lines(dsn: str) -> None:
    done = run_plankeeper("migrate", **{DATABASE_URL: dsn})
    assert done == (0, f"The schema is already {schema.LATEST_REVISION}.\n", "")


def test_a_terminal_shows_a_progress_bar(empty_dsn: str) -> None:
    terminal, theirs = pty.openpty()
    variables = environment({DATABASE_URL: empty_dsn}) | {"TERM": "xterm", "COLUMNS": "300"}
    program = [sys.executable, "-m", "plankeeper", "migrate"]
    with subprocess.Popen(program, stdout=theirs, stderr=theirs, env=variables) as running:
        os.close(theirs)
        shown = read_terminal(terminal)
    assert running.returncode == 0, shown
    # On a fast machine, or a busy one, nobody sees some of the revisions.
    assert re.search(r"━.*(Migrating the schema|00\d\d [A-Z])", shown), shown
    assert "0:00:" in shown


def test_a_lock_that_stays_held_is_reported_and_the_next_run_continues(
    dsn: str, next_migrations: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "RETRY_PERIOD", 0.0)
    with reading_transaction(dsn):
        done = run_plankeeper("migrate", **{DATABASE_URL: as_owner(dsn)})
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"Error: The migration stopped at {next_release.REVISION} Regions of participants")
    assert "run `plankeeper migrate` again" in done.stderr
    again = run_plankeeper("migrate", **{DATABASE_URL: as_owner(dsn)})
    assert again == (0, f"The schema is now {next_release.REVISION}.\n", "")


def test_commands_of_an_older_release_work_with_a_newer_compatible_schema(dsn: str) -> None:
    env = {DATABASE_URL: dsn}
    execute(dsn, "update alembic_version set version_num = '9998'")
    assert run_plankeeper("migrate", **env) == (
        0,
        f"The schema is 9998, which is newer than {schema.LATEST_REVISION}, but compatible with this Plankeeper.\n",
        "",
    )
    assert run_plankeeper("keys", "list", **env).returncode == 0
    line = f"ok    schema 9998, newer than {schema.LATEST_REVISION}, but compatible with this Plankeeper"
    assert line in run_plankeeper("doctor", **env).stdout.splitlines()

    execute(dsn, "update schema_compatibility set oldest_compatible = '9998'")
    for command in (["migrate"], ["keys", "list"], ["serve"]):
        rejected = run_plankeeper(*command, **env)
        assert rejected.returncode == 1, command
        # `serve` writes a log line, because its output is no terminal.
        reason = json.loads(rejected.stderr)["reason"] if command == ["serve"] else rejected.stderr
        assert reason.removeprefix("Error: ").startswith(
            f"The database's schema is 9998, but this Plankeeper supports no newer schema than"
            f" {schema.LATEST_REVISION}."
        ), command


def test_a_server_that_nobody_watches_logs_the_progress_of_its_migration(
    empty_dsn: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def work() -> None:
        async with Database(empty_dsn).open() as db:
            await migrate_with_progress(db, empty_dsn, progress_writer(for_people=False))

    monkeypatch.setattr(progress, "REPORT_INTERVAL", -1.0)
    with caplog.at_level("INFO", "plankeeper"):
        asyncio.run(work())
    steps_logged = [vars(each)["step"] for each in caplog.records if each.getMessage() == "migrating the schema"]
    assert any(each.startswith("00") for each in steps_logged), steps_logged
    assert capsys.readouterr().err == ""
