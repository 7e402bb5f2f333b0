"""Import and export beside COPY: the same rows, into and out of the same tables with the same indexes."""

import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.data import TENANT, Dataset
from benchmarks.database import Postgres
from benchmarks.plankeeper import PROGRAM, data_dir, fill_references, import_participants
from benchmarks.processes import ProgramError, processor_seconds, run_program

_EMPTY_TABLES = "truncate participants, stored_counts, events, event_order, event_queue cascade;"


@dataclass(frozen=True)
class Transfer:
    """Rows that a command read or wrote, with the processor time of the command and of PostgreSQL."""

    name: str
    title: str
    rows: int
    seconds: float
    processor_seconds: float

    @property
    def rate(self) -> float:
        return self.rows / self.seconds

    @property
    def processor_us(self) -> float:
        """Microseconds of processor time for each row."""
        return self.processor_seconds / self.rows * 1e6


def measure_transfers(work: Path, data: Dataset) -> list[Transfer]:
    """Import and export participants in a new cluster, then COPY the same participants and events out and in.

    Raises ProgramError if a command fails or loses a row.
    """
    folder = work / "stores" / f"transfers-{data.rows}"
    postgres = Postgres(folder / "data")
    postgres.remove()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        with postgres.running():
            return _measure(postgres, folder, data)
    finally:
        postgres.remove()
        shutil.rmtree(folder, ignore_errors=True)


def _measure(postgres: Postgres, folder: Path, data: Dataset) -> list[Transfer]:
    participants, events = folder / "participants.copy", folder / "events.copy"

    def timed(name: str, title: str, transfer: Callable[[], object]) -> Transfer:
        before, started = _processor_seconds(postgres), time.monotonic()
        transfer()
        seconds = time.monotonic() - started
        return Transfer(name, title, data.rows, round(seconds, 3), round(_processor_seconds(postgres) - before, 3))

    fill_references(postgres, data)
    postgres.vacuum()
    imported = timed(
        "import", "plankeeper import", lambda: import_participants(postgres, TENANT, data.participants, None)
    )
    _verify(postgres, data.rows)
    postgres.vacuum()
    exported = timed("export", "plankeeper export", lambda: _export(postgres, folder / "participants.jsonl"))
    copied_out = timed("copy-out", "COPY out: participants", lambda: postgres.unload("participants", participants))
    postgres.unload("events", events)
    postgres.run(_EMPTY_TABLES)
    postgres.vacuum()
    script = f"begin;\n\\copy participants from '{participants}'\n\\copy events from '{events}'\ncommit;\n"
    copied_in = timed("copy-in", "COPY in: participants and their events", lambda: postgres.run(script))
    _verify(postgres, data.rows)
    return [imported, copied_in, exported, copied_out]


def _processor_seconds(postgres: Postgres) -> float:
    """The processor time so far of PostgreSQL and of the commands that have ended."""
    times = os.times()
    return times.children_user + times.children_system + processor_seconds(postgres.pids())


def _export(postgres: Postgres, file: Path) -> None:
    run_program(
        [*PROGRAM, "export", "participants", "--plan-manager", TENANT], extra_env=data_dir(postgres), stdout=file
    )


def _verify(postgres: Postgres, rows: int) -> None:
    """Raise ProgramError unless each participant has been stored with its event."""
    tables = ("participants", "events where type = 'participant.created'")
    stored = [int(postgres.run(f"select count(*) from {table}")) for table in tables]
    if stored != [rows, rows]:
        raise ProgramError(f"expected {rows} participants and their events, found {stored[0]} and {stored[1]}")
