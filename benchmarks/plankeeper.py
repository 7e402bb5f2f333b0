"""Plankeeper in its standard setup: `plankeeper serve` with the embedded PostgreSQL, loaded by `plankeeper import`."""

import sys
import time
from pathlib import Path

from benchmarks.data import COLUMNS, REFERENCES, STATE, TENANT, Dataset
from benchmarks.database import Postgres
from benchmarks.peers import PostgresPeer
from benchmarks.processes import run_program
from plankeeper import __version__

PROGRAM: list[str | Path] = [sys.executable, "-m", "plankeeper"]
MIGRATIONS = "../src/plankeeper/database/migrations"


def run_command(postgres: Postgres, *arguments: str, stdin: Path | str | None = None, seconds: float | None) -> str:
    """Run a Plankeeper command on this cluster. The command migrates the schema first."""
    return run_program([*PROGRAM, *arguments], extra_env=data_dir(postgres), stdin=stdin, seconds=seconds).strip()


def data_dir(postgres: Postgres) -> dict[str, str]:
    """The setting that makes a command use this cluster."""
    return {"PLANKEEPER_DATA_DIR": str(postgres.folder)}


def fill_references(postgres: Postgres, data: Dataset, tenant: str = TENANT) -> None:
    """Create the schema, a plan manager, and the records that its participants refer to."""
    run_command(postgres, "plan-managers", "create", "--name", "Benchmark", "--id", tenant, seconds=60)
    for resource in ("exit-reasons", "account-managers"):
        file = data.folder / f"{resource}.csv"
        run_command(postgres, "import", resource, "-", "--plan-manager", tenant, stdin=file, seconds=60)


def import_participants(postgres: Postgres, tenant: str, stdin: Path | str, seconds: float | None) -> None:
    run_command(postgres, "import", "participants", "-", "--plan-manager", tenant, stdin=stdin, seconds=seconds)


# PostgreSQL plans statements for an average plan manager. Beside many small ones, such a plan can be wrong for a large
# one.
_SMALL_OFFICES = """
with offices as (
    insert into plan_managers (id, name)
    select gen_random_uuid(), 'Small office' from generate_series(1, 50)
    returning id
), source as (
    select * from participants order by id limit 200
)
insert into participants (plan_manager_id, {columns}) select offices.id, {values} from offices, source;
insert into stored_counts (plan_manager_id, list, status, second_status, count)
select plan_manager_id, 'participants', status, coalesce(state, ''), count(*) from participants
where plan_manager_id <> '{tenant}' group by plan_manager_id, status, state;
"""


def add_small_offices(postgres: Postgres) -> None:
    """Add fifty plan managers with 200 participants each, which have no references."""
    own = [each for each in COLUMNS if each not in REFERENCES]
    columns, values = ", ".join(own), ", ".join(f"source.{each}" for each in own)
    postgres.run(_SMALL_OFFICES.format(columns=columns, values=values, tenant=TENANT))


class Plankeeper(PostgresPeer):
    """Plankeeper."""

    name = "plankeeper"
    title = "Plankeeper"
    data_sources = ("plankeeper.py", MIGRATIONS)
    path = "/api/public/v1/participants"
    state = STATE.lower()
    tenant_header = TENANT

    @property
    def version(self) -> str:
        return __version__

    @property
    def _key(self) -> Path:
        return self.folder / "key.txt"

    def fill(self, deadline: float) -> None:
        fill_references(self.postgres, self.data)
        import_participants(self.postgres, TENANT, self.data.participants, deadline - time.monotonic())
        add_small_offices(self.postgres)
        self.create_key(TENANT)

    def wait_until_idle(self) -> None:
        """Wait until all events of the import are sequenced."""
        with self.running():
            while int(self.postgres.run("select count(*) from event_queue")):
                time.sleep(1)
            self.postgres.vacuum()

    def create_key(self, *tenants: str) -> None:
        plan_manager_options = [part for tenant in tenants for part in ("--plan-manager", tenant)]
        key = run_command(self.postgres, "keys", "create", "--name", "benchmark", *plan_manager_options, seconds=60)
        self._key.touch(mode=0o600)
        self._key.write_text(key)

    def command(self) -> tuple[list[str | Path], dict[str, str]]:
        # Requests are counted, as in production, but never exceed the limit.
        env = data_dir(self.postgres) | {"PLANKEEPER_RATE_LIMIT": "1000000000/minute"}
        return [*PROGRAM, "serve", "--port", str(self.port), "--workers", str(self.workers)], env

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._key.read_text()}", "X-Plan-Manager-Id": self.tenant_header}


class PlankeeperByCopy(Plankeeper):
    """Loads participants with COPY, without events or counts, for work on the benchmark itself."""

    @property
    def store(self) -> str:
        return "plankeeper-by-copy"

    def fill(self, deadline: float) -> None:
        fill_by_copy(self.postgres, self.data, deadline)
        self.create_key(TENANT)


def fill_by_copy(postgres: Postgres, data: Dataset, deadline: float) -> None:
    """Load the participants into Plankeeper's table, without the other rows that an import writes."""
    fill_references(postgres, data)
    postgres.run(f"alter table participants alter plan_manager_id set default '{TENANT}'")
    postgres.copy("participants", data.participants, deadline - time.monotonic())
    postgres.run("alter table participants alter plan_manager_id drop default")
    add_small_offices(postgres)
