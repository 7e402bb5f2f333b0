"""The pid file, the processes and the socket folder of a running PostgreSQL."""

import contextlib
import os
import signal
import stat
import subprocess
import tempfile
import time
from pathlib import Path
from typing import IO, NamedTuple

from plankeeper.server.embedded_postgres.binaries import ClusterError, SystemUser

PORT = 5432  # part of the socket's file name; the server does not listen on TCP

_MAX_LOG_BYTES = 16_000_000  # then the log is rotated
_PROC = Path("/proc")


class PidFile(NamedTuple):
    """The content of `postmaster.pid`: the process, its socket folder if any, and whether it accepts connections."""

    pid: int
    socket_folder: Path | None
    ready: bool


def read_pid_file(location: Path) -> PidFile | None:
    """The pid file of the cluster at `location`; None if there is none or it is invalid."""
    try:
        lines = [*(location / "postmaster.pid").read_text().splitlines(), *[""] * 8]
        return PidFile(int(lines[0]), Path(lines[4]) if lines[4] else None, ready=lines[7].strip() == "ready")
    except (FileNotFoundError, ValueError):
        return None


def is_running_in(pid: int, location: Path) -> bool:
    """Whether a process is a running PostgreSQL of the cluster at `location`. A zombie is not."""
    try:
        name = (_PROC / str(pid) / "comm").read_text().strip()
        return name == "postgres" and (_PROC / str(pid) / "cwd").readlink() == location
    except OSError:
        return False


def shut_down_leftovers(location: Path, seconds: float) -> None:
    """End the processes of a cluster whose owner is gone, and remove the files that would block the next start.

    The postmaster gets a fast shutdown. Backends without a postmaster get SIGQUIT, and all of them after half of the
    `seconds`: they still hold its shared memory. Raises ClusterError if any process remains.
    """
    deadline = time.monotonic() + seconds
    while remaining := [pid for pid in _pids() if is_running_in(pid, location)]:
        if time.monotonic() > deadline:
            raise ClusterError(
                f"The processes {remaining} still use the database in {location}: end them and try again."
            )
        pid_file = read_pid_file(location)
        is_orderly = pid_file and pid_file.pid in remaining and time.monotonic() < deadline - seconds / 2
        for pid in [pid_file.pid] if pid_file and is_orderly else remaining:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGINT if is_orderly else signal.SIGQUIT)
        time.sleep(0.05)
    # PostgreSQL detects the pid of a process that has ended, but not a pid that another process reuses.
    (location / "postmaster.pid").unlink(missing_ok=True)


def _pids() -> list[int]:
    return [int(each.name) for each in _PROC.iterdir() if each.name.isdigit()]


def shut_down(server: subprocess.Popen[bytes], seconds: float) -> None:
    """Shut a server down: fast, then after `seconds` immediately, then by SIGKILL."""
    for signal_number in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
        server.send_signal(signal_number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(seconds)
            return


def open_log(path: Path) -> IO[bytes]:
    """Open the server's log for appending. A long log is rotated first."""
    if path.exists() and path.stat().st_size > _MAX_LOG_BYTES:
        path.replace(path.with_name("postgres.log.1"))
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600), "ab")


def claim_socket_folder(preferred: Path, user: SystemUser | None) -> Path:
    """Create a folder for the socket that only the server's user can enter: `preferred`, or another if it is taken.

    The caller holds the lock of the cluster, so no running server uses the files in the folder.
    """
    folder = preferred
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        status = folder.lstat()
        is_own = status.st_uid == (user.uid if user else os.geteuid())
        if not stat.S_ISDIR(status.st_mode) or not is_own or status.st_mode & 0o077:
            # Another user created it, possibly to impersonate the server.
            folder = Path(tempfile.mkdtemp(prefix="plankeeper-", dir=preferred.parent))
    if user:
        os.chown(folder, user.uid, user.gid, follow_symlinks=False)
    for leftover in (f".s.PGSQL.{PORT}", f".s.PGSQL.{PORT}.lock"):
        (folder / leftover).unlink(missing_ok=True)
    return folder
