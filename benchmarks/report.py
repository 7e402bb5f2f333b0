"""Formats the results as tables in Markdown."""

from collections.abc import Callable

from benchmarks.load import Measurement
from benchmarks.markdown import markdown_table
from benchmarks.results import BASELINE, SizeResults, SystemResults
from benchmarks.scenarios import Scenario
from benchmarks.targets import target_lines


def markdown(size: SizeResults) -> str:
    """The results of one size in Markdown: the targets, then tables with a row per scenario and a column per system."""
    rates = [_header(size), *_scenario_rows(size, lambda *each: _cell(size, *each))]
    processor_times = [_header(size), *_scenario_rows(size, lambda *each: _processor_cell(size, *each))]
    rates.append(["memory (own + PostgreSQL), MB", *(_memory_cell(system) for system in size.systems)])
    rates.append(["loading, rows per second", *(f"{_load_rate(system):,.0f}" for system in size.systems)])
    sections = [
        ("Requests per second beside the targets", target_lines(size)),
        (
            "Requests per second · p50 / p99 in ms · Plankeeper's requests per request of the system",
            markdown_table(rates),
        ),
        (
            "Processor time of all processes of the system for each request in µs · in relation to Plankeeper's",
            markdown_table(processor_times),
        ),
        (
            "At half of the maximum rate: requests per second · p50 / p99 in ms",
            markdown_table([_header(size), *_scenario_rows(size, _half_load_cell)]),
        ),
    ]
    if size.transfers:
        sections.append(("Import and export beside COPY", markdown_table(_transfer_rows(size))))
    versions = ", ".join(f"{system.title} ({system.version})" for system in size.systems)
    lines = [f"### {size.rows:,} participants", ""]
    for legend, table_lines in sections:
        lines += [f"{legend}:", "", *table_lines, ""]
    return "\n".join([*lines, f"Versions: {versions}.", *_notes(size), ""])


def format_rate(measurement: Measurement) -> str:
    """Requests per second with significant digits only, or `none` without any response."""
    if not measurement.rate:
        return f"none in {measurement.seconds:.0f} s"
    return f"{measurement.rate:,.0f}" if measurement.rate >= 100 else f"{measurement.rate:.3g}"


def _header(size: SizeResults) -> list[str]:
    return ["", *(system.title for system in size.systems)]


def _scenario_rows(size: SizeResults, cell: Callable[[SystemResults, Scenario], str]) -> list[list[str]]:
    """A row of cells for each scenario of which a cell isn't empty."""
    rows = [[scenario.title, *(cell(system, scenario) for system in size.systems)] for scenario in size.scenarios]
    return [row for row in rows if any(row[1:])]


def _cell(size: SizeResults, system: SystemResults, scenario: Scenario) -> str:
    measurement = system.median(scenario)
    if measurement is None:
        return ""
    ratio = size.ratio(system, scenario)
    parts = [f"**{format_rate(measurement)}**", f"{measurement.p50_ms:.1f} / {measurement.p99_ms:.1f}"]
    parts += [f"{ratio:,.0f}×" if ratio >= 20 else f"{ratio:.2f}×"] if ratio else []
    parts += [f"{measurement.failed:,} failed"] if measurement.failed else []
    return " · ".join(parts)


def _processor_cell(size: SizeResults, system: SystemResults, scenario: Scenario) -> str:
    time, plankeeper = system.processor_us(scenario), size.find(BASELINE)
    if not time:
        return ""
    own_time = plankeeper and plankeeper is not system and plankeeper.processor_us(scenario)
    return f"{time:,.0f}" + (f" · {time / own_time:.2f}×" if own_time else "")


def _half_load_cell(system: SystemResults, scenario: Scenario) -> str:
    run = system.half_load_median(scenario)
    return "" if run is None else f"{format_rate(run)} · {run.p50_ms:.1f} / {run.p99_ms:.1f}"


def _transfer_rows(size: SizeResults) -> list[list[str]]:
    header = ["", "rows per second", "seconds", "processor time per row, us"]
    rows = [
        [each.title, f"{each.rate:,.0f}", f"{each.seconds:.1f}", f"{each.processor_us:.1f}"] for each in size.transfers
    ]
    return [header, *rows]


def _memory_cell(system: SystemResults) -> str:
    memory = system.memory
    return f"{memory.own / 1e6:.0f} + {memory.postgres / 1e6:.0f}" if memory.own else ""


def _load_rate(system: SystemResults) -> float:
    return system.load_info.rows / max(system.load_info.seconds, 0.1)


def _notes(size: SizeResults) -> list[str]:
    incomplete = [each for each in size.systems if each.load_info.rows < size.rows]
    notes = [
        f"{each.title} could not load {size.rows:,} rows in time. Its results are for {each.load_info.rows:,} rows."
        for each in incomplete
    ]
    return notes + [f"{each.title} failed: {error.splitlines()[-1]}" for each in size.systems for error in each.errors]
