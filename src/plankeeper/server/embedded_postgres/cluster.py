"""The embedded PostgreSQL cluster of a data folder. The first process starts it, and others share it."""

import contextlib
import errno
import fcntl
import hashlib
import os
import re
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

from plankeeper.server.embedded_postgres import binaries, creation, postmaster
from plankeeper.server.embedded_postgres.binaries import ClusterError, PostgresBinaries
from plankeeper.server.embedded_postgres.creation import (
    DATABASE,
    SERVING_ROLE,
    SUPERUSER,
    create_cluster,
)

__all__ = ["Cluster", "ClusterError"]

_START_TIMEOUT = 120  # seconds for a start, including crash recovery
_CLEANUP_TIMEOUT = 20  # seconds to end the processes that a killed server left behind
_STOP_TIMEOUT = 30  # seconds for each of the three signals of a shutdown

# Settings that must not change. The others (100 connections, 128 MB of buffers) are in postgresql.conf.
_REQUIRED_SETTINGS = {
    "listen_addresses": "",
    "port": str(postmaster.PORT),
    "unix_socket_permissions": "0700",
    "fsync": "on",
    "full_page_writes": "on",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_destination": "stderr",
    "logging_collector": "off",
    "log_error_verbosity": "terse",  # without DETAIL, which contains row values
}
_FATAL_MESSAGE = re.compile(r"(FATAL|PANIC):.*")
# The reasons of a full disk, which later lines only repeat as a connection that ended.
_PROBLEM_MESSAGE = re.compile(r"(?:ERROR|FATAL|PANIC):  (?:.*No space left on device.*|could not .*)")
_LATEST_LOG_BYTES = 65_536


class Cluster:
    """A PostgreSQL cluster in `<data_dir>/postgres`. Only the server's system user can access its socket.

    The process that holds the lock on `<data_dir>/postgres.lock` owns the server: it starts, restarts and stops it,
    and the server ends with it. Other processes connect to it. The next one that calls `ensure` takes over.
    """

    def __init__(self, data_dir: Path, bin_dir: Path | None = None) -> None:
        """`bin_dir` is the folder of PostgreSQL's programs; None selects the embedded-postgres package."""
        self.data_dir = data_dir.absolute()
        self._bin_dir = bin_dir
        self._lock: int | None = None
        self._server: subprocess.Popen[bytes] | None = None
        self._socket_folder: Path | None = None

    @property
    def location(self) -> Path:
        """The folder of the cluster: `<data_dir>/postgres`, or the target of that symbolic link."""
        return (self.data_dir / "postgres").resolve()

    @property
    def log(self) -> Path:
        """PostgreSQL's log."""
        return self.data_dir / "postgres.log"

    def last_problem(self) -> str | None:
        """The last line of PostgreSQL's log that explains why it ended; None if there is none among the latest."""
        try:
            latest = self.log.read_bytes()[-_LATEST_LOG_BYTES:].decode(errors="replace")
        except OSError:
            return None
        problems = _PROBLEM_MESSAGE.findall(latest)
        return problems[-1] if problems else None

    def require_existing(self) -> None:
        """Raise ClusterError if the data folder doesn't contain a cluster."""
        if os.path.lexists(self.data_dir / "postgres"):
            return
        binaries.installed_dir(self._bin_dir)  # its error is about what is missing first
        where = f"no database in {self.data_dir}" if self.data_dir.is_dir() else f"no data folder at {self.data_dir}"
        raise ClusterError(
            f"There is {where}. Set PLANKEEPER_DATA_DIR to the data folder of your server, or PLANKEEPER_DATABASE_URL"
            " to the address of your database. `plankeeper serve` creates a new data folder."
        )

    @property
    def note(self) -> str | None:
        """A sentence that explains why the database is not in the data folder; None if it is."""
        if self.location.parent != binaries.SHARED_DIR:
            return None
        return (
            f"The database is in {self.location}, because PostgreSQL cannot run as root, and the user "
            f"'{binaries.SERVER_USER}', which runs it instead, has no access to {self.data_dir}."
        )

    @property
    def dsn(self) -> str:
        """The database's address for asyncpg, libpq and psql, with the role that serves.

        It stays the same after a restart or a change of owner. Raises RuntimeError before the first `ensure`.
        """
        return self._address(SERVING_ROLE)

    @property
    def owner_dsn(self) -> str:
        """The database's address with the role that owns the tables, a superuser."""
        return self._address(SUPERUSER)

    def _address(self, role: str) -> str:
        if self._socket_folder is None:
            raise RuntimeError("call ensure() before dsn")
        folder = quote(str(self._socket_folder))
        return f"postgresql:///{DATABASE}?host={folder}&port={postmaster.PORT}&user={role}"

    def ensure(self) -> bool:
        """Ensure that the cluster runs: create, start, restart or take it over, or wait until its owner has started it.

        Returns True if this call started the server. Long-running programs call it repeatedly, from the main thread;
        it is cheap while the server runs. Raises ClusterError if the cluster cannot be started.
        """
        try:
            if self._lock is not None and not _is_lock_of(self._lock, self.data_dir):
                self.stop()  # the data folder was removed, so it may contain another process's cluster now
            if self._server is not None and self._server.poll() is None:
                return False
            deadline = time.monotonic() + _START_TIMEOUT
            lock = self._lock_or_share(deadline)
            if lock is None:
                return False
            self._start(lock, deadline)
        except OSError as error:
            self.stop()
            raise ClusterError(
                f"The database in {self.data_dir} cannot be used: {error.strerror or type(error).__name__}"
                f"{f' ({error.filename})' if error.filename else ''}. {_advice(error)}"
            ) from error
        except BaseException:
            self.stop()  # so that another process can try, and nothing is left behind
            raise
        return True

    def stop(self) -> None:
        """Shut the server down if this process owns it, which takes at most 90 seconds."""
        if self._server is not None:
            postmaster.shut_down(self._server, _STOP_TIMEOUT)
            self._server = None
        if self._lock is not None:
            if self._socket_folder is not None:
                with contextlib.suppress(OSError):  # it is empty after a clean shutdown
                    self._socket_folder.rmdir()
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> Self:
        self.ensure()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _lock_or_share(self, deadline: float) -> int | None:
        """Acquire the lock and return it; None if another process owns a server that accepts connections."""
        if not self.data_dir.is_dir():
            binaries.installed_dir(self._bin_dir)  # without programs, nothing is created
            _make_data_dir(self.data_dir)
        while self._lock is None:
            self._lock = _try_lock(self.data_dir)
            if self._lock is not None:
                break
            pid_file = postmaster.read_pid_file(self.location)
            if pid_file and pid_file.ready and postmaster.is_running_in(pid_file.pid, self.location):
                self._socket_folder = pid_file.socket_folder
                return None
            if time.monotonic() > deadline:
                raise ClusterError(
                    f"Another program holds {self.data_dir / 'postgres.lock'}, but its database is not ready "
                    f"after {_START_TIMEOUT} seconds: see postgres.log in the same folder, or stop that program."
                )
            time.sleep(0.02)
        return self._lock

    def _start(self, lock: int, deadline: float) -> None:
        user = binaries.server_user(self.location)
        programs = binaries.find(self._bin_dir, user)
        if self._socket_folder is None:
            # The inode of the lock file distinguishes this folder from a removed one whose server still runs.
            seed = f"{self.data_dir.resolve()}:{os.fstat(lock).st_ino}"
            key = hashlib.sha256(seed.encode(errors="surrogateescape")).hexdigest()[:12]
            # Short, because the path of a socket is limited. claim_socket_folder() checks its owner and mode.
            self._socket_folder = Path(f"/tmp/plankeeper-{key}")  # noqa: S108
        if not os.path.lexists(self.data_dir / "postgres"):
            create_cluster(self.data_dir, programs, lock)
        self._require_usable(programs)
        postmaster.shut_down_leftovers(self.location, _CLEANUP_TIMEOUT)
        self._socket_folder = socket_folder = postmaster.claim_socket_folder(self._socket_folder, user)
        if failure := self._launch(programs, socket_folder, deadline):
            raise ClusterError(f"PostgreSQL cannot start, see {self.data_dir / 'postgres.log'}: {failure}")

    def _launch(self, programs: PostgresBinaries, socket_folder: Path, deadline: float) -> str | None:
        """Start the server. Returns None once it accepts connections, or its error message if it ended."""
        settings = _REQUIRED_SETTINGS | {"unix_socket_directories": str(socket_folder)}
        settings |= creation.write_files(self.location, programs)
        flags = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with postmaster.open_log(self.log) as log:
            log_offset = log.seek(0, os.SEEK_END)
            self._server = programs.spawn("postgres", "-D", str(self.location), *flags, log=log)
            while self._server.poll() is None:
                pid_file = postmaster.read_pid_file(self.location)
                if pid_file and pid_file.pid == self._server.pid and pid_file.ready:
                    return None
                if time.monotonic() > deadline:
                    return f"not ready after {_START_TIMEOUT} seconds."
                time.sleep(0.005)
        self._server = None
        output = self.log.read_bytes()[log_offset:].decode(errors="replace")
        reason = _FATAL_MESSAGE.search(output)
        return reason[0] if reason else output.strip() or "it logged nothing."

    def _require_usable(self, programs: PostgresBinaries) -> None:
        link, location, user = self.data_dir / "postgres", self.location, programs.user
        try:
            created_by = (location / "PG_VERSION").read_text().strip()
        except FileNotFoundError:
            raise ClusterError(
                f"There is no database in {link}" + (f", a link to {location}" if link.is_symlink() else "") + ". "
                f"Restore the folder from a backup, or remove {link} to start with an empty database."
            ) from None
        if user and not user.can_enter(location):
            raise ClusterError(
                f"The user '{user.name}', who owns the database, has no access to {location}: grant it "
                "access, or move the data folder."
            )
        if created_by != str(programs.major):
            raise ClusterError(
                f"The database in {link} was created by PostgreSQL {created_by}, but the programs in "
                f"{programs.folder} are version {programs.major}. Start Plankeeper with "
                f"PLANKEEPER_POSTGRES_BIN set to the programs of version {created_by} and run "
                f"pg_dump -Fc -f plankeeper.dump '{self.owner_dsn}'; "
                f"stop it, move {link} away, start it without that setting and run "
                f"pg_restore --clean --if-exists -d '{self.owner_dsn}' plankeeper.dump."
            )


def _advice(error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "Free some space."
    return "Choose a directory that you can write to with PLANKEEPER_DATA_DIR or `serve --data-dir`."


def _make_data_dir(data_dir: Path) -> None:
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    user = binaries.server_user(data_dir)
    if user:
        # The folder belongs to root. The server's user can only traverse it, to reach its cluster.
        os.chown(data_dir, 0, user.gid)
        data_dir.chmod(0o710)


def _try_lock(data_dir: Path) -> int | None:
    """The file descriptor that holds the lock; None while another process holds it."""
    lock = os.open(data_dir / "postgres.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_lock_of(lock, data_dir):
            return lock
    os.close(lock)
    return None


def _is_lock_of(lock: int, data_dir: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(lock), (data_dir / "postgres.lock").lstat())
    except FileNotFoundError:
        return False
