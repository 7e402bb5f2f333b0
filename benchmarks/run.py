"""Measures all systems in rounds, and writes the results."""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.chart import chart
from benchmarks.data import Dataset, dataset
from benchmarks.install import install
from benchmarks.load import Load, Measurement
from benchmarks.peers import Peer, prepare_peer
from benchmarks.plankeeper import PlankeeperByCopy
from benchmarks.processes import ProgramError
from benchmarks.report import format_rate, markdown, table
from benchmarks.results import BASELINE, SizeResults, SystemResults, machine
from benchmarks.scenarios import SCENARIOS, Scenario, WrongResponseError
from benchmarks.systems import SYSTEMS
from benchmarks.transfers import measure_transfers

_WARM_UP_SECONDS = 1  # for connections and caches


@dataclass(frozen=True)
class Options:
    """What to measure, and for how long."""

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
    transfers: bool = True

    def peer_type(self, name: str) -> type[Peer]:
        return PlankeeperByCopy if self.by_copy and name == PlankeeperByCopy.name else SYSTEMS[name]


def run(options: Options) -> bool:
    """Measure, and write tables, JSON and charts to `options.out`. Returns whether all systems succeeded."""
    install(options.work)
    started = time.monotonic()
    sizes: list[SizeResults] = []
    for rows in options.sizes:
        sizes.append(_measure(options, rows))
        _write(options, sizes)
    for size in sizes:
        print(f"\n{table(size)}", flush=True)
    print(f"{time.monotonic() - started:,.0f} s in total. Tables, JSON and charts are in {options.out}.")
    return not any(system.errors for size in sizes for system in size.systems)


def _write(options: Options, sizes: Sequence[SizeResults]) -> None:
    """Write the results so far, so that an interrupted run leaves some."""
    options.out.mkdir(parents=True, exist_ok=True)
    about = machine() | {"rounds": options.rounds, "seconds": options.seconds}
    document = {"about": about, "sizes": [size.as_dict() for size in sizes]}
    (options.out / "results.json").write_text(json.dumps(document, indent=2) + "\n")
    (options.out / "results.md").write_text("\n".join(markdown(size) for size in sizes))
    for size in sizes:
        (options.out / f"participants-{size.rows}.svg").write_text(chart(size))


def _measure(options: Options, rows: int) -> SizeResults:
    """Measure one size: first all rounds of reads, on exactly the loaded data, then the writes."""
    log(f"{rows:,} participants: generating the data set")
    data = dataset(options.work, rows)
    results = SizeResults(rows, list(options.scenarios))
    if options.transfers and BASELINE in options.systems:
        log(f"{data.rows:,} participants: import, export and COPY")
        results.transfers = measure_transfers(options.work, data)
    peers = [_prepare(options, name, data, results) for name in options.systems]
    for writes in (False, True):
        scenarios = [each for each in options.scenarios if each.writes is writes]
        for number in range(options.rounds):
            start = number % len(peers)
            for peer, system_results in peers[start:] + peers[:start]:
                if supported := [each for each in scenarios if peer.supports(each)]:
                    _run_turn(options, peer, system_results, supported, number)
    return results


def _prepare(options: Options, name: str, data: Dataset, results: SizeResults) -> tuple[Peer, SystemResults]:
    peer_type = options.peer_type(name)
    log(f"{data.rows:,} participants: loading {peer_type.title}")
    peer, load_info = prepare_peer(peer_type, options.work, data, options.load_seconds, fresh=options.fresh)
    log(f"{data.rows:,} participants: {peer.title} holds {load_info.rows:,}, loaded in {load_info.seconds} s")
    return peer, results.add(peer, load_info)


def _run_turn(
    options: Options, peer: Peer, system_results: SystemResults, scenarios: Sequence[Scenario], number: int
) -> None:
    """Measure one system while no other runs. After an error, the rest of its turn is skipped."""
    label = f"{system_results.load_info.rows:,} participants, round {number + 1} of {options.rounds}, {peer.title}"
    try:
        with peer.running(writes=scenarios[0].writes):
            for scenario in scenarios:
                peer.probe(scenario)
            peer.run_load(scenarios[0], Load(_WARM_UP_SECONDS))
            for scenario in scenarios:
                measurement = peer.run_load(scenario, Load(options.seconds))
                system_results.runs.setdefault(scenario.name, []).append(measurement)
                log(f"{label}: {scenario.title}: {_summary(measurement)}")
                if scenario.half_load and measurement.rate and not peer.is_floor:
                    half = peer.run_load(scenario, Load(options.seconds, rate=measurement.rate / 2))
                    system_results.half_load_runs.setdefault(scenario.name, []).append(half)
                    log(f"{label}: {scenario.title} at half load: {_summary(half)}")
            system_results.record_memory(peer.memory())
    except (ProgramError, WrongResponseError) as error:
        log(f"{label}: {error}")
        if str(error) not in system_results.errors:
            system_results.errors.append(str(error))


def _summary(measurement: Measurement) -> str:
    failed = f", {measurement.failed:,} FAILED" if measurement.failed else ""
    latency = f"p50 {measurement.p50_ms} ms, p99 {measurement.p99_ms} ms"
    return f"{format_rate(measurement)}/s, {latency}, {measurement.processor_us:,.0f} µs of processor time{failed}"


def log(message: str) -> None:
    print(time.strftime("%H:%M:%S"), message, flush=True)
