"""Measures whether Plankeeper stays equally fast with more participants and with more plan managers."""

import json
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from statistics import median

from benchmarks.data import dataset
from benchmarks.load import Load, Measurement
from benchmarks.markdown import markdown_table
from benchmarks.peers import Peer, PeerFactory, prepare_peer
from benchmarks.plankeeper import Plankeeper
from benchmarks.report import format_rate
from benchmarks.results import machine
from benchmarks.run import log
from benchmarks.scenarios import DEEP, FILTERED, GET, TOTAL, Scenario
from benchmarks.tenants import ManyTenants

SCENARIOS = (GET, TOTAL, DEEP, FILTERED)
_LOAD_SECONDS = 1800


@dataclass
class _Series:
    """One server with its data and measurements."""

    title: str
    peer: Peer
    runs: dict[Scenario, list[Measurement]] = field(default_factory=lambda: {each: [] for each in SCENARIOS})

    def p50(self, scenario: Scenario) -> float:
        return median(each.p50_ms for each in self.runs[scenario])

    def rate(self, scenario: Scenario) -> float:
        return median(each.rate for each in self.runs[scenario])


def flat(options: Namespace) -> None:
    """Measure, print the table, and write `flat.json` and `flat.md`."""
    rows_per_tenant = options.many // options.tenants
    servers: list[tuple[str, PeerFactory, int]] = [
        (f"{options.few:,}", Plankeeper, options.few),
        (f"{options.many:,}", Plankeeper, options.many),
        (f"{options.tenants} x {rows_per_tenant:,}", partial(ManyTenants, count=options.tenants), options.many),
    ]
    series = [_Series(title, _load_peer(options, title, factory, rows)) for title, factory, rows in servers]
    for number in range(options.rounds):
        for item in series[number % 3 :] + series[: number % 3]:
            _run_round(options, item, number)
    lines = _table(series)
    print("\n" + "\n".join(lines), flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "flat.md").write_text("\n".join(lines) + "\n")
    about = machine() | {"rounds": options.rounds, "seconds": options.seconds}
    runs = {item.title: {each.name: [asdict(run) for run in item.runs[each]] for each in SCENARIOS} for item in series}
    (options.out / "flat.json").write_text(json.dumps({"about": about, "runs": runs}, indent=2) + "\n")


def _load_peer(options: Namespace, title: str, factory: PeerFactory, rows: int) -> Peer:
    log(f"loading {title} participants")
    peer, load_info = prepare_peer(
        factory, options.work, dataset(options.work, rows), _LOAD_SECONDS, fresh=options.fresh
    )
    log(f"{title} participants: {load_info.rows:,} loaded in {load_info.seconds} s")
    return peer


def _run_round(options: Namespace, series: _Series, number: int) -> None:
    with series.peer.running():
        for scenario in SCENARIOS:
            series.peer.probe(scenario)
        series.peer.run_load(GET, Load(1))
        for scenario in SCENARIOS:
            measurement = series.peer.run_load(scenario, Load(options.seconds))
            series.runs[scenario].append(measurement)
            failed = f", {measurement.failed:,} FAILED" if measurement.failed else ""
            label = f"round {number + 1} of {options.rounds}, {series.title} participants, {scenario.title}"
            log(f"{label}: {format_rate(measurement)}/s, p50 {measurement.p50_ms} ms{failed}")


def _table(series: Sequence[_Series]) -> list[str]:
    few, many, many_tenants = series
    header = ["p50, ms", few.title, many.title, "many to few"]
    header += [f"requests/s, {many.title}", many_tenants.title, "spread to one"]
    rows = [
        [
            each.title,
            f"{few.p50(each):.2f}",
            f"{many.p50(each):.2f}",
            f"{many.p50(each) / few.p50(each):.2f}",
            f"{many.rate(each):,.0f}",
            f"{many_tenants.rate(each):,.0f}",
            f"{many_tenants.rate(each) / many.rate(each):.2f}",
        ]
        for each in SCENARIOS
    ]
    return markdown_table([header, *rows])
