"""The embedded cluster with real servers: started, shared, killed, taken over, and closed to other users."""

import contextlib
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any, cast

import asyncpg
import pytest

from plankeeper.server.embedded_postgres import binaries, postmaster
from plankeeper.server.embedded_postgres.cluster import Cluster, ClusterError
from support.server import wait_until

ROOT = os.geteuid() == 0
SOURCES = str(Path(binaries.__file__).parents[3])
CREATE_TABLE = "drop table if exists kept; create table kept (n int); insert into kept values (7)"
PSQL = binaries.find(None, None).folder / "psql"

# Ensures and says so, once to begin with and once for each line it gets; stops at the end of its input.
PROGRAM = """
import sys
from pathlib import Path
from plankeeper.server.embedded_postgres.cluster import Cluster
with Cluster(Path(sys.argv[1])) as cluster:
    print(cluster.owner_dsn, flush=True)
    for line in sys.stdin:
        print(cluster.ensure(), cluster.owner_dsn, flush=True)
"""

needs_root = pytest.mark.skipif(not ROOT, reason="changing to another system user takes root")
needs_death_signal = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a parent-death signal")


class Program:
    """Another program on the same data folder."""

    def __init__(self, data_dir: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(data_dir)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": SOURCES},
            text=True,
        )

    def read_line(self) -> str:
        assert self.process.stdout
        return self.process.stdout.readline().strip()

    def ensure(self) -> str:
        assert self.process.stdin
        self.process.stdin.write("again\n")
        self.process.stdin.flush()
        return self.read_line()

    def finish(self) -> None:
        self.process.communicate(timeout=60)

    def kill(self) -> None:
        self.process.kill()
        self.finish()


@pytest.fixture
def fresh_dir(home: Path) -> Iterator[Path]:
    """A data folder that is not there yet."""
    folder = home / "data"
    yield folder
    postmaster.shut_down_leftovers(Cluster(folder).location, 30)


@pytest.fixture(scope="module")
def template_dir() -> Iterator[Path]:
    """A data folder with a stopped cluster: it takes most of a second to make one, and little to start it."""
    with tempfile.TemporaryDirectory(prefix="plankeeper-test-") as folder:
        Path(folder).chmod(0o711)
        Cluster(Path(folder) / "data").__enter__().stop()
        yield Path(folder) / "data"


@pytest.fixture
def data_dir(template_dir: Path) -> Iterator[Path]:
    """The one that the tests use in turn, whatever they do to its server."""
    yield template_dir
    postmaster.shut_down_leftovers(template_dir / "postgres", 30)


@pytest.fixture
def copied_dir(fresh_dir: Path, template_dir: Path) -> Path:
    """A copy for a test that does something to the folder."""
    subprocess.run(["cp", "-a", template_dir, fresh_dir], check=True)
    return fresh_dir


@pytest.fixture
def start() -> Iterator[Callable[[Path], Program]]:
    programs: list[Program] = []

    def start(data_dir: Path) -> Program:
        programs.append(Program(data_dir))
        return programs[-1]

    yield start
    for program in programs:
        if program.process.poll() is None:
            program.finish()


@pytest.fixture
def unrelated_process() -> Iterator[subprocess.Popen[bytes]]:
    """A process that is no PostgreSQL."""
    process = subprocess.Popen(["/bin/sleep", "60"])
    yield process
    process.kill()
    process.wait()


def sql(dsn: str, statement: str) -> str:
    done = subprocess.run([PSQL, "-XAtqc", statement, dsn], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def server_pid(cluster: Cluster) -> int:
    record = postmaster.read_pid_file(cluster.location)
    assert record
    return record.pid


def socket_dir(cluster: Cluster) -> Path:
    return Path(cluster.owner_dsn.partition("host=")[2].partition("&")[0])


def child_pids(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@contextlib.contextmanager
def file_contents(file: Path, text: str) -> Generator[None, None, None]:
    before = file.read_text()
    file.write_text(text)
    yield
    file.write_text(before)


def assert_took_less_than(seconds: float, began: float) -> None:
    """In the long form alone, which has the machine for itself."""
    assert os.environ.get("PLANKEEPER_SOAK") != "1" or time.monotonic() - began < seconds


def test_a_new_data_folder_gets_a_database_that_persists(fresh_dir: Path) -> None:
    began = time.monotonic()
    with Cluster(fresh_dir) as cluster:
        assert_took_less_than(5, began)
        sql(cluster.owner_dsn, CREATE_TABLE)
        expected = {
            "listen_addresses": "",
            "unix_socket_permissions": "0700",
            "fsync": "on",
            "full_page_writes": "on",
            "synchronous_commit": "on",
            "data_checksums": "on",
            "max_connections": "100",
            "TimeZone": "UTC",
            "server_encoding": "UTF8",
            "lc_messages": "C",
        }
        assert {name: sql(cluster.owner_dsn, f"show {name}") for name in expected} == expected
        assert cluster.note is None
        assert cluster.location == fresh_dir / "postgres"
    assert fresh_dir.stat().st_mode & 0o007 == 0
    assert (fresh_dir / "postgres.log").stat().st_mode & 0o077 == 0

    began = time.monotonic()
    with Cluster(fresh_dir) as cluster:
        assert_took_less_than(1, began)
        assert sql(cluster.owner_dsn, "select n from kept") == "7"


async def test_the_dsn_works_with_asyncpg(data_dir: Path) -> None:
    with Cluster(data_dir) as cluster:
        connection = await cast("Any", asyncpg).connect(cluster.owner_dsn)
        assert await connection.fetchval("select current_database()") == "plankeeper"
        await connection.close()


def test_ensure_is_fast_when_the_server_is_running(data_dir: Path, start: Callable[[Path], Program]) -> None:
    with Cluster(data_dir) as owner:
        sharer = Cluster(data_dir)
        for cluster in (owner, sharer):
            began = time.process_time()
            assert not any(cluster.ensure() for _ in range(100))
            assert time.process_time() - began < 0.5


def test_a_second_program_shares_the_server_and_does_not_stop_it(data_dir: Path) -> None:
    with Cluster(data_dir) as owner:
        server = server_pid(owner)
        with Cluster(data_dir) as other:
            assert other.owner_dsn == owner.owner_dsn
        assert server_pid(owner) == server
        assert sql(owner.owner_dsn, "select 1") == "1"
        assert owner.ensure() is False


def test_programs_starting_concurrently_on_a_new_folder_share_one_server(
    fresh_dir: Path, start: Callable[[Path], Program]
) -> None:
    programs = [start(fresh_dir) for _ in range(3)]
    addresses = {program.read_line() for program in programs}
    assert [sql(address, "select 1") for address in addresses] == ["1"]


@pytest.mark.parametrize("how", ["finish", "kill"])
def test_another_program_takes_over_when_the_owner_exits(
    data_dir: Path, start: Callable[[Path], Program], how: str
) -> None:
    owner = start(data_dir)
    address = owner.read_line()
    other = Cluster(data_dir)
    with pytest.raises(RuntimeError, match="call ensure"):
        _ = other.owner_dsn
    assert other.ensure() is False
    sql(address, CREATE_TABLE)
    getattr(owner, how)()
    with other:
        assert other.owner_dsn == address
        assert sql(address, "select n from kept") == "7"
        assert other.ensure() is False


@pytest.mark.parametrize("victims", ["postmaster", "every process"])
def test_a_killed_server_is_restarted_without_losing_a_row(data_dir: Path, victims: str) -> None:
    with Cluster(data_dir) as cluster:
        address = cluster.owner_dsn
        sql(address, CREATE_TABLE)
        for _ in range(19):
            sql(address, "insert into kept values (7)")
        server = server_pid(cluster)
        busy = subprocess.Popen([PSQL, "-Xqc", "select pg_sleep(3)", address], stderr=subprocess.DEVNULL)
        wait_until(lambda: sql(address, "select count(*) from pg_stat_activity where wait_event = 'PgSleep'") == "1")
        for child in child_pids(server) if victims == "every process" else []:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        os.kill(server, signal.SIGKILL)
        wait_until(cluster.ensure)
        busy.wait()
        assert server_pid(cluster) != server
        assert cluster.owner_dsn == address
        assert sql(address, "select count(*) from kept") == "20"


@needs_death_signal
def test_the_server_stops_with_a_killed_program_and_restarts(data_dir: Path, start: Callable[[Path], Program]) -> None:
    program = start(data_dir)
    address = program.read_line()
    sql(address, CREATE_TABLE)
    server = server_pid(Cluster(data_dir))
    program.kill()
    wait_until(lambda: not postmaster.is_running_in(server, data_dir / "postgres"))
    with Cluster(data_dir) as cluster:
        assert cluster.owner_dsn == address
        assert sql(address, "select n from kept") == "7"


def test_a_program_killed_during_initdb_leaves_no_partial_cluster(
    fresh_dir: Path, start: Callable[[Path], Program]
) -> None:
    program = start(fresh_dir)
    wait_until((fresh_dir / "postgres.init" / "base").exists)
    program.kill()
    assert not (fresh_dir / "postgres").exists()
    with Cluster(fresh_dir) as cluster:
        assert sql(cluster.owner_dsn, "select 1") == "1"
    assert not (fresh_dir / "postgres.init").exists()


def test_a_stale_pid_file_naming_another_process_is_detected(
    data_dir: Path, start: Callable[[Path], Program], unrelated_process: subprocess.Popen[bytes]
) -> None:
    program = start(data_dir)
    address = program.read_line()
    cluster = Cluster(data_dir)
    cluster.ensure()
    server, sockets = server_pid(cluster), socket_dir(cluster)
    crowd = [server, *child_pids(server)]
    program.process.send_signal(signal.SIGSTOP)
    for pid in crowd:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    program.kill()
    for file in (data_dir / "postgres" / "postmaster.pid", sockets / ".s.PGSQL.5432.lock"):
        file.write_text(file.read_text().replace(str(server), str(unrelated_process.pid), 1))
    with cluster:
        assert cluster.owner_dsn == address
        assert sql(address, "select 1") == "1"
    assert unrelated_process.poll() is None


def test_an_empty_pid_file_is_detected(data_dir: Path) -> None:
    (data_dir / "postgres" / "postmaster.pid").touch()
    with Cluster(data_dir) as cluster:
        assert sql(cluster.owner_dsn, "select 1") == "1"


def test_another_major_version_is_rejected_with_instructions(data_dir: Path) -> None:
    refusal = pytest.raises(ClusterError, match=r"created by PostgreSQL 16,.*version 18.*pg_dump.*pg_restore")
    with file_contents(data_dir / "postgres" / "PG_VERSION", "16\n"), refusal:
        Cluster(data_dir).ensure()


def test_a_failed_start_reports_the_reason_and_releases_the_lock(data_dir: Path) -> None:
    with file_contents(data_dir / "postgres" / "postgresql.conf", "shared_buffers = nonsense\n"):
        for cluster in (Cluster(data_dir), Cluster(data_dir)):
            with pytest.raises(ClusterError, match=r"postgres\.log: FATAL: .*postgresql\.conf"):
                cluster.ensure()


def test_a_folder_without_a_database_is_not_overwritten(fresh_dir: Path) -> None:
    fresh_dir.mkdir(mode=0o711)
    (fresh_dir / "postgres").symlink_to(fresh_dir / "unmounted")
    with pytest.raises(ClusterError, match=r"no database.*unmounted"):
        Cluster(fresh_dir).ensure()


def test_a_folder_without_postgresql_programs_is_named(fresh_dir: Path, tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match=f"{tmp_path}/postgres.*PLANKEEPER_POSTGRES_BIN"):
        Cluster(fresh_dir, bin_dir=tmp_path).ensure()


def test_a_recreated_data_folder_gets_a_new_cluster(copied_dir: Path, start: Callable[[Path], Program]) -> None:
    program = start(copied_dir)
    old = program.read_line()
    sql(old, CREATE_TABLE)
    old_server = server_pid(Cluster(copied_dir))
    shutil.rmtree(copied_dir)
    with Cluster(copied_dir) as cluster:
        assert cluster.owner_dsn != old
        assert sql(cluster.owner_dsn, "select to_regclass('kept') is null") == "t"
        assert program.ensure() == f"False {cluster.owner_dsn}"
        wait_until(lambda: not Path(f"/proc/{old_server}").exists())
        assert sql(cluster.owner_dsn, "select 1") == "1"


def test_a_terminal_interrupt_does_not_reach_the_server(data_dir: Path) -> None:
    with Cluster(data_dir) as cluster:
        server = server_pid(cluster)
        assert os.getsid(server) == os.getpgid(server) == server


def test_a_server_is_started_from_the_main_thread_only(data_dir: Path) -> None:
    refusals: list[str] = []

    def ensure() -> None:
        try:
            Cluster(data_dir).ensure()
        except RuntimeError as refusal:
            refusals.append(str(refusal))

    thread = threading.Thread(target=ensure)
    thread.start()
    thread.join()
    assert refusals == ["the database server must be started from the main thread"]


def test_environment_variables_for_other_servers_are_ignored(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "PGPORT": "6000",
        "PGDATA": "/nowhere",
        "PGHOST": "elsewhere",
        "TZ": "Asia/Tokyo",
    }.items():
        monkeypatch.setenv(name, value)
    with Cluster(data_dir) as cluster:
        assert sql(cluster.owner_dsn, "select current_setting('port')") == "5432"
        assert sql(cluster.owner_dsn, "show timezone") == "UTC"


def test_the_socket_is_accessible_only_to_the_server_user(data_dir: Path) -> None:
    with Cluster(data_dir) as cluster:
        for folder in (socket_dir(cluster), cluster.location):
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        if ROOT:
            # The programs that the server's user can run, others can too: the installed ones may be out of reach.
            programs = binaries.find(None, binaries.server_user(cluster.location))
            done = subprocess.run(
                [programs.folder / "psql", "-Xc", "select 1", cluster.owner_dsn],
                user="daemon", group="daemon", extra_groups=[], check=False, capture_output=True, text=True,
            )  # fmt: skip
            assert done.returncode == 2
            assert "Permission denied" in done.stderr


@needs_root
@pytest.mark.parametrize("role", ["postgres", "plankeeper"])
def test_postgresql_rejects_another_user_who_reaches_the_socket(data_dir: Path, role: str) -> None:
    with Cluster(data_dir) as cluster:
        socket_dir(cluster).chmod(0o755)
        (socket_dir(cluster) / ".s.PGSQL.5432").chmod(0o777)
        programs = binaries.find(None, binaries.server_user(cluster.location))
        address = cluster.dsn.replace("user=plankeeper", f"user={role}")
        done = subprocess.run(
            [programs.folder / "psql", "-Xc", "select 1", address],
            user="daemon", group="daemon", extra_groups=[], check=False, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 2
        assert f'Peer authentication failed for user "{role}"' in done.stderr
        socket_dir(cluster).chmod(0o700)


@needs_root
def test_missing_rules_are_written_when_a_cluster_starts(data_dir: Path) -> None:
    with Cluster(data_dir) as cluster:
        rules = [cluster.location / name for name in ("plankeeper_hba.conf", "plankeeper_ident.conf")]
    for each in rules:
        each.unlink()
    (cluster.location / "pg_hba.conf").write_text("local all all trust\n")
    with Cluster(data_dir) as cluster:
        assert sql(cluster.owner_dsn, "select distinct auth_method from pg_hba_file_rules") == "peer"
    assert [each.stat().st_uid for each in rules] == [cluster.location.stat().st_uid] * 2


@pytest.mark.parametrize("trap", ["folder", "link"])
def test_a_socket_folder_created_by_another_user_is_not_used(data_dir: Path, home: Path, trap: str) -> None:
    with Cluster(data_dir) as cluster:
        sockets = socket_dir(cluster)
    assert not sockets.exists()
    if trap == "folder":
        sockets.mkdir()
        sockets.chmod(0o777)
    else:
        sockets.symlink_to(home)
    if ROOT:
        os.chown(sockets, 1, 1, follow_symlinks=False)
    try:
        with Cluster(data_dir) as cluster:
            assert socket_dir(cluster) != sockets
            assert stat.S_IMODE(socket_dir(cluster).stat().st_mode) == 0o700
            with Cluster(data_dir) as other:
                assert other.owner_dsn == cluster.owner_dsn
            assert sql(cluster.owner_dsn, "select 1") == "1"
        assert not list(sockets.glob(".s.*"))
    finally:
        sockets.unlink() if trap == "link" else sockets.rmdir()


@needs_root
def test_a_private_folder_stays_private_under_root(
    home: Path, fresh_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binaries, "SHARED_DIR", home / "shared")
    closed = home / "closed"
    closed.mkdir(mode=0o700)
    places: set[Path] = set()
    for _ in range(2):
        with Cluster(closed / "data") as cluster:
            places.add(cluster.location)
            assert cluster.location.parent == home / "shared"
            assert str(cluster.location) in (cluster.note or "")
            assert sql(cluster.owner_dsn, "select to_regclass('kept') is null") == "t"
            sql(cluster.owner_dsn, CREATE_TABLE)
        with Cluster(closed / "data") as cluster:
            assert sql(cluster.owner_dsn, "select n from kept") == "7"
        shutil.rmtree(closed / "data")
    assert len(places) == 2
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700
    assert {place.stat().st_uid for place in places} != {0}
    assert stat.S_IMODE((home / "shared").stat().st_mode) == 0o755


@needs_root
def test_root_runs_a_root_owned_copy_of_a_private_installation(
    home: Path, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binaries, "SHARED_DIR", home / "shared")
    installed = PSQL.parents[2]
    closed = home / "closed"
    closed.mkdir(mode=0o700)
    shutil.copytree(installed, closed / "embedded_postgres")
    shutil.copytree(installed.with_name("embedded_postgres.libs"), closed / "embedded_postgres.libs")
    monkeypatch.setattr(sys, "path", [str(closed), *sys.path])
    for _ in range(2):
        with Cluster(data_dir) as cluster:
            server = Path(f"/proc/{server_pid(cluster)}/exe").readlink()
            assert server.is_relative_to(home / "shared")
    assert stat.S_IMODE(closed.stat().st_mode) == 0o700
    for path in (home / "shared").rglob("*"):
        assert path.lstat().st_uid == 0
        assert path.is_symlink() or path.stat().st_mode & 0o022 == 0


@needs_root
def test_root_runs_a_users_cluster_as_that_user(copied_dir: Path) -> None:
    with Cluster(copied_dir) as cluster:
        sql(cluster.owner_dsn, CREATE_TABLE)
    for path in [copied_dir, *copied_dir.rglob("*")]:
        os.chown(path, 1, 1)
    with Cluster(copied_dir) as cluster:
        assert Path(f"/proc/{server_pid(cluster)}").stat().st_uid == 1
        assert sql(cluster.owner_dsn, "select n from kept") == "7"
