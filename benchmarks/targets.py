"""What Plankeeper should reach beside each system, and the table of what it has reached."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from benchmarks.markdown import markdown_table
from benchmarks.results import SizeResults
from benchmarks.scenarios import CREATE, CURSOR, GET, THOUSAND, TOTAL, UPDATE, Scenario
from benchmarks.transfers import Transfer


class Target(NamedTuple):
    """The ratio of Plankeeper's requests per second to those of a system: at least, and the aim beyond it."""

    ratio: float
    aim: float | None = None


class Row(NamedTuple):
    """A row of the table. `variants` names the system that is measured instead of a column's own."""

    title: str
    scenario: Scenario
    targets: Mapping[str, Target]
    variants: Mapping[str, str] = {}


COLUMNS = {"pocketbase": "PocketBase", "postgrest": "PostgREST", "bare": "bare handler"}
ROWS = (
    Row("get one", GET, {"pocketbase": Target(1.8, 2.0), "postgrest": Target(4.0), "bare": Target(1.0)}),
    Row("list 20, cursor", CURSOR, {"pocketbase": Target(4.0), "postgrest": Target(2.4), "bare": Target(0.95)}),
    Row("list 20 with total", TOTAL, {"pocketbase": Target(4.6), "postgrest": Target(3.2)}),
    Row("list 1000", THOUSAND, {"pocketbase": Target(7.5), "postgrest": Target(1.5), "bare": Target(1.0)}),
    Row(
        "create, peers with the indexes of the filters",
        CREATE,
        {"pocketbase": Target(2.7, 3.0), "postgrest": Target(1.3, 1.4)},
    ),
    Row(
        "create, PocketBase with default settings",
        CREATE,
        {"pocketbase": Target(0.8, 1.0)},
        variants={"pocketbase": "pocketbase-default"},
    ),
    Row("update", UPDATE, {"pocketbase": Target(1.25, 1.4), "postgrest": Target(1.3, 1.4)}),
)
IMPORT_TO_COPY = 0.5  # rows per second of the import to those of COPY
EXPORT_RATE = 200_000  # rows per second


def target_lines(size: SizeResults) -> list[str]:
    """The table of targets in Markdown, and a line for each other ratio. Unmeasured cells are empty."""
    rows = [[row.title, *(_cell(size, row, name) for name in COLUMNS)] for row in ROWS]
    lines = markdown_table([["", *COLUMNS.values()], *rows])
    other = [*_transfer_lines({each.name: each for each in size.transfers}), *_spread_lines(size)]
    return [*lines, *([""] if other else []), *(f"* {line}" for line in other)]


def _cell(size: SizeResults, row: Row, column: str) -> str:
    target = row.targets.get(column)
    system = size.find(row.variants.get(column, column))
    if target is None or system is None or (ratio := size.ratio(system, row.scenario)) is None:
        return ""
    reached = "aim met" if target.aim and ratio >= target.aim else "met" if ratio >= target.ratio else "MISSED"
    aim = f", aim {target.aim}" if target.aim else ""
    return f"{ratio:.2f} (target {target.ratio}{aim}): {reached}"


def _transfer_lines(transfers: Mapping[str, Transfer]) -> Iterator[str]:
    if not transfers:
        return
    ratio, rate = transfers["import"].rate / transfers["copy-in"].rate, transfers["export"].rate
    import_met, export_met = _met(ratio >= IMPORT_TO_COPY), _met(rate >= EXPORT_RATE)
    yield f"import, rows per second to those of COPY: {ratio:.2f} (target {IMPORT_TO_COPY}): {import_met}"
    yield f"export, rows per second: {rate:,.0f} (target {EXPORT_RATE:,}): {export_met}"


def _spread_lines(size: SizeResults) -> Iterator[str]:
    """Many plan managers beside one: the requests per second of each read."""
    spread = size.find("tenants")
    for scenario in size.scenarios:
        if spread and (ratio := size.ratio(spread, scenario)):
            yield f"{scenario.title}, many plan managers to one: {1 / ratio:.2f}"


def _met(is_met: bool) -> str:
    return "met" if is_met else "MISSED"
