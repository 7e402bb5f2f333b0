"""Backups, taken and restored by the program as a user runs it."""

import asyncio
import os
import pty
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import asyncpg
import click
import httpx
import pytest
from alembic import command
from alembic.config import Config

from cli.test_files import read
from plankeeper.cli import pg_tools
from plankeeper.cli.demo import load_demo_data
from plankeeper.database import schema
from plankeeper.database.client import Database
from plankeeper.embedded_postgres import binaries
from plankeeper.embedded_postgres.cluster import Cluster
from plankeeper.import_export.registry import RESOURCES
from plankeeper.import_export.writer import JsonLinesWriter
from plankeeper.plan_managers.store import list_all
from plankeeper.settings import Settings
from support.folder import open_folder
from support.program import Serving, environment, plankeeper
from support.server import wait_until

URL = "PLANKEEPER_DATABASE_URL"


async def _exported(dsn: str) -> dict[str, str]:
    async with Database(dsn).open() as db, db.transaction(snapshot=True) as tx:
        return {
            f"{resource} of {each.name}": "".join(
                [JsonLinesWriter().row(record) async for record in RESOURCES[resource].export(tx, each.id)]
            )
            for each in await list_all(tx)
            for resource in RESOURCES
        }


def exported(dsn: str) -> dict[str, str]:
    """The export of every resource of every plan manager."""
    found = asyncio.run(_exported(dsn))
    assert len(found) == 2 * len(RESOURCES)
    assert all(found.values())
    return found


async def _tables(dsn: str) -> dict[str, Any]:
    connection = await asyncpg.connect(dsn)
    try:
        names = await connection.fetch("select tablename from pg_tables where schemaname = 'public' order by 1")
        rows = {name: await connection.fetch(f'select t::text from "{name}" t order by 1') for (name,) in names}  # noqa: S608
        rows["sequences"] = await connection.fetch("select sequencename, last_value from pg_sequences order by 1")
    finally:
        await connection.close()
    rows.pop("rate_limits", None)  # what is counted of a minute is nobody's data
    return rows


def tables(dsn: str) -> dict[str, Any]:
    """Every row of every table, and where the sequences stand."""
    return asyncio.run(_tables(dsn))


async def execute(dsn: str, *statements: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        for each in statements:
            await connection.execute(each)
    finally:
        await connection.close()


def new_database(cluster: Cluster, name: str) -> str:
    made = (f"drop database if exists {name} with (force)", f"create database {name} template template0")
    asyncio.run(execute(cluster.dsn, *made))
    return cluster.dsn.replace("/plankeeper?", f"/{name}?")


@pytest.fixture(scope="module")
def source(cluster: Cluster) -> str:
    """A database with the demonstration."""
    dsn = new_database(cluster, "backup_source")
    schema.migrate(dsn)

    async def demonstrate() -> None:
        async with Database(dsn).open() as db:
            await load_demo_data(db, Settings.read({URL: dsn}))

    asyncio.run(demonstrate())
    return dsn


@pytest.fixture(scope="module")
def dump(source: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup of it."""
    file = tmp_path_factory.mktemp("backup") / "plankeeper.dump"
    done = plankeeper("backup", str(file), **{URL: source})
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(rf"{file}: [\d.]+ MB, schema {schema.LATEST_REVISION}\n", done.stdout), done.stdout
    return file


@pytest.fixture
def target(cluster: Cluster) -> str:
    """A database with nothing in it."""
    return new_database(cluster, "backup_target")


@pytest.fixture
def data_dirs() -> Iterator[tuple[Path, Path]]:
    with open_folder() as one, open_folder() as two:
        yield one, two


def refused(done: subprocess.CompletedProcess[str]) -> str:
    """The sentence."""
    assert (done.returncode, done.stdout) == (1, ""), done
    assert "should not happen" not in done.stderr
    [sentence] = done.stderr.splitlines()
    return sentence.removeprefix("Error: ")


def test_what_an_embedded_server_holds_comes_back_and_its_key_works(
    data_dirs: tuple[Path, Path], tmp_path: Path
) -> None:
    (one, two), file = data_dirs, tmp_path / "embedded.dump"
    serving = Serving(one, "--demo")
    assert plankeeper("backup", str(file), PLANKEEPER_DATA_DIR=str(one)).returncode == 0
    assert serving.stop() == 0
    done = plankeeper("restore", str(file), PLANKEEPER_DATA_DIR=str(two))
    assert (done.returncode, done.stderr) == (0, "")
    with Cluster(one) as before:
        expected = exported(before.dsn)
    with Cluster(two) as after:
        assert exported(after.dsn) == expected
    again = Serving(two)
    with serving.client() as old:
        answer = again_with(again, old.headers["Authorization"], old.headers["X-Plan-Manager-Id"])
    assert answer == 400
    assert again.stop() == 0


def again_with(serving: Serving, authorization: str, plan_manager_id: str) -> int:
    """How many participants a key sees."""
    headers = {"Authorization": authorization, "X-Plan-Manager-Id": plan_manager_id}
    answer = httpx.get(f"{serving.url}/api/public/v1/participants", headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()["pagination"]["total"]


def test_every_row_comes_back_through_an_address(source: str, dump: Path, target: str) -> None:
    assert stat.S_IMODE(dump.stat().st_mode) == 0o600
    assert [each.name for each in dump.parent.iterdir()] == [dump.name]
    done = plankeeper("restore", str(dump), **{URL: target})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"Restored {dump}: the schema is {schema.LATEST_REVISION}.\n"
    assert tables(target) == tables(source)
    assert exported(target) == exported(source)


def test_a_database_with_data_is_left_alone(source: str, dump: Path) -> None:
    before = tables(source)
    sentence = refused(plankeeper("restore", str(dump), **{URL: source}))
    assert sentence.startswith("The database has data already. Restore into an empty one: name a new database in")
    assert tables(source) == before


def test_a_truncated_file_changes_nothing_and_the_whole_one_is_taken(
    source: str, dump: Path, target: str, tmp_path: Path
) -> None:
    schema.migrate(target)
    before, whole, part = tables(target), dump.read_bytes(), tmp_path / "part.dump"
    for length in (0, 1000, len(whole) // 3, len(whole) - 1):
        part.write_bytes(whole[:length])
        sentence = refused(plankeeper("restore", str(part), **{URL: target}))
        assert sentence.startswith(f"{part} cannot be restored: pg_restore failed: ")
        assert sentence.endswith(" Nothing was written.")
        assert tables(target) == before
    # A schema without data gives way to the backup's.
    assert plankeeper("restore", str(dump), **{URL: target}).returncode == 0
    assert tables(target) == tables(source)


def test_what_is_no_backup_of_plankeeper_is_refused(cluster: Cluster, target: str, tmp_path: Path) -> None:
    text, other = tmp_path / "text", tmp_path / "other.dump"
    text.write_text("create table participants ();")
    assert refused(plankeeper("restore", str(text), **{URL: target})).startswith(f"{text} cannot be restored: ")
    pg_dump(new_database(cluster, "backup_other"), other)
    assert refused(plankeeper("restore", str(other), **{URL: target})) == (
        f"{other} is no backup of Plankeeper. Nothing was written."
    )
    assert tables(target) == {"sequences": []}


def pg_dump(dsn: str, file: Path) -> None:
    program = binaries.find(None, None).folder / "pg_dump"
    subprocess.run([program, "--format=custom", f"--file={file}", f"--dbname={dsn}"], check=True)


def test_an_older_schema_is_brought_up_to_date_and_a_newer_one_refused(
    cluster: Cluster, target: str, tmp_path: Path
) -> None:
    older, newer = tmp_path / "older.dump", tmp_path / "newer.dump"
    dsn = new_database(cluster, "backup_older")
    _upgrade(dsn, "0003")
    # A backup before an upgrade is taken by either version.
    assert plankeeper("backup", str(older), **{URL: dsn}).stdout.endswith("schema 0003\n")
    assert plankeeper("restore", str(older), **{URL: target}).stdout == (
        f"Restored {older}: the schema is {schema.LATEST_REVISION}.\n"
    )
    assert "idempotency_records" in tables(target)
    # It is empty still, but its tables are no longer the backup's.
    assert f"{older} has the schema 0003, and the database has {schema.LATEST_REVISION} already" in refused(
        plankeeper("restore", str(older), **{URL: target})
    )
    asyncio.run(execute(dsn, "update alembic_version set version_num = '9999'"))
    pg_dump(dsn, newer)
    assert refused(plankeeper("restore", str(newer), **{URL: target})).startswith(
        f"{newer} has the schema 9999, of a newer Plankeeper"
    )


def _upgrade(dsn: str, version: str) -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(schema.__file__).with_name("migrations")))
    config.attributes["dsn"] = dsn
    command.upgrade(config, version)


def test_what_stands_in_the_way_is_said_and_nothing_is_left(
    source: str, target: str, dump: Path, tmp_path: Path
) -> None:
    own, there = {URL: source}, tmp_path / "there.dump"
    there.write_text("older")
    assert refused(plankeeper("backup", str(there), **own)) == (
        f"There is a {there} already. Choose another name, or replace it with --force."
    )
    absent = tmp_path / "absent" / "x.dump"
    assert refused(plankeeper("backup", str(absent), **own)) == (
        f"{absent} cannot be written: No such file or directory. Nothing was written."
    )
    assert refused(plankeeper("backup", "/dev/null", "--force", **own)) == (
        "/dev/null is no regular file, and will not be replaced."
    )
    assert refused(plankeeper("backup", str(tmp_path / "y"), **{URL: target})) == (
        "The database has no schema: there is nothing to back up."
    )
    assert refused(plankeeper("backup", str(tmp_path / "z"), PLANKEEPER_POSTGRES_BIN="/nowhere", **own)).endswith(
        "or newer in /nowhere. Set PLANKEEPER_POSTGRES_BIN to a folder that has one."
    )
    assert [each.name for each in tmp_path.iterdir()] == ["there.dump"]
    assert plankeeper("backup", str(there), "--force", **own).returncode == 0
    assert abs(there.stat().st_size - dump.stat().st_size) < 10_000
    assert [each.name for each in tmp_path.iterdir()] == ["there.dump"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if (
        os.geteuid()
        or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", folder], check=False).returncode
    ):
        pytest.skip("a small file system can be mounted by root alone")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_full_disk_is_told_and_nothing_is_left(source: str, small_disk: Path) -> None:
    file = small_disk / "plankeeper.dump"
    sentence = refused(plankeeper("backup", str(file), **{URL: source}))
    assert sentence.startswith("pg_dump failed: could not write to ")
    assert sentence.endswith(": No space left on device. Nothing was written.")
    assert list(small_disk.iterdir()) == []


PRETENDER = """\
#!/bin/sh
[ "$1" = --version ] && echo "pg_dump (PostgreSQL) 99.0" && exit
printf '%s\\n' "$@" "PGPASSWORD=$PGPASSWORD" > "$ARGUMENTS"
exec sleep 60
"""


def test_a_password_is_on_no_command_line_and_an_end_midway_leaves_nothing(source: str, tmp_path: Path) -> None:
    programs, backups, arguments = (tmp_path / each for each in ("programs", "backups", "arguments"))
    programs.mkdir()
    backups.mkdir()
    for name in ("pg_dump", "pg_restore"):
        (programs / name).write_text(PRETENDER)
        (programs / name).chmod(0o755)
    host = source.partition("?host=")[2].partition("&")[0]
    dsn = f"postgresql://postgres:s%40cret@/backup_source?host={host}&port=5432"
    settings = {URL: dsn, "PLANKEEPER_POSTGRES_BIN": str(programs), "ARGUMENTS": str(arguments)}
    program = [sys.executable, "-m", "plankeeper", "backup", str(backups / "x.dump")]
    running = subprocess.Popen(program, env=environment(settings), stderr=subprocess.PIPE, text=True)
    wait_until(lambda: arguments.exists() and "PGPASSWORD" in arguments.read_text(), 20)
    assert [each.suffix for each in backups.iterdir()] == [".part"]
    running.send_signal(signal.SIGTERM)
    assert running.communicate(timeout=20)[1] == ""
    assert running.returncode == 143
    assert list(backups.iterdir()) == []
    given = arguments.read_text().splitlines()
    assert given[-1] == "PGPASSWORD=s@cret"
    assert f"--dbname=postgresql://postgres@/backup_source?host={quote(host, safe='')}&port=5432" in given
    assert not any("cret" in each for each in given[:-1])


@pytest.mark.parametrize("name,done", [("backup", "written"), ("restore", "read")])
def test_a_terminal_shows_how_far_it_is(
    source: str, target: str, dump: Path, tmp_path: Path, name: str, done: str
) -> None:
    file, dsn = (tmp_path / "x.dump", source) if name == "backup" else (dump, target)
    terminal, theirs = pty.openpty()
    program = [sys.executable, "-m", "plankeeper", name, str(file)]
    variables = environment({URL: dsn}) | {"TERM": "xterm", "COLUMNS": "200"}
    with subprocess.Popen(program, stdout=theirs, stderr=theirs, env=variables) as running:
        os.close(theirs)
        shown = read(terminal)
    assert running.returncode == 0, shown
    assert re.search(rf"[\d.]+ (MB|bytes) {done}.*0:00:", shown), shown


@pytest.mark.parametrize(
    "server,majors,chosen",
    [
        (15, [15, 18], 15),
        (15, [18], None),
        (16, [15, 18], None),
        (17, [18], 18),
        (18, [17, 18, 19], 18),
        (19, [18], None),
    ],
)
def test_the_nearest_programs_that_the_server_understands_are_chosen(
    monkeypatch: pytest.MonkeyPatch, server: int, majors: list[int], chosen: int | None
) -> None:
    monkeypatch.setattr(pg_tools, "_folders_on_path", lambda: [Path(str(each)) for each in majors])
    monkeypatch.setattr(pg_tools, "_bundled_folders", list)
    monkeypatch.setattr(pg_tools, "_major_version", lambda folder: int(folder.name))
    found = Settings.read({URL: "postgresql://somewhere/db"})
    if chosen is None:
        with pytest.raises(click.ClickException, match=f"no pg_dump of version {server} or newer"):
            pg_tools.find_tools(found, server)
    else:
        assert pg_tools.find_tools(found, server).folder == Path(str(chosen))
