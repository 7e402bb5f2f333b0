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

from plankeeper.embedded_postgres.binaries import ClusterError, SystemUser

PORT = 5432  # of the socket's name; nothing listens on TCP

_MAX_LOG_BYTES = 16_000_000  # then it is put aside
_PROC = Path("/proc")
# A socket's whole path is cut off at 104 bytes on macOS, at 108 on Linux, its closing zero included.
_MAX_FOLDER_BYTES = 103 - len(f"/.s.PGSQL.{PORT}")


@dataclass(frozen=True)
class PidFile:
    """What `postmaster.pid` says: the process, its socket folder if it has one, whether it takes clients."""

    pid: int
    socket_folder: Path | None
    ready: bool


def read_pid_file(location: Path) -> PidFile | None:
    """The pid file of the cluster at `location`; None where there is none, or none that can be understood."""
    try:
        lines = (location / "postmaster.pid").read_text().splitlines()
        pid = int(lines[0])
    except (FileNotFoundError, IndexError, ValueError):
        return None
    folder = Path(lines[4]) if len(lines) > 4 and lines[4] else None
    return PidFile(pid, folder, ready=len(lines) > 7 and lines[7].strip() == "ready")


def is_running_in(pid: int, location: Path) -> bool:
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


def shut_down_leftovers(location: Path, seconds: float) -> None:
    """Leave nothing at work in a cluster whose owner is gone, nor a pid file that would block the next.

    A postmaster gets a fast shutdown. Backends that outlive theirs hold its shared memory: they end by
    themselves unless they are busy, so halfway through the `seconds` they are told to. ClusterError if that
    does not help.
    """
    pid_file = read_pid_file(location)
    if pid_file and is_running_in(pid_file.pid, location):
        _send_signal(pid_file.pid, signal.SIGINT)
    started_at = time.monotonic()
    while remaining := _running_pids(location):
        waited = time.monotonic() - started_at
        if waited > seconds:
            raise ClusterError(
                f"The processes {remaining} still use the database in {location}: end them and try again."
            )
        if waited > seconds / 2:
            for pid in remaining:
                _send_signal(pid, signal.SIGQUIT)
        time.sleep(0.02)
    # PostgreSQL sees through the pid of a process that is gone, but not through one that another has now.
    pid_file = read_pid_file(location)
    if pid_file is None or _process_exists(pid_file.pid):
        (location / "postmaster.pid").unlink(missing_ok=True)


def shut_down(server: subprocess.Popen[bytes], seconds: float) -> None:
    """Shut down a server of ours: clients are cut off and the last page written; in haste after `seconds`."""
    for signal_number in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
        server.send_signal(signal_number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(seconds)
            return


def open_log(path: Path) -> io.FileIO:
    """The server's log, to append to and to read what it says; a long one is put aside first."""
    if path.exists() and path.stat().st_size > _MAX_LOG_BYTES:
        path.replace(path.with_name("postgres.log.1"))
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    log = io.FileIO(descriptor, "r+")
    log.seek(0, os.SEEK_END)
    return log


def claim_socket_folder(preferred: Path, user: SystemUser | None) -> Path:
    """A folder for the socket that the server's user alone can enter: `preferred`, or another if that is taken.

    The lock under which we are called promises that no server of this cluster uses what lies in it.
    """
    folder = preferred
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        if not _is_private(folder, user.uid if user else os.geteuid()):
            # Somebody else has made it, perhaps to listen in the server's place.
            folder = Path(tempfile.mkdtemp(prefix="plankeeper-", dir=preferred.parent))
    if user:
        os.chown(folder, user.uid, user.gid, follow_symlinks=False)
    for leftover in (f".s.PGSQL.{PORT}", f".s.PGSQL.{PORT}.lock"):
        (folder / leftover).unlink(missing_ok=True)
    return folder


def socket_folder(key: str, user: SystemUser | None) -> Path:
    """Where the sockets of the cluster known by `key` belong: in TMPDIR, if it is short and open enough."""
    folder = Path(tempfile.gettempdir()) / f"plankeeper-{key}"
    if len(os.fsencode(folder)) <= _MAX_FOLDER_BYTES and (user is None or user.can_enter(folder.parent)):
        return folder
    return Path("/tmp") / folder.name  # noqa: S108 - claimed with care above


def _is_private(folder: Path, owner: int) -> bool:
    status = folder.lstat()
    return stat.S_ISDIR(status.st_mode) and status.st_uid == owner and not status.st_mode & 0o077


def _running_pids(location: Path) -> list[int]:
    if (_PROC / "self" / "cwd").exists():
        return [
            int(entry.name)
            for entry in _PROC.iterdir()
            if entry.name.isdigit() and is_running_in(int(entry.name), location)
        ]
    pid_file = read_pid_file(location)
    return [pid_file.pid] if pid_file and is_running_in(pid_file.pid, location) else []


def _send_signal(pid: int, signal_number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal_number)


def _process_exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
