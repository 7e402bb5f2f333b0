"""The floor of whatever stands over PostgreSQL: Plankeeper's statements, prepared, sent by pgbench."""

import csv
import re
from pathlib import Path
from statistics import quantiles

from benchmarks import statements
from benchmarks.bare_peer import Bare
from benchmarks.load import CONNECTIONS, THREADS, Figures
from benchmarks.peers import Memory
from benchmarks.processes import ProgramError, finish, held
from benchmarks.scenarios import GET, Scenario, WrongAnswer

_LOGGED = 0.05  # of the transactions, for the percentiles
_SESSION = {"PGOPTIONS": "-c jit=off -c random_page_cost=1.1 -c plan_cache_mode=force_generic_plan"}


class PgBench(Bare):
    """PostgreSQL without anything before it; a look-up of the drawn id by its number is the one thing more."""

    name = "pgbench"
    title = "PostgreSQL (pgbench)"

    @property
    def version(self) -> str:
        return finish([self.postgres.program("pgbench"), "--version"]).split()[2]

    def start(self) -> None:
        self.postgres.start()
        rows = self.folder / "drawn.csv"
        with rows.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["number", "sample", "cursors"])
            drawn = zip(self.data.sample(), self.data.cursors(), strict=False)
            self._count = sum(1 for number, pair in enumerate(drawn, 1) if writer.writerow([number, *pair]))
        self.postgres.run("drop table if exists drawn; create table drawn (number int, sample uuid, cursors uuid)")
        self.postgres.copy("drawn", rows)
        self.postgres.run("alter table drawn add primary key (number); vacuum (analyze) drawn")

    def stop(self) -> None:
        self.postgres.stop()

    def probe(self, scenario: Scenario) -> None:
        asked = getattr(self.data, scenario.pool)()[0]
        lines = self.postgres.run(_literal(scenario, f"'{asked}'::uuid") + ";").splitlines()
        expected = [asked] if scenario is GET else self.data.behind(asked, scenario.limit + 1)
        if [line.partition("|")[0] for line in lines] != expected:
            raise WrongAnswer(
                f"{self.title}, {scenario.title}: {len(lines)} other rows than the {len(expected)} expected"
            )

    def drive(self, scenario: Scenario, seconds: int, connections: int = CONNECTIONS) -> Figures:
        folder = self.work / "load"
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("pgbench.*"):
            old.unlink()
        file = folder / "pgbench.sql"
        drawn = f"(select {scenario.pool} from drawn where number = :number)"
        file.write_text(f"\\set number random(1, {self._count})\n{_literal(scenario, drawn)};\n")
        said = finish(
            [
                self.postgres.program("pgbench"), "--no-vacuum", "--protocol", "prepared", "--file", file,
                "--client", str(connections), "--jobs", str(THREADS), "--time", str(seconds),
                "--log", "--log-prefix", folder / "pgbench", "--sampling-rate", str(_LOGGED), self.postgres.dsn,
            ],
            more=_SESSION,
        )  # fmt: skip
        return _figures(said, folder)

    def memory(self) -> Memory:
        return Memory(0, 0, sum(held(self.postgres.pids())))


def _literal(scenario: Scenario, drawn: str) -> str:
    """The statement of a scenario with its values in it, `drawn` in place of the id."""
    statement = statements.get_one() if scenario is GET else statements.page()
    values = statement.filled("", scenario.limit)
    texts = [str(value) if isinstance(value, int) else f"'{value}'::uuid" for value in values]
    texts[statement.id_at] = drawn
    return re.sub(r"\$(\d+)", lambda found: texts[int(found[1]) - 1], statement.text).strip()


def _figures(said: str, folder: Path) -> Figures:
    rate = re.search(r"^tps = ([0-9.]+)", said, re.MULTILINE)
    done = re.search(r"actually processed: (\d+)", said)
    failed = re.search(r"failed transactions: (\d+)", said)
    if not rate or not done or not failed:
        raise ProgramError(f"pgbench gave no result: {said[-500:]}")
    logs = [line for log in folder.glob("pgbench.*") if log.suffix != ".sql" for line in log.read_text().splitlines()]
    cuts = quantiles([int(line.split()[2]) / 1000 for line in logs], n=100)
    return Figures(int(done[1]), int(done[1]) / float(rate[1]), round(cuts[49], 3), round(cuts[98], 3), int(failed[1]))
