"""A PostgreSQL cluster per system, with the same programs, the same settings, and durable commits."""

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from benchmarks.data import COLUMNS, TENANT
from benchmarks.processes import process_tree, run_program
from plankeeper.server.embedded_postgres import binaries, postmaster
from plankeeper.server.embedded_postgres.cluster import DATABASE, Cluster

# Plankeeper's session settings apply to all systems.
SETTINGS = f"alter database {DATABASE} set jit = off; alter database {DATABASE} set random_page_cost = 1.1;"

_DEFAULTS = {
    "id": "uuidv7()",
    "created_at": "now()",
    "status": "'Active'",
    "approval_required": "false",
    "is_pace_plan": "false",
    "postal_statement": "false",
    "participant_receives_statements": "false",
}
_COLUMN_DEFINITIONS = ",\n".join(
    f"    {name} {kind}" + (f" not null default {_DEFAULTS[name]}" if name in _DEFAULTS else "")
    for name, kind in COLUMNS.items()
)
# The table of peers without a schema of their own. As in Plankeeper, every index begins with the tenant.
TABLE = f"""
create table participants (
    plan_manager_id uuid not null default '{TENANT}',
{_COLUMN_DEFINITIONS},
    primary key (plan_manager_id, id)
);
create index participants_by_number on participants (plan_manager_id, participant_number);
create index participants_by_status_and_state on participants (plan_manager_id, status, state, id);
"""


class Postgres:
    """A cluster in `folder`, created on the first start."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._cluster = Cluster(folder)

    def start(self) -> None:
        is_new = not (self.folder / "postgres").exists()
        self._cluster.ensure()
        if is_new:
            self.run(SETTINGS)

    def stop(self) -> None:
        self._cluster.stop()

    @contextmanager
    def running(self) -> Generator[None]:
        try:
            self.start()
            yield
        finally:
            self.stop()

    def remove(self) -> None:
        """Delete the cluster. For root, the folder may be a link to it."""
        shutil.rmtree(self._cluster.location, ignore_errors=True)
        shutil.rmtree(self.folder, ignore_errors=True)
        self._cluster = Cluster(self.folder)

    @property
    def dsn(self) -> str:
        """The address with the role that owns the tables. Plankeeper itself serves with a role that doesn't."""
        return self._cluster.owner_dsn

    @property
    def socket_dir(self) -> str:
        """The folder of the server's socket."""
        return parse_qs(urlsplit(self.dsn).query)["host"][0]

    def program(self, name: str) -> Path:
        """A program of the wheel, such as `psql` or `pgbench`."""
        return binaries.find(None, binaries.server_user(self._cluster.location)).folder / name

    def run(self, statements: str, seconds: float | None = None) -> str:
        """Run statements and return the rows as plain text."""
        return run_program(self._psql(), stdin=statements, seconds=seconds)

    def copy(self, table: str, file: Path, seconds: float | None = None) -> None:
        """Append the rows of a CSV file. Its header names the columns."""
        with file.open() as lines:
            columns = lines.readline().strip()
        statement = f"copy {table} ({columns}) from stdin with (format csv, header)"
        run_program([*self._psql(), "--command", statement], stdin=file, seconds=seconds)

    def unload(self, table: str, file: Path) -> None:
        """Write all rows of a table to a file, as `copy table from` reads them."""
        run_program([*self._psql(), "--command", f"copy {table} to stdout"], stdout=file)

    def vacuum(self) -> None:
        """Vacuum, analyse and checkpoint after a load, so that it does not happen during a measurement."""
        self.run("vacuum (analyze); checkpoint;")

    def pids(self) -> list[int]:
        pid_file = postmaster.read_pid_file(self._cluster.location)
        return process_tree(pid_file.pid) if pid_file else []

    def _psql(self) -> list[str | Path]:
        flags = ["--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--set", "ON_ERROR_STOP=1"]
        return [self.program("psql"), *flags, "--dbname", self.dsn]
