"""Who may connect to the embedded PostgreSQL: the system user who started it, and root, without a password.

PostgreSQL asks the kernel who is at the other end of the socket (`peer`), and a map names the roles of that user.
"""

import os
import pwd
from pathlib import Path

from plankeeper.embedded_postgres.binaries import PostgresBinaries
from plankeeper.embedded_postgres.creation import SERVING_ROLE, SUPERUSER

_MAP = "plankeeper"


def write_files(location: Path, programs: PostgresBinaries) -> dict[str, str]:
    """Write the files for a cluster's next start, and return the settings that name them. Raises ClusterError.

    They replace pg_hba.conf and pg_ident.conf, which clusters from earlier versions have without any authentication.
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
    users = {"root", _name_of(os.geteuid()), *([programs.user.name] if programs.user else [])}
    return "".join(f'{_MAP} "{user}" {role}\n' for user in sorted(users) for role in (SUPERUSER, SERVING_ROLE))


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
