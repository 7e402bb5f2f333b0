"""A running PostgreSQL as the system sees it: its pid file, its processes, its socket folder."""

import contextlib
import io
import os
import signal
import stat
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from plankeeper.embedded_postgres.binaries import Account, ClusterError

PORT = 5432  # of the socket's name; nothing listens on TCP

_LOG_BYTES = 16_000_000  # then it is put aside
_PROC = Path("/proc")
# A socket's whole path is cut off at 104 bytes on macOS, at 108 on Linux, its closing zero included.
_LONGEST_FOLDER = 103 - len(f"/.s.PGSQL.{PORT}")


@dataclass(frozen=True)
class Record:
    """What `postmaster.pid` says: the process, its socket folder if it has one, whether it takes clients."""

    pid: int
    sockets: Path | None
    ready: bool


def read(location: Path) -> Record | None:
    """The pid file of the cluster at `location`; None where there is none, or none that can be understood."""
    try:
        lines = (location / "postmaster.pid").read_text().splitlines()
        pid = int(lines[0])
    except (FileNotFoundError, IndexError, ValueError):
        return None
    sockets = Path(lines[4]) if len(lines) > 4 and lines[4] else None
    return Record(pid, sockets, ready=len(lines) > 7 and lines[7].strip() == "ready")


def runs_in(pid: int, location: Path) -> bool:
    """Whether this process is a PostgreSQL at work in the cluster at `location`; a zombie is not."""
    if not (_PROC / "self" / "cwd").exists():
        command = subprocess.run(  # noqa: S603
            ["/bin/ps", "-ww", "-o", "command=", "-p", str(pid)], check=False, capture_output=True, text=True
        ).stdout
        return "postgres" in command and f"-D {location} " in command
    try:
        name = (_PROC / str(pid) / "comm").read_text().strip()
        return name == "postgres" and (_PROC / str(pid) / "cwd").readlink() == location
    except OSError:
        return False


def settle(location: Path, seconds: float) -> None:
    """Leave nothing at work in a cluster whose owner is gone, nor a pid file that would block the next.

    A postmaster gets a fast shutdown. Backends that outlive theirs hold its shared memory: they end by
    themselves unless they are busy, so halfway through the `seconds` they are told to. ClusterError if that
    does not help.
    """
    record = read(location)
    if record and runs_in(record.pid, location):
        _send(record.pid, signal.SIGINT)
    began = time.monotonic()
    while remaining := _at_work(location):
        waited = time.monotonic() - began
        if waited > seconds:
            raise ClusterError(
                f"The processes {remaining} still use the database in {location}: end them and try again."
            )
        if waited > seconds / 2:
            for pid in remaining:
                _send(pid, signal.SIGQUIT)
        time.sleep(0.02)
    # PostgreSQL sees through the pid of a process that is gone, but not through one that another has now.
    record = read(location)
    if record is None or _exists(record.pid):
        (location / "postmaster.pid").unlink(missing_ok=True)


def end(server: subprocess.Popen[bytes], seconds: float) -> None:
    """Shut down a server of ours: clients are cut off and the last page written; in haste after `seconds`."""
    for request in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
        server.send_signal(request)
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(seconds)
            return


def open_log(path: Path) -> io.FileIO:
    """The server's log, to append to and to read what it says; a long one is put aside first."""
    if path.exists() and path.stat().st_size > _LOG_BYTES:
        path.replace(path.with_name("postgres.log.1"))
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    log = io.FileIO(descriptor, "r+")
    log.seek(0, os.SEEK_END)
    return log


def claim_sockets(wanted: Path, account: Account | None) -> Path:
    """A folder for the socket that the server's user alone can enter: `wanted`, or another if that is taken.

    The lock under which we are called promises that no server of this cluster uses what lies in it.
    """
    folder = wanted
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        if not _is_private(folder, account.uid if account else os.geteuid()):
            # Somebody else has made it, perhaps to listen in the server's place.
            folder = Path(tempfile.mkdtemp(prefix="plankeeper-", dir=wanted.parent))
    if account:
        os.chown(folder, account.uid, account.gid, follow_symlinks=False)
    for leftover in (f".s.PGSQL.{PORT}", f".s.PGSQL.{PORT}.lock"):
        (folder / leftover).unlink(missing_ok=True)
    return folder


def socket_folder(key: str, account: Account | None) -> Path:
    """Where the sockets of the cluster known by `key` belong: in TMPDIR, if it is short and open enough."""
    folder = Path(tempfile.gettempdir()) / f"plankeeper-{key}"
    if len(os.fsencode(folder)) <= _LONGEST_FOLDER and (account is None or account.can_enter(folder.parent)):
        return folder
    return Path("/tmp") / folder.name  # noqa: S108 - claimed with care above


def _is_private(folder: Path, owner: int) -> bool:
    found = folder.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == owner and not found.st_mode & 0o077


def _at_work(location: Path) -> list[int]:
    if (_PROC / "self" / "cwd").exists():
        return [
            int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit() and runs_in(int(entry.name), location)
        ]
    record = read(location)
    return [record.pid] if record and runs_in(record.pid, location) else []


def _send(pid: int, request: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, request)


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
