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
from uuid import UUID

import asyncpg
import click
import pytest

from plankeeper.cli import pg_tools
from plankeeper.cli.backup import _restore_progress
from plankeeper.cli.demo import load_demo_data
from plankeeper.cli.sample_data import dataset
from plankeeper.core.settings import Settings
from plankeeper.database import schema
from plankeeper.database.client import Database
from plankeeper.server.embedded_postgres import binaries
from support import next_release
from support.cluster import SharedCluster, as_owner, execute
from support.exports import export_all
from support.program import Done, environment, run_plankeeper
from support.server import wait_until
from support.terminal import read_terminal

DATABASE_URL = "PLANKEEPER_DATABASE_URL"


async def _read_tables(dsn: str) -> dict[str, Any]:
    connection = await asyncpg.connect(dsn)
    try:
        names = await connection.fetch("select tablename from pg_tables where schemaname = 'public' order by 1")
        rows = {name: await connection.fetch(f'select t::text from "{name}" t order by 1') for (name,) in names}
        rows["sequences"] = await connection.fetch("select sequencename, last_value from pg_sequences order by 1")
    finally:
        await connection.close()
    rows.pop("rate_limits", None)  # what is counted of a minute is nobody's data
    return rows


def without_last_positions(tables: dict[str, Any]) -> dict[str, Any]:
    """The tables without the last event of each plan manager in the order of events, which a restore moves."""
    places = [str(row[0]).strip("()").split(",") for row in tables["event_order"]]
    last: dict[str, int] = {}
    for plan_manager_id, position, *_ in places:
        last[plan_manager_id] = max(int(position), last.get(plan_manager_id, 0))
    return tables | {"event_order": [each for each in places if int(each[1]) != last[each[0]]]}


def read_tables(dsn: str) -> dict[str, Any]:
    """Every row of every table, and the values of the sequences."""
    return asyncio.run(_read_tables(dsn))


@pytest.fixture(scope="module")
def source_dsn(cluster: SharedCluster) -> str:
    """A database with some of the sample data: two plan managers with records of every resource."""
    dsn = cluster.new_database()
    few = {"participants": 40, "providers": 10, "invoices": 120, "sessions": 20}
    scales = {each: scale._replace(**few) for each, scale in dataset._SCALES.items()}  # noqa: SLF001

    async def fill_sample_data() -> None:
        async with Database(dsn).open() as db:
            await load_demo_data(db, Settings.read({DATABASE_URL: dsn}))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dataset, "_SCALES", scales)
        asyncio.run(fill_sample_data())
    return dsn


@pytest.fixture(scope="module")
def backup_file(source_dsn: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup of it."""
    file = tmp_path_factory.mktemp("backup") / "plankeeper.dump"
    done = run_plankeeper("backup", str(file), **{DATABASE_URL: source_dsn})
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(rf"{file}: [\d.]+ MB, schema {schema.LATEST_REVISION}\n", done.stdout), done.stdout
    return file


@pytest.fixture
def target_dsn(cluster: SharedCluster) -> str:
    """A database with nothing in it."""
    return cluster.new_database(migrated=False)


def read_count(dsn: str, statement: str) -> int:
    async def read() -> int:
        connection = await asyncpg.connect(dsn)
        try:
            return await connection.fetchval(statement)
        finally:
            await connection.close()

    return asyncio.run(read())


def error_message(done: Done) -> str:
    """The sentence."""
    assert (done.returncode, done.stdout) == (1, ""), done
    assert "--traceback" not in done.stderr
    [sentence] = done.stderr.splitlines()
    return sentence.removeprefix("Error: ")


def test_every_row_is_restored_through_a_database_url(source_dsn: str, backup_file: Path, target_dsn: str) -> None:
    assert stat.S_IMODE(backup_file.stat().st_mode) == 0o600
    assert [each.name for each in backup_file.parent.iterdir()] == [backup_file.name]
    done = run_plankeeper("restore", str(backup_file), **{DATABASE_URL: target_dsn})
    assert (done.returncode, done.stderr) == (0, "")
    restored = f"Restored {backup_file}: the schema is {schema.LATEST_REVISION}.\nIt contains no secrets.\n"
    assert done.stdout.startswith(restored)
    tables, expected = (without_last_positions(read_tables(dsn)) for dsn in (target_dsn, source_dsn))
    assert len(tables["restores"]) == len(tables["plan_managers"])
    assert tables == expected | {"restores": tables["restores"]}
    assert export_all(target_dsn) == export_all(source_dsn)


def test_a_restore_ends_sessions_forgets_devices_and_deletes_links_and_mails(
    tmp_path: Path, cluster: SharedCluster
) -> None:
    """The person of a session might have been removed since the backup, and a device might have been forgotten."""
    insert_session = """
        insert into account_sessions (token_hash, account_id, created_at, last_seen_at, expires_at, address, user_agent,
            two_factor_pending)
        select sha256('token'), id, now(), now(), now() + interval '12 hours', '', '', false from accounts
    """
    source, target = cluster.new_database(), cluster.new_database(migrated=False)
    run_plankeeper("plan-managers", "create", "--name", "A", "--id", str(UUID(int=7)), **{DATABASE_URL: source})
    arguments = ["--email", "a@example.com", "--name", "A", "--plan-manager", str(UUID(int=7)), "--role", "owner"]
    run_plankeeper(
        "accounts", "create", *arguments, "--password-stdin", stdin=b"nine violet umbrellas", **{DATABASE_URL: source}
    )
    insert_device = """
        insert into account_devices (account_id, token_hash, created_at, last_used_at)
        select id, sha256('device'), now(), now() from accounts
    """
    insert_link = """
        insert into account_password_resets select id, sha256('link'), now() + interval '30 minutes' from accounts
    """
    insert_mail = """
        insert into outgoing_mails (content, created_at, next_attempt_at, expires_at)
        values ('{}', now(), now(), now() + interval '3 days')
    """
    execute(source, insert_session, insert_device, insert_link, insert_mail)
    ended = ("account_sessions", "account_devices", "account_password_resets", "outgoing_mails")
    assert [len(read_tables(source)[table]) for table in ended] == [1, 1, 1, 1]
    file = tmp_path / "with-session.dump"
    assert run_plankeeper("backup", str(file), **{DATABASE_URL: source}).returncode == 0
    assert run_plankeeper("restore", str(file), **{DATABASE_URL: target}).returncode == 0
    expected = read_tables(source) | {table: [] for table in ended}
    restores = read_tables(target)["restores"]
    assert len(restores) == 1
    assert read_tables(target) == expected | {"restores": restores}


def test_another_kind_of_recovery_ends_sessions_and_holds_claims_and_payments_too(cluster: SharedCluster) -> None:
    dsn = cluster.new_database()
    run_plankeeper("plan-managers", "create", "--name", "A", "--id", str(UUID(int=7)), **{DATABASE_URL: dsn})
    insert_mail = """
        insert into outgoing_mails (content, created_at, next_attempt_at, expires_at) values ('{}', now(), now(), now())
    """
    insert_invoice = f"""
        insert into invoices (plan_manager_id, id, claim_status, approval_status, created_at, is_deleted, wont_claim,
            is_reimbursement, received_at, waiting_line_status)
        values ('{UUID(int=7)}', '{UUID(int=8)}', 'new', 'pending', now(), false, false, false, now(), 'new')
    """
    insert_link = f"""
        insert into approval_links (plan_manager_id, invoice_id, id, participant_id, content_hash, created_at, sent_at,
            token_hash)
        values ('{UUID(int=7)}', '{UUID(int=8)}', '{UUID(int=9)}', '{UUID(int=10)}', '', now(), now(), sha256('link'))
    """
    execute(dsn, insert_mail, insert_invoice, insert_link)
    urls = {DATABASE_URL: dsn, "PLANKEEPER_OWNER_DATABASE_URL": as_owner(dsn)}
    done = run_plankeeper("after-restore", **urls)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Everybody has to sign in again." in done.stdout
    assert "Claims and payments wait until an owner" in done.stdout
    open_links = "select count(*) from approval_links where revoked_at is null"
    assert (read_count(dsn, "select count(*) from approval_links"), read_count(dsn, open_links)) == (1, 0)
    tables = read_tables(dsn)
    assert (len(tables["outgoing_mails"]), len(tables["restores"])) == (0, 1)
    execute(dsn, "update restores set confirmed_at = now()")
    assert run_plankeeper("after-restore", **urls).returncode == 0
    assert len(read_tables(dsn)["restores"]) == 2


def test_a_recovery_disables_webhook_endpoints_and_uses_no_position_again(cluster: SharedCluster) -> None:
    """An endpoint might have been deleted since the backup, and its receivers know later positions."""
    dsn, manager, active, paused = cluster.new_database(), *(str(UUID(int=number)) for number in (7, 8, 9))
    run_plankeeper("plan-managers", "create", "--name", "A", "--id", manager, **{DATABASE_URL: dsn})
    insert_endpoints = f"""
        insert into webhook_endpoints (plan_manager_id, id, url, event_types, payload, active, created_at, secret,
            last_position)
        select '{manager}', id::uuid, 'https://example.com', '{{*}}', 'thin', id = '{active}', now(), '', 2
        from unnest(array['{active}', '{paused}']) id
    """
    insert_deliveries = f"""
        insert into webhook_deliveries (plan_manager_id, id, webhook_endpoint_id, event_id, event_type, status,
            next_attempt_at, created_at)
        select '{manager}', gen_random_uuid(), '{active}', gen_random_uuid(), 'note_type.created', status,
            case status when 'pending' then now() end, now()
        from unnest(array['pending', 'succeeded']) status
    """
    insert_positions = f"""
        insert into event_order (plan_manager_id, position, event_id, type, notify)
        select '{manager}', position, gen_random_uuid(), 1, true from generate_series(1, 2) position
    """
    execute(dsn, "delete from event_order", insert_endpoints, insert_deliveries, insert_positions)
    done = run_plankeeper("after-restore", **{DATABASE_URL: dsn, "PLANKEEPER_OWNER_DATABASE_URL": as_owner(dsn)})
    assert (done.returncode, done.stderr) == (0, "")
    assert "Webhook endpoints are disabled." in done.stdout
    is_disabled = "not active and starts_with(disabled_reason, 'the database was restored from a backup')"
    for table, condition, count in (
        ("webhook_endpoints", f"id = '{active}' and {is_disabled}", 1),
        ("webhook_endpoints", f"id = '{paused}' and not active and disabled_reason is null", 1),
        ("webhook_deliveries", "status = 'cancelled' and next_attempt_at is null", 1),
        ("webhook_deliveries", "status = 'succeeded'", 1),
        ("event_order", "position in (1, 1000002)", 2),
    ):
        assert read_count(dsn, f"select count(*) from {table} where {condition}") == count, condition


def test_a_database_with_data_is_not_overwritten(source_dsn: str, backup_file: Path) -> None:
    before = read_tables(source_dsn)
    sentence = error_message(run_plankeeper("restore", str(backup_file), **{DATABASE_URL: source_dsn}))
    assert sentence.startswith("The database already contains data. Restore into an empty one: name a new database in")
    assert read_tables(source_dsn) == before


def test_a_truncated_file_changes_nothing_and_the_complete_one_is_restored(
    source_dsn: str, backup_file: Path, target_dsn: str, tmp_path: Path
) -> None:
    schema.migrate(target_dsn)
    before, whole, part = read_tables(target_dsn), backup_file.read_bytes(), tmp_path / "part.dump"
    for length in (0, 1000, len(whole) // 3, len(whole) - 1):
        part.write_bytes(whole[:length])
        sentence = error_message(run_plankeeper("restore", str(part), **{DATABASE_URL: target_dsn}))
        assert sentence.startswith(f"Cannot restore {part}: pg_restore failed: ")
        assert sentence.endswith(" Nothing was written.")
        assert read_tables(target_dsn) == before
    # A schema without data gives way to the backup's.
    assert run_plankeeper("restore", str(backup_file), **{DATABASE_URL: target_dsn}).returncode == 0
    tables, expected = (without_last_positions(read_tables(dsn)) for dsn in (target_dsn, source_dsn))
    assert tables | {"restores": []} == expected


def test_a_file_that_is_no_backup_is_rejected(cluster: SharedCluster, target_dsn: str, tmp_path: Path) -> None:
    text, other = tmp_path / "text", tmp_path / "other.dump"
    text.write_text("create table participants ();")
    assert error_message(run_plankeeper("restore", str(text), **{DATABASE_URL: target_dsn})).startswith(
        f"Cannot restore {text}: "
    )
    pg_dump(cluster.new_database(migrated=False), other)
    assert error_message(run_plankeeper("restore", str(other), **{DATABASE_URL: target_dsn})) == (
        f"{other} is not a Plankeeper backup. Nothing was written."
    )
    assert read_tables(target_dsn) == {"sequences": []}


def pg_dump(dsn: str, file: Path) -> None:
    program = binaries.find(None, None).folder / "pg_dump"
    subprocess.run([program, "--format=custom", f"--file={file}", f"--dbname={dsn}"], check=True)


def test_an_older_schema_is_migrated_and_a_newer_one_is_rejected(
    cluster: SharedCluster, target_dsn: str, tmp_path: Path
) -> None:
    older, newer = tmp_path / "older.dump", tmp_path / "newer.dump"
    dsn, old_revision = as_owner(cluster.new_database()), schema.LATEST_REVISION
    with pytest.MonkeyPatch.context() as patch:
        next_release.use_migrations(patch, tmp_path)
        # A backup before an upgrade is taken by either version.
        done = run_plankeeper("backup", str(older), **{DATABASE_URL: dsn})
        assert done.stdout.endswith(f"schema {old_revision}\n"), done.stderr
        target = {DATABASE_URL: target_dsn}
        assert run_plankeeper("restore", str(older), **target).stdout == (
            f"Restored {older}: the schema is {next_release.REVISION}.\nIt contains no secrets.\n"
        )
        assert "regions" in read_tables(target_dsn)
        # It is empty still, but its tables are no longer the backup's.
        assert (
            f"{older} has schema {old_revision}, but the database already has schema {next_release.REVISION}"
            in run_plankeeper("restore", str(older), **target).stderr
        )
    execute(dsn, "update alembic_version set version_num = '9999'")
    pg_dump(dsn, newer)
    assert error_message(run_plankeeper("restore", str(newer), **target)).startswith(
        f"{newer} has schema 9999, but this Plankeeper supports no newer schema than"
    )


def test_obstacles_are_reported_and_nothing_is_left_behind(
    source_dsn: str, target_dsn: str, backup_file: Path, tmp_path: Path
) -> None:
    own, there = {DATABASE_URL: source_dsn}, tmp_path / "there.dump"
    there.write_text("older")
    assert error_message(run_plankeeper("backup", str(there), **own)) == (
        f"{there} already exists. Choose another name, or overwrite it with --force."
    )
    absent = tmp_path / "absent" / "x.dump"
    assert error_message(run_plankeeper("backup", str(absent), **own)) == (
        f"Cannot write {absent}: No such file or directory. Nothing was written."
    )
    assert error_message(run_plankeeper("backup", "/dev/null", "--force", **own)) == (
        "/dev/null is not a regular file, so --force does not overwrite it. Choose another name."
    )
    assert error_message(run_plankeeper("backup", str(tmp_path / "y"), **{DATABASE_URL: target_dsn})) == (
        "The database has no schema, so there is nothing to back up."
    )
    assert error_message(
        run_plankeeper("backup", str(tmp_path / "z"), PLANKEEPER_POSTGRES_BIN="/nowhere", **own)
    ).endswith("or newer in /nowhere. Set PLANKEEPER_POSTGRES_BIN to a folder that has one.")
    assert [each.name for each in tmp_path.iterdir()] == ["there.dump"]
    assert run_plankeeper("backup", str(there), "--force", **own).returncode == 0
    assert abs(there.stat().st_size - backup_file.stat().st_size) < 10_000
    assert [each.name for each in tmp_path.iterdir()] == ["there.dump"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB, less than a backup needs."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if (
        os.geteuid()
        or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], check=False).returncode
    ):
        pytest.skip("a small file system can be mounted by root alone")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_full_disk_is_reported_and_nothing_is_left_behind(source_dsn: str, small_disk: Path) -> None:
    file = small_disk / "plankeeper.dump"
    sentence = error_message(run_plankeeper("backup", str(file), **{DATABASE_URL: source_dsn}))
    assert sentence.startswith("pg_dump failed: could not write to ")
    assert sentence.endswith(": No space left on device. Nothing was written.")
    assert list(small_disk.iterdir()) == []


FAKE_PG_DUMP = """\
#!/bin/sh
[ "$1" = --version ] && echo "pg_dump (PostgreSQL) 99.0" && exit
printf '%s\\n' "$@" "PGPASSWORD=$PGPASSWORD" > "$ARGUMENTS"
exec sleep 60
"""


def test_a_password_is_on_no_command_line_and_an_interrupted_backup_leaves_nothing(
    source_dsn: str, tmp_path: Path
) -> None:
    programs, backups, arguments = (tmp_path / each for each in ("programs", "backups", "arguments"))
    programs.mkdir()
    backups.mkdir()
    for name in ("pg_dump", "pg_restore"):
        (programs / name).write_text(FAKE_PG_DUMP)
        (programs / name).chmod(0o755)
    host = source_dsn.partition("?host=")[2].partition("&")[0]
    name = source_dsn.removeprefix("postgresql:///").partition("?")[0]
    dsn = f"postgresql://postgres:s%40cret@/{name}?host={host}&port=5432"
    settings = {DATABASE_URL: dsn, "PLANKEEPER_POSTGRES_BIN": str(programs), "ARGUMENTS": str(arguments)}
    program = [sys.executable, "-m", "plankeeper", "backup", str(backups / "x.dump")]
    running = subprocess.Popen(program, env=environment(settings), stderr=subprocess.PIPE, text=True)
    wait_until(lambda: arguments.exists() and "PGPASSWORD" in arguments.read_text())
    assert [each.suffix for each in backups.iterdir()] == [".part"]
    running.send_signal(signal.SIGTERM)
    assert running.communicate(timeout=20)[1] == ""
    assert running.returncode == 143
    assert list(backups.iterdir()) == []
    given = arguments.read_text().splitlines()
    assert given[-1] == "PGPASSWORD=s@cret"
    assert f"--dbname=postgresql://postgres@/{name}?host={quote(host, safe='')}&port=5432" in given
    assert not any("cret" in each for each in given[:-1])


@pytest.mark.parametrize("name,done", [("backup", "written"), ("restore", "read")])
def test_a_terminal_shows_the_progress(
    source_dsn: str, target_dsn: str, backup_file: Path, tmp_path: Path, name: str, done: str
) -> None:
    file, dsn = (tmp_path / "x.dump", source_dsn) if name == "backup" else (backup_file, target_dsn)
    terminal, theirs = pty.openpty()
    program = [sys.executable, "-m", "plankeeper", name, str(file)]
    variables = environment({DATABASE_URL: dsn}) | {"TERM": "xterm", "COLUMNS": "200"}
    with subprocess.Popen(program, stdout=theirs, stderr=theirs, env=variables) as running:
        os.close(theirs)
        shown = read_terminal(terminal)
    assert running.returncode == 0, shown
    assert re.search(rf"[\d.]+ (MB|bytes) {done}.*0:00:", shown), shown
    assert ("collecting statistics" in shown) == (name == "restore")


def test_the_progress_of_a_restore_names_what_follows_the_data(tmp_path: Path) -> None:
    file = tmp_path / "x.dump"
    file.write_bytes(bytes(5000))
    with file.open("rb") as content:
        os.lseek(content.fileno(), 4096, os.SEEK_SET)
        assert _restore_progress(content) == ("4,096 bytes read", 4096)
        os.lseek(content.fileno(), 5000, os.SEEK_SET)
        assert _restore_progress(content) == ("5,000 bytes read, creating indexes", 5000)


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
def test_the_closest_compatible_programs_are_chosen(
    monkeypatch: pytest.MonkeyPatch, server: int, majors: list[int], chosen: int | None
) -> None:
    monkeypatch.setattr(pg_tools, "_folders_on_path", lambda: [Path(str(each)) for each in majors])
    monkeypatch.setattr(pg_tools, "_bundled_folders", list)
    monkeypatch.setattr(pg_tools, "_major_version", lambda folder: int(folder.name))
    found = Settings.read({DATABASE_URL: "postgresql://somewhere/db"})
    if chosen is None:
        with pytest.raises(click.ClickException, match=f"no pg_dump of version {server}"):
            pg_tools.find_tools(found, server)
    else:
        assert pg_tools.find_tools(found, server).folder == Path(str(chosen))
