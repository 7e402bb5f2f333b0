"""Creates the cluster of a data folder, in the folder itself or, as root, in one that the server's user can enter."""

import os
import re
import secrets
import shutil
import time
from pathlib import Path

from plankeeper.server.embedded_postgres import binaries
from plankeeper.server.embedded_postgres.binaries import ClusterError, PostgresBinaries, SystemUser, user_name

DATABASE = "plankeeper"
SUPERUSER = "postgres"
SERVING_ROLE = "plankeeper"

MIN_FREE_BYTES = 100 * 2**20  # an empty database takes most of it

_REMOVAL_TIMEOUT = 2.0  # seconds
_ORIGIN_SUFFIX = ".origin"  # of the file beside a cluster that is not in its data folder


def create_cluster(data_dir: Path, programs: PostgresBinaries, lock: int) -> None:
    """Create the cluster and its database in a staging folder, and rename it once it is complete."""
    staging = data_dir / "postgres.init"
    if staging.is_symlink():
        if staging.resolve().parent == binaries.SHARED_DIR:
            _remove_home(staging.resolve())
        staging.unlink()
    elif staging.exists():
        shutil.rmtree(staging)
    home = _make_home(staging, programs.user)
    try:
        _require_space(home)
        _initialise(home, programs, lock)
    except BaseException:  # such as Ctrl-C: the next start would use another home
        _remove_home(home)
        if staging.is_symlink():
            staging.unlink()
        raise
    staging.rename(data_dir / "postgres")
    for folder in (home.parent, data_dir):
        descriptor = os.open(folder, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


def _initialise(home: Path, programs: PostgresBinaries, lock: int) -> None:
    initdb_options = ["--auth-local=peer", "--auth-host=reject", "--data-checksums", "--no-instructions"]
    initdb_options += ["--no-locale", "-E", "UTF8"]
    if programs.major >= 17:
        # Sorts like the C locale, but `lower` supports all letters of Unicode, such as É.
        initdb_options += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    programs.run("initdb", "-D", str(home), "-U", SUPERUSER, *initdb_options, inherited_fd=lock)
    single_user_options = ["--single", "-D", str(home), "-c", "exit_on_error=on", "postgres"]
    programs.run("postgres", *single_user_options, inherited_fd=lock, statement=f"create database {DATABASE}\n")


def _require_space(home: Path) -> None:
    """Without this, PostgreSQL's programs would fail after half a minute."""
    free = shutil.disk_usage(home).free
    if free < MIN_FREE_BYTES:
        raise ClusterError(
            f"The disk of {home.parent} has {free // 2**20} MiB of free space, and a database needs at least"
            f" {MIN_FREE_BYTES // 2**20} MiB. Free some space, or set PLANKEEPER_DATA_DIR to a folder on another disk."
        )


def _remove_home(home: Path) -> None:
    """Remove the folder of a cluster that wasn't completed."""
    deadline = time.monotonic() + _REMOVAL_TIMEOUT
    shutil.rmtree(home, ignore_errors=True)
    # Processes of an interrupted initdb may write to it for a moment.
    while home.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
        shutil.rmtree(home, ignore_errors=True)
    home.with_name(f"{home.name}{_ORIGIN_SUFFIX}").unlink(missing_ok=True)


def _make_home(staging: Path, user: SystemUser | None) -> Path:
    """Create an empty folder that the server can access: `staging`, or a folder that `staging` links to."""
    home = staging
    if user and not user.can_enter(staging.parent):
        # The name shows where the cluster belongs. The random suffix keeps a removed and recreated data folder
        # from using the old cluster.
        binaries.create_shared_dir()
        origin = re.sub(r"[^\w.-]+", "-", str(staging.parent).strip("/"))[-60:]
        home = binaries.SHARED_DIR / f"{origin}-{secrets.token_hex(4)}"
    home.mkdir(mode=0o700)
    if user:
        os.chown(home, user.uid, user.gid)
    if home != staging:
        staging.symlink_to(home)
        # For `abandoned_homes`: the link that leads here once the cluster is complete.
        home.with_name(f"{home.name}{_ORIGIN_SUFFIX}").write_text(f"{staging.parent / 'postgres'}\n")
    return home


def abandoned_homes() -> list[Path]:
    """The clusters in the shared folder whose data directory is gone, or has another cluster."""
    try:
        origins = sorted(binaries.SHARED_DIR.glob(f"*{_ORIGIN_SUFFIX}"))
        homes = {each.with_name(each.name.removesuffix(_ORIGIN_SUFFIX)): each.read_text().strip() for each in origins}
    except OSError:
        return []
    return [home for home, origin in homes.items() if home.is_dir() and Path(origin).resolve() != home]


_MAP = "plankeeper"


def write_files(location: Path, programs: PostgresBinaries) -> dict[str, str]:
    """Write the files for a cluster's next start, and return the settings that name them. Raises ClusterError.

    They replace pg_hba.conf and pg_ident.conf, so that a new version can change the rules.
    """
    files = {
        "hba_file": (location / "plankeeper_hba.conf", _hba()),
        "ident_file": (location / "plankeeper_ident.conf", _ident(programs)),
    }
    for path, content in files.values():
        if not path.exists() or path.read_text() != content:  # a full disk doesn't prevent a start
            programs.write_file(path, content)
    return {name: str(path) for name, (path, _) in files.items()}


def _hba() -> str:
    roles = f"{SUPERUSER},{SERVING_ROLE}"
    return f"local all {roles} peer map={_MAP}\nlocal replication {SUPERUSER} peer map={_MAP}\n"


def _ident(programs: PostgresBinaries) -> str:
    users = {"root", user_name(os.geteuid()), *([programs.user.name] if programs.user else [])}
    return "".join(f'{_MAP} "{user}" {role}\n' for user in sorted(users) for role in (SUPERUSER, SERVING_ROLE))
