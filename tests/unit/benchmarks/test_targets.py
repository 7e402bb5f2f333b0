"""The table of targets in the results of the benchmarks."""

from benchmarks.load import Measurement
from benchmarks.peers import LoadInfo
from benchmarks.results import SizeResults, SystemResults
from benchmarks.scenarios import CREATE, GET, SCENARIOS, Scenario
from benchmarks.targets import target_lines
from benchmarks.transfers import Transfer


def system(name: str, **rates: int) -> SystemResults:
    results = SystemResults(name, name, "1", is_floor=name == "bare", load_info=LoadInfo(1000, 1))
    results.runs = {scenario: [Measurement(rate, 1, 1, 2)] for scenario, rate in rates.items()}
    return results


def cells(lines: list[str], title: str) -> list[str]:
    [line] = [each for each in lines if each.startswith(f"| {title} ")]
    return [cell.strip() for cell in line.strip("|").split("|")[1:]]


def size(*systems: SystemResults, scenarios: tuple[Scenario, ...] = SCENARIOS) -> SizeResults:
    return SizeResults(1000, list(scenarios), list(systems))


def test_each_cell_has_the_ratio_its_target_and_whether_it_is_met() -> None:
    lines = target_lines(
        size(
            system("plankeeper", get=1900, create=900),
            system("pocketbase", get=1000, create=300),
            system("pocketbase-default", create=1000),
            system("postgrest", get=1000),
            system("bare", get=1900),
        )
    )
    assert cells(lines, GET.title) == [
        "1.90 (target 1.8, aim 2.0): met",
        "1.90 (target 4.0): MISSED",
        "1.00 (target 1.0): met",
    ]
    assert cells(lines, "create, peers with the indexes of the filters") == [
        "3.00 (target 2.7, aim 3.0): aim met", "", "",
    ]  # fmt: skip
    assert cells(lines, "create, PocketBase with default settings") == [
        "0.90 (target 0.8, aim 1.0): met", "", "",
    ]  # fmt: skip
    assert cells(lines, "update") == ["", "", ""]


def test_transfers_and_many_plan_managers_have_a_line_each() -> None:
    results = size(system("plankeeper", get=1000), system("tenants", get=890), scenarios=(GET, CREATE))
    results.transfers = [
        Transfer("import", "import", rows=100, seconds=2, processor_seconds=1),
        Transfer("copy-in", "COPY", rows=100, seconds=1, processor_seconds=1),
        Transfer("export", "export", rows=100, seconds=1, processor_seconds=1),
    ]
    assert target_lines(results)[-4:] == [
        "",
        "* import, rows per second to those of COPY: 0.50 (target 0.5): met",
        "* export, rows per second: 100 (target 200,000): MISSED",
        "* get one, many plan managers to one: 0.89",
    ]
