"""Measures all systems in rounds, and writes the results."""

import json
import time
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict

from benchmarks.data import Dataset, dataset
from benchmarks.install import install
from benchmarks.load import Load, Measurement
from benchmarks.peers import Peer, prepare_peer
from benchmarks.plankeeper import PlankeeperByCopy
from benchmarks.processes import ProgramError
from benchmarks.report import format_rate, markdown
from benchmarks.results import BASELINE, SizeResults, SystemResults, machine
from benchmarks.scenarios import Scenario, WrongResponseError
from benchmarks.systems import SYSTEMS
from benchmarks.transfers import measure_transfers

_WARM_UP_SECONDS = 1  # for connections and caches


def run(options: Namespace) -> bool:
    """Measure, and write tables and JSON to `options.out`. Returns whether all systems succeeded."""
    install(options.work)
    started = time.monotonic()
    sizes: list[SizeResults] = []
    for rows in options.sizes:
        sizes.append(_measure(options, rows))
        _write(options, sizes)
    for size in sizes:
        print(f"\n{markdown(size)}", flush=True)
    print(f"{time.monotonic() - started:,.0f} s in total. Tables and JSON are in {options.out}.")
    return not any(system.errors for size in sizes for system in size.systems)


def _write(options: Namespace, sizes: Sequence[SizeResults]) -> None:
    """Write the results so far, so that an interrupted run leaves some."""
    options.out.mkdir(parents=True, exist_ok=True)
    about = machine() | {"rounds": options.rounds, "seconds": options.seconds}
    document = {"about": about, "sizes": [asdict(size) for size in sizes]}
    (options.out / "results.json").write_text(json.dumps(document, indent=2) + "\n")
    (options.out / "results.md").write_text("\n".join(markdown(size) for size in sizes))


def _measure(options: Namespace, rows: int) -> SizeResults:
    """Measure one size: first all rounds of reads, on exactly the loaded data, then the writes."""
    log(f"{rows:,} participants: generating the data set")
    data = dataset(options.work, rows)
    results = SizeResults(rows, list(options.scenarios))
    if not options.no_transfers and BASELINE in options.systems:
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


def _prepare(options: Namespace, name: str, data: Dataset, results: SizeResults) -> tuple[Peer, SystemResults]:
    peer_type = PlankeeperByCopy if options.by_copy and name == PlankeeperByCopy.name else SYSTEMS[name]
    log(f"{data.rows:,} participants: loading {peer_type.title}")
    peer, load_info = prepare_peer(peer_type, options.work, data, options.load_minutes * 60, fresh=options.fresh)
    log(f"{data.rows:,} participants: {peer.title} holds {load_info.rows:,}, loaded in {load_info.seconds} s")
    return peer, results.add(peer, load_info)


def _run_turn(
    options: Namespace, peer: Peer, system_results: SystemResults, scenarios: Sequence[Scenario], number: int
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
