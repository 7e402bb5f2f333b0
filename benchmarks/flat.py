"""Whether Plankeeper stays as fast as its data grows: with more participants, and with more plan managers."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks.data import dataset
from benchmarks.load import Figures
from benchmarks.peers import Kind, Peer, prepared
from benchmarks.plankeeper import Plankeeper
from benchmarks.report import rate
from benchmarks.results import machine
from benchmarks.run import say
from benchmarks.scenarios import DEEP, FILTERED, GET, TOTAL, Scenario
from benchmarks.tenants import ManyTenants

SCENARIOS = (GET, TOTAL, DEEP, FILTERED)


@dataclass(frozen=True)
class Options:
    """What is compared, and for how long it is measured."""

    work: Path
    out: Path
    few: int = 1_000
    many: int = 1_000_000
    tenants: int = 200
    rounds: int = 3
    seconds: int = 4
    load_seconds: float = 1800
    fresh: bool = False


@dataclass
class _Measured:
    """One server with its data, and every run of it."""

    title: str
    peer: Peer
    runs: dict[Scenario, list[Figures]] = field(default_factory=lambda: {each: [] for each in SCENARIOS})

    def p50(self, scenario: Scenario) -> float:
        return median(each.p50_ms for each in self.runs[scenario])

    def rate(self, scenario: Scenario) -> float:
        return median(each.rate for each in self.runs[scenario])


def flat(options: Options) -> None:
    """Measure, print the table, and write it as `flat.json` and `flat.md`."""
    each = options.many // options.tenants
    kinds: list[tuple[str, Kind, int]] = [
        (f"{options.few:,}", Plankeeper, options.few),
        (f"{options.many:,}", Plankeeper, options.many),
        (f"{options.tenants} x {each:,}", partial(ManyTenants, count=options.tenants), options.many),
    ]
    measured = [_Measured(title, _loaded(options, title, kind, rows)) for title, kind, rows in kinds]
    for number in range(options.rounds):
        for one in measured[number % 3 :] + measured[: number % 3]:
            _turn(options, one, number)
    lines = _table(measured)
    print("\n" + "\n".join(lines), flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "flat.md").write_text("\n".join(lines) + "\n")
    (options.out / "flat.json").write_text(json.dumps(_document(options, measured), indent=2) + "\n")


def _loaded(options: Options, title: str, kind: Kind, rows: int) -> Peer:
    say(f"loading {title} participants")
    peer, loaded = prepared(kind, options.work, dataset(options.work, rows), options.load_seconds, fresh=options.fresh)
    say(f"{title} participants: {loaded.rows:,} loaded in {loaded.seconds} s")
    return peer


def _turn(options: Options, one: _Measured, number: int) -> None:
    with one.peer.running():
        for scenario in SCENARIOS:
            one.peer.probe(scenario)
        one.peer.drive(GET, 1)
        for scenario in SCENARIOS:
            figures = one.peer.drive(scenario, options.seconds)
            one.runs[scenario].append(figures)
            failed = f", {figures.failed:,} FAILED" if figures.failed else ""
            where = f"round {number + 1} of {options.rounds}, {one.title} participants, {scenario.title}"
            say(f"{where}: {rate(figures)}/s, p50 {figures.p50_ms} ms{failed}")


def _table(measured: Sequence[_Measured]) -> list[str]:
    few, many, spread = measured
    head = [
        "p50, ms", few.title, many.title, "many to few", f"requests/s, {many.title}", spread.title, "spread to one"
    ]  # fmt: skip
    rows = [head, ["---"] * len(head)]
    rows += [
        [
            each.title, f"{few.p50(each):.2f}", f"{many.p50(each):.2f}", f"{many.p50(each) / few.p50(each):.2f}",
            f"{many.rate(each):,.0f}", f"{spread.rate(each):,.0f}", f"{spread.rate(each) / many.rate(each):.2f}",
        ]
        for each in SCENARIOS
    ]  # fmt: skip
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    return [f"| {' | '.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))} |" for row in rows]


def _document(options: Options, measured: Sequence[_Measured]) -> dict[str, object]:
    about = machine() | {"rounds": options.rounds, "seconds": options.seconds}
    runs = {one.title: {each.name: [run.as_dict() for run in one.runs[each]] for each in SCENARIOS} for one in measured}
    return {"about": about, "runs": runs}
