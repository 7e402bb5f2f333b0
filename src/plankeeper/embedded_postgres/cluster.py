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
from plankeeper.embedded_postgres.binaries import Account, ClusterError, Programs

__all__ = ["Cluster", "ClusterError"]

DATABASE = "plankeeper"
SUPERUSER = "postgres"

_READY_SECONDS = 120  # a start, with the recovery after a crash
_LEFTOVER_SECONDS = 20  # the end of what a killed server leaves behind
_STOP_SECONDS = 30

# What must hold; the rest (100 connections, 128 MB of buffers) stands in the cluster's postgresql.conf.
_MUST_HOLD = {
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
_REASON = re.compile(r"(FATAL|PANIC):.*")
_PREDECESSOR = re.compile(r"lock file .* already exists|shared memory block .* still in use")


class Cluster:
    """A PostgreSQL cluster in `<data_dir>/postgres`, its socket closed to all system users but the server's.

    Whoever holds the lock on `<data_dir>/postgres.lock` owns the server: it starts, restarts and stops it,
    and the server ends with it. Other programs use it meanwhile, and the next to call `ensure` takes it over.
    """

    def __init__(self, data_dir: Path, binaries: Path | None = None) -> None:
        """`binaries` is the folder of PostgreSQL's programs; None is the embedded-postgres package's."""
        self.data_dir = data_dir.absolute()
        self._binaries = binaries
        self._lock: int | None = None
        self._server: subprocess.Popen[bytes] | None = None
        self._sockets: Path | None = None

    @property
    def location(self) -> Path:
        """Where the cluster really is: `<data_dir>/postgres`, or the folder that this links to."""
        return (self.data_dir / "postgres").resolve()

    @property
    def note(self) -> str | None:
        """A sentence for whoever would look for the database in the data folder and not find it there."""
        if self.location.parent != binaries.SHARED:
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
        if self._sockets is None:
            raise RuntimeError("the cluster has an address once ensure() has returned")
        folder = quote(str(self._sockets))
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
            deadline = time.monotonic() + _READY_SECONDS
            lock = self._own_or_share(deadline)
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
            postmaster.end(self._server, _STOP_SECONDS)
            self._server = None
        if self._lock is not None:
            if self._sockets is not None:
                with contextlib.suppress(OSError):  # it is empty after an orderly end
                    self._sockets.rmdir()
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> Self:
        self.ensure()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _own_or_share(self, deadline: float) -> int | None:
        """The lock, which is ours from now on; None with another program's server that takes clients."""
        _make_data_dir(self.data_dir)
        while self._lock is None:
            self._lock = _take_lock(self.data_dir)
            if self._lock is not None:
                break
            found = postmaster.read(self.location)
            if found and found.ready and postmaster.runs_in(found.pid, self.location):
                self._sockets = found.sockets
                return None
            if time.monotonic() > deadline:
                raise ClusterError(
                    f"Another program holds {self.data_dir / 'postgres.lock'} and its database is not ready "
                    f"after {_READY_SECONDS} seconds: see postgres.log beside it, or stop that program."
                )
            time.sleep(0.02)
        return self._lock

    def _start(self, lock: int, deadline: float) -> None:
        account = binaries.account_for(self.location)
        programs = binaries.find(self._binaries, account)
        if self._sockets is None:
            # The lock's number tells this folder from one that was removed while its server still runs.
            seed = f"{self.data_dir.resolve()}:{os.fstat(lock).st_ino}"
            key = hashlib.sha256(seed.encode(errors="surrogateescape")).hexdigest()[:12]
            self._sockets = postmaster.socket_folder(key, account)
        if not os.path.lexists(self.data_dir / "postgres"):
            _create(self.data_dir, programs, lock)
        self._refuse_unusable(programs)
        postmaster.settle(self.location, _LEFTOVER_SECONDS)
        self._sockets = sockets = postmaster.claim_sockets(self._sockets, account)
        give_up = time.monotonic() + _LEFTOVER_SECONDS
        while complaint := self._launch(programs, sockets, deadline):
            if time.monotonic() > give_up or not _PREDECESSOR.search(complaint):
                raise ClusterError(f"PostgreSQL does not start, see {self.data_dir / 'postgres.log'}: {complaint}")
            time.sleep(0.1)

    def _launch(self, programs: Programs, sockets: Path, deadline: float) -> str | None:
        """None with a server that takes clients; what the server said, if it ended instead."""
        settings = _MUST_HOLD | {"unix_socket_directories": str(sockets)}
        flags = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with postmaster.open_log(self.data_dir / "postgres.log") as log:
            before = log.tell()
            self._server = programs.spawn("postgres", "-D", str(self.location), *flags, log=log)
            while self._server.poll() is None:
                found = postmaster.read(self.location)
                if found and found.pid == self._server.pid and found.ready:
                    return None
                if time.monotonic() > deadline:
                    return f"it is not ready after {_READY_SECONDS} seconds."
                time.sleep(0.005)
            self._server = None
            log.seek(before)
            said = log.read().decode(errors="replace")
        reason = _REASON.search(said)
        return reason[0] if reason else said.strip() or "it said nothing."

    def _refuse_unusable(self, programs: Programs) -> None:
        link, location, account = self.data_dir / "postgres", self.location, programs.account
        try:
            made_by = (location / "PG_VERSION").read_text().strip()
        except FileNotFoundError:
            raise ClusterError(
                f"There is no database in {link}" + (f", a link to {location}" if link.is_symlink() else "") + ". "
                "Bring it back from a backup, or remove that to start with an empty one."
            ) from None
        if account and not account.can_enter(location):
            raise ClusterError(
                f"The user '{account.name}', whom the database belongs to, cannot enter {location}: let it "
                "in, or move the data folder to where it can."
            )
        if made_by != str(programs.major):
            raise ClusterError(
                f"The database in {link} was made by PostgreSQL {made_by}, and the programs in "
                f"{programs.folder} are version {programs.major}. Start Plankeeper with "
                f"PLANKEEPER_POSTGRES_BIN set to version {made_by}'s programs and run "
                f"pg_dump -Fc -f plankeeper.dump '{self.dsn}'; "
                f"stop it, move {link} away, start it without that setting and run "
                f"pg_restore --clean --if-exists -d '{self.dsn}' plankeeper.dump."
            )


def _make_data_dir(data_dir: Path) -> None:
    if data_dir.is_dir():
        return
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    server = binaries.account_for(data_dir)
    if server:
        # Root's own folder, which the server's user can pass through to its cluster and do nothing else with.
        os.chown(data_dir, 0, server.gid)
        data_dir.chmod(0o710)


def _take_lock(data_dir: Path) -> int | None:
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


def _create(data_dir: Path, programs: Programs, lock: int) -> None:
    """Make the cluster and its database under another name first: half of one never bears the real name."""
    part = data_dir / "postgres.init"
    if part.is_symlink():
        part.unlink()
    elif part.exists():
        shutil.rmtree(part)
    home = _make_home(part, programs.account)
    choices = ["--auth=trust", "--no-locale", "-E", "UTF8", "--data-checksums", "--no-instructions"]
    if programs.major >= 17:
        # The C locale's order, and a `lower` that knows more letters than English has: É is é.
        choices += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    programs.run("initdb", "-D", str(home), "-U", SUPERUSER, *choices, holding=lock)
    alone = ["--single", "-D", str(home), "-c", "exit_on_error=on", "postgres"]
    programs.run("postgres", *alone, holding=lock, statement=f"create database {DATABASE}\n")
    part.rename(data_dir / "postgres")
    for folder in (home.parent, data_dir):
        descriptor = os.open(folder, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


def _make_home(part: Path, account: Account | None) -> Path:
    """An empty folder for the cluster that its server can enter: `part`, or one that `part` links to."""
    home = part
    if account and not account.can_enter(part.parent):
        # Named for whoever finds it there, and by chance: a data folder that is removed and made again must
        # not find the old cluster.
        binaries.open_shared()
        origin = re.sub(r"[^\w.-]+", "-", str(part.parent).strip("/"))[-60:]
        home = binaries.SHARED / f"{origin}-{secrets.token_hex(4)}"
    home.mkdir(mode=0o700)
    if account:
        os.chown(home, account.uid, account.gid)
    if home != part:
        part.symlink_to(home)
    return home
