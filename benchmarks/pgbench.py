"""The lower bound of every system over PostgreSQL: Plankeeper's statements, prepared, run by pgbench."""

import csv
import re
from dataclasses import replace
from pathlib import Path
from statistics import quantiles

from benchmarks import statements
from benchmarks.bare_peer import BareHandler
from benchmarks.load import CONNECTIONS, THREADS, Load, Measurement
from benchmarks.peers import Memory
from benchmarks.processes import ProgramError, resident_memory, run_program
from benchmarks.scenarios import GET, Scenario, WrongResponseError

_SAMPLING_RATE = 0.05  # of the transactions, for the percentiles
_SESSION = {"PGOPTIONS": "-c jit=off -c random_page_cost=1.1 -c plan_cache_mode=force_generic_plan"}


class PgBench(BareHandler):
    """PostgreSQL alone. The only additional work is the lookup of a random id by its number."""

    name = "pgbench"
    title = "PostgreSQL (pgbench)"

    @property
    def version(self) -> str:
        return run_program([self.postgres.program("pgbench"), "--version"]).split()[2]

    def start(self) -> None:
        self.postgres.start()
        rows = self.folder / "samples.csv"
        with rows.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["number", "sample", "cursors"])
            pairs = zip(self.data.sample(), self.data.cursors(), strict=False)
            self._count = sum(1 for number, pair in enumerate(pairs, 1) if writer.writerow([number, *pair]))
        self.postgres.run("drop table if exists samples; create table samples (number int, sample uuid, cursors uuid)")
        self.postgres.copy("samples", rows)
        self.postgres.run("alter table samples add primary key (number); vacuum (analyze) samples")

    def stop(self) -> None:
        self.postgres.stop()

    def supports(self, scenario: Scenario) -> bool:
        return super().supports(scenario) and not scenario.writes

    def probe(self, scenario: Scenario) -> None:
        row_id = getattr(self.data, scenario.pool)()[0]
        lines = self.postgres.run(_inline_values(scenario, f"'{row_id}'::uuid") + ";").splitlines()
        expected = [row_id] if scenario is GET else self.data.ids_after(row_id, scenario.limit + 1)
        if [line.partition("|")[0] for line in lines] != expected:
            raise WrongResponseError(
                f"{self.title}, {scenario.title}: {len(lines)} rows that differ from the {len(expected)} expected rows"
            )

    def run_load(self, scenario: Scenario, load: Load) -> Measurement:
        folder = self.work / "load"
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("pgbench.*"):
            old.unlink()
        file = folder / "pgbench.sql"
        id_expression = f"(select {scenario.pool} from samples where number = :number)"
        file.write_text(f"\\set number random(1, {self._count})\n{_inline_values(scenario, id_expression)};\n")
        before = self.processor_seconds()
        options = f"--no-vacuum --protocol prepared --client {CONNECTIONS} --jobs {THREADS} --time {load.seconds} --log"
        options += f" --sampling-rate {_SAMPLING_RATE}"
        files = ["--file", file, "--log-prefix", folder / "pgbench"]
        command = [self.postgres.program("pgbench"), *options.split(), *files, self.postgres.dsn]
        output = run_program(command, extra_env=_SESSION)
        used = self.processor_seconds() - before
        return replace(_parse_output(output, folder), processor_seconds=round(used, 3))

    def memory(self) -> Memory:
        return Memory(0, 0, sum(resident_memory(self.postgres.pids())))


def _inline_values(scenario: Scenario, id_expression: str) -> str:
    """The statement of a scenario with inlined values and an SQL expression for the id."""
    statement = statements.statement(scenario)
    values = statement.bind("", scenario.limit)
    texts = [str(value) if isinstance(value, int) else f"'{value}'::uuid" for value in values]
    texts[statement.id_at] = id_expression
    return re.sub(r"\$(\d+)", lambda match: texts[int(match[1]) - 1], statement.text).strip()


def _parse_output(output: str, folder: Path) -> Measurement:
    rate = re.search(r"^tps = ([0-9.]+)", output, re.MULTILINE)
    processed = re.search(r"actually processed: (\d+)", output)
    failed = re.search(r"failed transactions: (\d+)", output)
    if not rate or not processed or not failed:
        raise ProgramError(f"pgbench printed no result: {output[-500:]}")
    logs = [line for log in folder.glob("pgbench.*") if log.suffix != ".sql" for line in log.read_text().splitlines()]
    percentiles = quantiles([int(line.split()[2]) / 1000 for line in logs], n=100)
    p50, p99 = round(percentiles[49], 3), round(percentiles[98], 3)
    return Measurement(int(processed[1]), int(processed[1]) / float(rate[1]), p50, p99, int(failed[1]))
