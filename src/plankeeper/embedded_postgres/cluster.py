"""The embedded PostgreSQL cluster of a data folder: the first program starts it, the others share it."""

import contextlib
import fcntl
import hashlib
import os
import re
import secrets
import shutil
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

from plankeeper.embedded_postgres import binaries, postmaster
from plankeeper.embedded_postgres.binaries import ClusterError, PostgresBinaries, SystemUser

__all__ = ["Cluster", "ClusterError"]

DATABASE = "plankeeper"
SUPERUSER = "postgres"

_START_TIMEOUT = 120  # a start, with the recovery after a crash
_CLEANUP_TIMEOUT = 20  # the end of what a killed server leaves behind
_STOP_TIMEOUT = 30

# What must hold; the rest (100 connections, 128 MB of buffers) stands in the cluster's postgresql.conf.
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
    "log_error_verbosity": "terse",  # without DETAIL, which repeats the row
}
_FATAL_MESSAGE = re.compile(r"(FATAL|PANIC):.*")
_STILL_IN_USE = re.compile(r"lock file .* already exists|shared memory block .* still in use")


class Cluster:
    """A PostgreSQL cluster in `<data_dir>/postgres`, its socket closed to all system users but the server's.

    Whoever holds the lock on `<data_dir>/postgres.lock` owns the server: it starts, restarts and stops it,
    and the server ends with it. Other programs use it meanwhile, and the next to call `ensure` takes it over.
    """

    def __init__(self, data_dir: Path, bin_dir: Path | None = None) -> None:
        """`bin_dir` is the folder of PostgreSQL's programs; None is the embedded-postgres package's."""
        self.data_dir = data_dir.absolute()
        self._bin_dir = bin_dir
        self._lock: int | None = None
        self._server: subprocess.Popen[bytes] | None = None
        self._socket_folder: Path | None = None

    @property
    def location(self) -> Path:
        """Where the cluster really is: `<data_dir>/postgres`, or the folder that this links to."""
        return (self.data_dir / "postgres").resolve()

    @property
    def note(self) -> str | None:
        """A sentence for whoever would look for the database in the data folder and not find it there."""
        if self.location.parent != binaries.SHARED_DIR:
            return None
        return (
            f"The database is in {self.location}: PostgreSQL refuses to run as root, and the user "
            f"'{binaries.SERVER_USER}', which it runs as instead, cannot enter {self.data_dir}."
        )

    @property
    def dsn(self) -> str:
        """The database's address for asyncpg, libpq and psql, valid once `ensure` has returned.

        It stays the same when the server is restarted or changes its owner. RuntimeError before `ensure`.
        """
        if self._socket_folder is None:
            raise RuntimeError("the cluster has an address once ensure() has returned")
        folder = quote(str(self._socket_folder))
        return f"postgresql:///{DATABASE}?host={folder}&port={postmaster.PORT}&user={SUPERUSER}"

    def ensure(self) -> bool:
        """Make the cluster run: create, start, restart or take it over, or wait for the owner to do so.

        True if this call has started the server. Cheap if all is well; to be called from the main thread,
        again and again by programs that live long. ClusterError if there is no database to be had.
        """
        try:
            if self._lock is not None and not _is_lock_of(self._lock, self.data_dir):
                self.stop()  # the data folder was removed, so another program's cluster may be there by now
            if self._server is not None and self._server.poll() is None:
                return False
            deadline = time.monotonic() + _START_TIMEOUT
            lock = self._lock_or_share(deadline)
            if lock is None:
                return False
            self._start(lock, deadline)
        except OSError as error:
            self.stop()
            raise ClusterError(f"The database in {self.data_dir} cannot be used: {error}.") from error
        except BaseException:
            self.stop()  # so that another program can try, and nothing of ours stays behind
            raise
        return True

    def stop(self) -> None:
        """Shut the server down if it is ours, in at most a minute and a half; else just let go."""
        if self._server is not None:
            postmaster.shut_down(self._server, _STOP_TIMEOUT)
            self._server = None
        if self._lock is not None:
            if self._socket_folder is not None:
                with contextlib.suppress(OSError):  # it is empty after an orderly end
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
        """The lock, which is ours from now on; None with another program's server that takes clients."""
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
                    f"Another program holds {self.data_dir / 'postgres.lock'} and its database is not ready "
                    f"after {_START_TIMEOUT} seconds: see postgres.log beside it, or stop that program."
                )
            time.sleep(0.02)
        return self._lock

    def _start(self, lock: int, deadline: float) -> None:
        user = binaries.server_user(self.location)
        programs = binaries.find(self._bin_dir, user)
        if self._socket_folder is None:
            # The lock's number tells this folder from one that was removed while its server still runs.
            seed = f"{self.data_dir.resolve()}:{os.fstat(lock).st_ino}"
            key = hashlib.sha256(seed.encode(errors="surrogateescape")).hexdigest()[:12]
            self._socket_folder = postmaster.socket_folder(key, user)
        if not os.path.lexists(self.data_dir / "postgres"):
            _create(self.data_dir, programs, lock)
        self._require_usable(programs)
        postmaster.shut_down_leftovers(self.location, _CLEANUP_TIMEOUT)
        self._socket_folder = socket_folder = postmaster.claim_socket_folder(self._socket_folder, user)
        retry_deadline = time.monotonic() + _CLEANUP_TIMEOUT
        while failure := self._launch(programs, socket_folder, deadline):
            if time.monotonic() > retry_deadline or not _STILL_IN_USE.search(failure):
                raise ClusterError(f"PostgreSQL does not start, see {self.data_dir / 'postgres.log'}: {failure}")
            time.sleep(0.1)

    def _launch(self, programs: PostgresBinaries, socket_folder: Path, deadline: float) -> str | None:
        """None with a server that takes clients; what the server said, if it ended instead."""
        settings = _REQUIRED_SETTINGS | {"unix_socket_directories": str(socket_folder)}
        flags = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with postmaster.open_log(self.data_dir / "postgres.log") as log:
            log_offset = log.tell()
            self._server = programs.spawn("postgres", "-D", str(self.location), *flags, log=log)
            while self._server.poll() is None:
                pid_file = postmaster.read_pid_file(self.location)
                if pid_file and pid_file.pid == self._server.pid and pid_file.ready:
                    return None
                if time.monotonic() > deadline:
                    return f"it is not ready after {_START_TIMEOUT} seconds."
                time.sleep(0.005)
            self._server = None
            log.seek(log_offset)
            output = log.read().decode(errors="replace")
        reason = _FATAL_MESSAGE.search(output)
        return reason[0] if reason else output.strip() or "it said nothing."

    def _require_usable(self, programs: PostgresBinaries) -> None:
        link, location, user = self.data_dir / "postgres", self.location, programs.user
        try:
            created_by = (location / "PG_VERSION").read_text().strip()
        except FileNotFoundError:
            raise ClusterError(
                f"There is no database in {link}" + (f", a link to {location}" if link.is_symlink() else "") + ". "
                "Bring it back from a backup, or remove that to start with an empty one."
            ) from None
        if user and not user.can_enter(location):
            raise ClusterError(
                f"The user '{user.name}', whom the database belongs to, cannot enter {location}: let it "
                "in, or move the data folder to where it can."
            )
        if created_by != str(programs.major):
            raise ClusterError(
                f"The database in {link} was made by PostgreSQL {created_by}, and the programs in "
                f"{programs.folder} are version {programs.major}. Start Plankeeper with "
                f"PLANKEEPER_POSTGRES_BIN set to version {created_by}'s programs and run "
                f"pg_dump -Fc -f plankeeper.dump '{self.dsn}'; "
                f"stop it, move {link} away, start it without that setting and run "
                f"pg_restore --clean --if-exists -d '{self.dsn}' plankeeper.dump."
            )


def _make_data_dir(data_dir: Path) -> None:
    if data_dir.is_dir():
        return
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    user = binaries.server_user(data_dir)
    if user:
        # Root's own folder, which the server's user can pass through to its cluster and do nothing else with.
        os.chown(data_dir, 0, user.gid)
        data_dir.chmod(0o710)


def _try_lock(data_dir: Path) -> int | None:
    """The descriptor that holds the lock; None while another program does."""
    lock = os.open(data_dir / "postgres.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    except BaseException:
        os.close(lock)
        raise
    if _is_lock_of(lock, data_dir):
        return lock
    os.close(lock)
    return None


def _is_lock_of(lock: int, data_dir: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(lock), (data_dir / "postgres.lock").lstat())
    except FileNotFoundError:
        return False


def _create(data_dir: Path, programs: PostgresBinaries, lock: int) -> None:
    """Make the cluster and its database under another name first: half of one never bears the real name."""
    staging = data_dir / "postgres.init"
    if staging.is_symlink():
        staging.unlink()
    elif staging.exists():
        shutil.rmtree(staging)
    home = _make_home(staging, programs.user)
    initdb_options = ["--auth=trust", "--no-locale", "-E", "UTF8", "--data-checksums", "--no-instructions"]
    if programs.major >= 17:
        # The C locale's order, and a `lower` that knows more letters than English has: É is é.
        initdb_options += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    programs.run("initdb", "-D", str(home), "-U", SUPERUSER, *initdb_options, inherited_fd=lock)
    single_user_options = ["--single", "-D", str(home), "-c", "exit_on_error=on", "postgres"]
    programs.run("postgres", *single_user_options, inherited_fd=lock, statement=f"create database {DATABASE}\n")
    staging.rename(data_dir / "postgres")
    for folder in (home.parent, data_dir):
        descriptor = os.open(folder, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


def _make_home(staging: Path, user: SystemUser | None) -> Path:
    """An empty folder for the cluster that its server can enter: `part`, or one that `part` links to."""
    home = staging
    if user and not user.can_enter(staging.parent):
        # Named for whoever finds it there, and by chance: a data folder that is removed and made again must
        # not find the old cluster.
        binaries.create_shared_dir()
        origin = re.sub(r"[^\w.-]+", "-", str(staging.parent).strip("/"))[-60:]
        home = binaries.SHARED_DIR / f"{origin}-{secrets.token_hex(4)}"
    home.mkdir(mode=0o700)
    if user:
        os.chown(home, user.uid, user.gid)
    if home != staging:
        staging.symlink_to(home)
    return home
