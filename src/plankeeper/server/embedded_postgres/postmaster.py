"""The pid file, the processes and the socket folder of a running PostgreSQL."""

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

from plankeeper.server.embedded_postgres.binaries import ClusterError, SystemUser

PORT = 5432  # part of the socket's file name; the server does not listen on TCP

_MAX_LOG_BYTES = 16_000_000  # then the log is rotated
_PROC = Path("/proc")
# The path of a socket is limited to 104 bytes on macOS and 108 on Linux, including the terminating zero.
_MAX_FOLDER_BYTES = 103 - len(f"/.s.PGSQL.{PORT}")


@dataclass(frozen=True)
class PidFile:
    """The content of `postmaster.pid`: the process, its socket folder if any, and whether it accepts connections."""

    pid: int
    socket_folder: Path | None
    ready: bool


def read_pid_file(location: Path) -> PidFile | None:
    """The pid file of the cluster at `location`; None if there is none or it is invalid."""
    try:
        lines = (location / "postmaster.pid").read_text().splitlines()
        pid = int(lines[0])
    except (FileNotFoundError, IndexError, ValueError):
        return None
    folder = Path(lines[4]) if len(lines) > 4 and lines[4] else None
    return PidFile(pid, folder, ready=len(lines) > 7 and lines[7].strip() == "ready")


def is_running_in(pid: int, location: Path) -> bool:
    """Whether a process is a running PostgreSQL of the cluster at `location`. A zombie is not."""
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
    """End the processes of a cluster whose owner is gone, and remove a pid file that would block the next start.

    The postmaster gets a fast shutdown. Backends without a postmaster still hold its shared memory. Idle ones end by
    themselves; the others get SIGQUIT after half of the `seconds`. Raises ClusterError if any process remains.
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
    # PostgreSQL detects the pid of a process that has ended, but not a pid that another process reuses.
    pid_file = read_pid_file(location)
    if pid_file is None or _process_exists(pid_file.pid):
        (location / "postmaster.pid").unlink(missing_ok=True)


def shut_down(server: subprocess.Popen[bytes], seconds: float) -> None:
    """Shut a server down: fast, then after `seconds` immediately, then by SIGKILL."""
    for signal_number in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):
        server.send_signal(signal_number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(seconds)
            return


def open_log(path: Path) -> io.FileIO:
    """Open the server's log for appending and reading. A long log is rotated first."""
    if path.exists() and path.stat().st_size > _MAX_LOG_BYTES:
        path.replace(path.with_name("postgres.log.1"))
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    log = io.FileIO(descriptor, "r+")
    log.seek(0, os.SEEK_END)
    return log


def claim_socket_folder(preferred: Path, user: SystemUser | None) -> Path:
    """Create a folder for the socket that only the server's user can enter: `preferred`, or another if it is taken.

    The caller holds the lock of the cluster, so no running server uses the files in the folder.
    """
    folder = preferred
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        if not _is_private(folder, user.uid if user else os.geteuid()):
            # Another user created it, possibly to impersonate the server.
            folder = Path(tempfile.mkdtemp(prefix="plankeeper-", dir=preferred.parent))
    if user:
        os.chown(folder, user.uid, user.gid, follow_symlinks=False)
    for leftover in (f".s.PGSQL.{PORT}", f".s.PGSQL.{PORT}.lock"):
        (folder / leftover).unlink(missing_ok=True)
    return folder


def socket_folder(key: str, user: SystemUser | None) -> Path:
    """The socket folder of the cluster `key`: in TMPDIR, or in /tmp if that path is too long or not accessible."""
    folder = Path(tempfile.gettempdir()) / f"plankeeper-{key}"
    if len(os.fsencode(folder)) <= _MAX_FOLDER_BYTES and (user is None or user.can_enter(folder.parent)):
        return folder
    return Path("/tmp") / folder.name  # noqa: S108 - claim_socket_folder() checks its owner and mode


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
