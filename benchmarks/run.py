"""The whole measurement: every system in turn, round after round, and what came out of it."""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.chart import chart
from benchmarks.data import Dataset, dataset
from benchmarks.install import install
from benchmarks.peers import Peer, prepared
from benchmarks.plankeeper import PlankeeperByCopy
from benchmarks.processes import ProgramError
from benchmarks.report import markdown, rate, table
from benchmarks.results import SizeResults, SystemResults, machine
from benchmarks.scenarios import SCENARIOS, Scenario, WrongAnswer
from benchmarks.systems import SYSTEMS

_WARM_UP = 1  # second, for connections and caches


@dataclass(frozen=True)
class Options:
    """What is measured, and for how long."""

    work: Path
    out: Path
    systems: Sequence[str]
    sizes: Sequence[int]
    scenarios: Sequence[Scenario] = SCENARIOS
    rounds: int = 3
    seconds: int = 4
    load_seconds: float = 600
    fresh: bool = False
    by_copy: bool = False

    def kind(self, name: str) -> type[Peer]:
        return PlankeeperByCopy if self.by_copy and name == PlankeeperByCopy.name else SYSTEMS[name]


def run(options: Options) -> bool:
    """Measure, and write tables, figures and charts into `options.out`: whether nothing went wrong."""
    install(options.work)
    began = time.monotonic()
    sizes: list[SizeResults] = []
    for rows in options.sizes:
        sizes.append(_measure(options, rows))
        _write(options, sizes)
    for size in sizes:
        print(f"\n{table(size)}", flush=True)
    print(f"{time.monotonic() - began:,.0f} s in all. Tables, figures and charts are in {options.out}.")
    return not any(system.faults for size in sizes for system in size.systems)


def _write(options: Options, sizes: Sequence[SizeResults]) -> None:
    """What there is so far: a long run that breaks off leaves something."""
    options.out.mkdir(parents=True, exist_ok=True)
    about = machine() | {"rounds": options.rounds, "seconds": options.seconds}
    document = {"about": about, "sizes": [size.as_dict() for size in sizes]}
    (options.out / "results.json").write_text(json.dumps(document, indent=2) + "\n")
    (options.out / "results.md").write_text("\n".join(markdown(size) for size in sizes))
    for size in sizes:
        (options.out / f"participants-{size.rows}.svg").write_text(chart(size))


def _measure(options: Options, rows: int) -> SizeResults:
    """One size: first what only reads, in all rounds, so that it meets exactly what was loaded; then what writes."""
    say(f"{rows:,} participants: making the data set")
    data = dataset(options.work, rows)
    results = SizeResults(rows, list(options.scenarios))
    peers = [_prepared(options, name, data, results) for name in options.systems]
    for writes in (False, True):
        chosen = [each for each in options.scenarios if each.writes is writes]
        for number in range(options.rounds):
            start = number % len(peers)
            for peer, kept in peers[start:] + peers[:start]:
                if taken := [each for each in chosen if peer.takes(each)]:
                    _turn(options, peer, kept, taken, number)
    return results


def _prepared(options: Options, name: str, data: Dataset, results: SizeResults) -> tuple[Peer, SystemResults]:
    kind = options.kind(name)
    say(f"{data.rows:,} participants: loading {kind.title}")
    peer, loaded = prepared(kind, options.work, data, options.load_seconds, fresh=options.fresh)
    say(f"{data.rows:,} participants: {peer.title} holds {loaded.rows:,}, loaded in {loaded.seconds} s")
    return peer, results.add(peer, loaded)


def _turn(options: Options, peer: Peer, kept: SystemResults, scenarios: Sequence[Scenario], number: int) -> None:
    """One system's turn: it alone runs. A fault of its own costs it the rest of the turn, and nobody else anything."""
    where = f"{kept.loaded.rows:,} participants, round {number + 1} of {options.rounds}, {peer.title}"
    try:
        with peer.running(writes=scenarios[0].writes):
            for scenario in scenarios:
                peer.probe(scenario)
            peer.drive(scenarios[0], _WARM_UP)
            for scenario in scenarios:
                figures = peer.drive(scenario, options.seconds)
                kept.runs.setdefault(scenario.name, []).append(figures)
                failed = f", {figures.failed:,} FAILED" if figures.failed else ""
                latency = f"p50 {figures.p50_ms} ms, p99 {figures.p99_ms} ms"
                say(f"{where}: {scenario.title}: {rate(figures)}/s, {latency}{failed}")
            kept.remember(peer.memory())
    except (ProgramError, WrongAnswer) as fault:
        say(f"{where}: {fault}")
        if str(fault) not in kept.faults:
            kept.faults.append(str(fault))


def say(line: str) -> None:
    print(time.strftime("%H:%M:%S"), line, flush=True)
