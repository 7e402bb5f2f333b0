"""Formats the results as tables for a terminal and in Markdown."""

from benchmarks.load import Measurement
from benchmarks.results import SizeResults, SystemResults
from benchmarks.scenarios import Scenario

_HEADER = f"{'':26}{'requests/s':>12}{'p50 ms':>10}{'p99 ms':>10}{'Plankeeper is':>15}"


def table(size: SizeResults) -> str:
    """The results of one size for a terminal: a block per scenario, then memory and load times."""
    lines = [f"{size.rows:,} participants", "=" * len(_HEADER)]
    for scenario in size.scenarios:
        lines += ["", f"{scenario.title:26}{_HEADER[26:]}"]
        lines += [_line(size, system, scenario) for system in size.systems if system.median(scenario)]
    lines += ["", f"{'memory, MB':26}{'own':>12}{'largest':>10}{'database':>10}{'together':>15}"]
    lines += [_memory_line(system) for system in size.systems if system.memory.own]
    lines += ["", f"{'loading':26}{'rows':>12}{'seconds':>10}{'rows/s':>10}"]
    lines += [_load_line(system) for system in size.systems]
    return "\n".join([*lines, *_notes(size), ""])


def markdown(size: SizeResults) -> str:
    """The results of one size in Markdown: a row per scenario, a column per system."""
    rows = [["", *(system.title for system in size.systems)], ["---"] * (len(size.systems) + 1)]
    rows += [[each.title, *(_cell(size, system, each) for system in size.systems)] for each in size.scenarios]
    rows.append(["memory (own + PostgreSQL), MB", *(_memory_cell(system) for system in size.systems)])
    rows.append(["loading, rows per second", *(f"{_load_rate(system):,.0f}" for system in size.systems)])
    legend = "Requests per second · p50 / p99 in ms · Plankeeper's requests per request of the system"
    versions = ", ".join(f"{system.title} ({system.version})" for system in size.systems)
    table_lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(
        [
            f"### {size.rows:,} participants",
            "",
            legend,
            "",
            *table_lines,
            "",
            f"Versions: {versions}.",
            *_notes(size),
            "",
        ]
    )


def format_rate(measurement: Measurement) -> str:
    """Requests per second with significant digits only, or `none` without any response."""
    if not measurement.rate:
        return f"none in {measurement.seconds:.0f} s"
    return f"{measurement.rate:,.0f}" if measurement.rate >= 100 else f"{measurement.rate:.3g}"


def format_ratio(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:,.0f} x" if ratio >= 20 else f"{ratio:.2f} x"


def _line(size: SizeResults, system: SystemResults, scenario: Scenario) -> str:
    measurement = system.median(scenario)
    if measurement is None:
        return ""
    failed = f"  {measurement.failed:,} of {measurement.requests:,} failed" if measurement.failed else ""
    name = ("  (" + system.title + ")") if system.is_floor else "  " + system.title
    return (
        f"{name:26}{format_rate(measurement):>12}{measurement.p50_ms:>10.2f}{measurement.p99_ms:>10.2f}"
        f"{format_ratio(size.ratio(system, scenario)):>15}{failed}"
    )


def _cell(size: SizeResults, system: SystemResults, scenario: Scenario) -> str:
    measurement = system.median(scenario)
    if measurement is None:
        return ""
    ratio = size.ratio(system, scenario)
    parts = [f"**{format_rate(measurement)}**", f"{measurement.p50_ms:.1f} / {measurement.p99_ms:.1f}"]
    parts += [format_ratio(ratio).replace(" x", "×")] if ratio else []
    parts += [f"{measurement.failed:,} failed"] if measurement.failed else []
    return " · ".join(parts)


def _memory_line(system: SystemResults) -> str:
    own, largest, postgres = _megabytes(system)
    return f"  {system.title:24}{own:>12.0f}{largest:>10.0f}{postgres:>10.0f}{own + postgres:>15.0f}"


def _memory_cell(system: SystemResults) -> str:
    own, _, postgres = _megabytes(system)
    return f"{own:.0f} + {postgres:.0f}" if own else ""


def _megabytes(system: SystemResults) -> tuple[float, float, float]:
    memory = system.memory
    return memory.own / 1e6, memory.largest / 1e6, memory.postgres / 1e6


def _load_line(system: SystemResults) -> str:
    load_info = system.load_info
    return f"  {system.title:24}{load_info.rows:>12,}{load_info.seconds:>10.1f}{_load_rate(system):>10,.0f}"


def _load_rate(system: SystemResults) -> float:
    return system.load_info.rows / max(system.load_info.seconds, 0.1)


def _notes(size: SizeResults) -> list[str]:
    incomplete = [each for each in size.systems if each.load_info.rows < size.rows]
    notes = [
        f"{each.title} could not load {size.rows:,} rows in time. Its results are for {each.load_info.rows:,} rows."
        for each in incomplete
    ]
    return notes + [f"{each.title} failed: {error.splitlines()[-1]}" for each in size.systems for error in each.errors]
