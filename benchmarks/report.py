"""Formats the results as tables for a terminal and in Markdown."""

from collections.abc import Callable

from benchmarks.load import Measurement
from benchmarks.markdown import markdown_table
from benchmarks.results import BASELINE, SizeResults, SystemResults
from benchmarks.scenarios import Scenario
from benchmarks.targets import target_lines

_COLUMNS = ("requests/s", "p50 ms", "p99 ms", "CPU us", "1/2: p50", "p99 ms", "Plankeeper is")
_WIDTHS = (12, 10, 10, 10, 10, 10, 15)
_NAME_WIDTH = 33
_LEGEND = (
    "CPU us: processor time of all processes of the system for each request. 1/2: at half of the requests per second."
)


def table(size: SizeResults) -> str:
    """The results of one size for a terminal: targets, a block per scenario, then memory, loading and transfers."""
    title = f"{size.rows:,} participants"
    lines = [title, "=" * len(title), "", *target_lines(size), "", _LEGEND]
    for scenario in size.scenarios:
        lines += ["", _line(scenario.title, *_COLUMNS)]
        lines += [_measured_line(size, system, scenario) for system in size.systems if system.median(scenario)]
    lines += ["", _line("memory, MB", "own", "largest", "database", "together")]
    lines += [_memory_line(system) for system in size.systems if system.memory.own]
    lines += ["", _line("loading", "rows", "seconds", "rows/s")]
    lines += [_load_line(system) for system in size.systems]
    if size.transfers:
        lines += ["", *markdown_table(_transfer_rows(size))]
    return "\n".join([*lines, *_notes(size), ""])


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


def format_ratio(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:,.0f} x" if ratio >= 20 else f"{ratio:.2f} x"


def _line(name: str, *cells: str) -> str:
    return f"{name:{_NAME_WIDTH}}" + "".join(map(str.rjust, cells, _WIDTHS[: len(cells)]))


def _measured_line(size: SizeResults, system: SystemResults, scenario: Scenario) -> str:
    measurement, half_load = system.median(scenario), system.half_load_median(scenario)
    if measurement is None:
        return ""
    failed = f"  {measurement.failed:,} of {measurement.requests:,} failed" if measurement.failed else ""
    name = ("  (" + system.title + ")") if system.is_floor else "  " + system.title
    times = [f"{measurement.p50_ms:.2f}", f"{measurement.p99_ms:.2f}", f"{system.processor_us(scenario):,.0f}"]
    half = [f"{half_load.p50_ms:.2f}", f"{half_load.p99_ms:.2f}"] if half_load else ["", ""]
    return _line(name, format_rate(measurement), *times, *half, format_ratio(size.ratio(system, scenario))) + failed


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
    parts += [format_ratio(ratio).replace(" x", "×")] if ratio else []
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


def _memory_line(system: SystemResults) -> str:
    own, largest, postgres = _megabytes(system)
    return _line(f"  {system.title}", f"{own:.0f}", f"{largest:.0f}", f"{postgres:.0f}", f"{own + postgres:.0f}")


def _memory_cell(system: SystemResults) -> str:
    own, _, postgres = _megabytes(system)
    return f"{own:.0f} + {postgres:.0f}" if own else ""


def _megabytes(system: SystemResults) -> tuple[float, float, float]:
    memory = system.memory
    return memory.own / 1e6, memory.largest / 1e6, memory.postgres / 1e6


def _load_line(system: SystemResults) -> str:
    load_info = system.load_info
    return _line(f"  {system.title}", f"{load_info.rows:,}", f"{load_info.seconds:.1f}", f"{_load_rate(system):,.0f}")


def _load_rate(system: SystemResults) -> float:
    return system.load_info.rows / max(system.load_info.seconds, 0.1)


def _notes(size: SizeResults) -> list[str]:
    incomplete = [each for each in size.systems if each.load_info.rows < size.rows]
    notes = [
        f"{each.title} could not load {size.rows:,} rows in time. Its results are for {each.load_info.rows:,} rows."
        for each in incomplete
    ]
    return notes + [f"{each.title} failed: {error.splitlines()[-1]}" for each in size.systems for error in each.errors]
