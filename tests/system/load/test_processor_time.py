"""The processor time of a request grows by no more than 15 %, compared with the bare handler of the benchmarks."""

import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest
from benchmarks.plankeeper import Plankeeper
from benchmarks.regressions import (
    ATTEMPTS,
    MAX_GROWTH,
    REQUESTS,
    Comparison,
    Systems,
    find_regressions,
    read_baseline,
    running_systems,
)
from benchmarks.scenarios import GET, Scenario

from support.folder import temporary_folder

SLOWDOWN = Path(__file__).parent / "slowdown"


class SlowPlankeeper(Plankeeper):
    """Plankeeper that also runs `loops` empty loops for each request."""

    loops = 0

    def command(self) -> tuple[list[str | Path], dict[str, str]]:
        command, env = super().command()
        slowdown = {"PYTHONPATH": str(SLOWDOWN), "SLOWDOWN_LOOPS": str(self.loops)}
        return command, env | (slowdown if self.loops else {})


@pytest.fixture(scope="module")
def systems() -> Iterator[Systems]:
    with temporary_folder() as folder, running_systems(folder, SlowPlankeeper) as running:
        yield running


def restart(systems: Systems, loops: int) -> None:
    plankeeper = systems.plankeeper
    assert isinstance(plankeeper, SlowPlankeeper)
    plankeeper.stop()
    plankeeper.loops = loops
    plankeeper.start()


def median_comparison(systems: Systems, scenario: Scenario, attempts: int) -> Comparison:
    """Of an odd number of measurements, each of which is the median of its rounds."""
    comparisons = [systems.compare(scenario) for _ in range(attempts)]
    return sorted(comparisons, key=lambda each: each.ratio)[attempts // 2]


def microseconds_of_a_loop() -> float:
    times: list[float] = []
    for _ in range(50):
        before = time.thread_time_ns()
        for _ in range(100_000):
            pass
        times.append(time.thread_time_ns() - before)
    return median(times) / 100_000 / 1_000


def test_every_scenario_has_a_recorded_ratio() -> None:
    assert set(read_baseline()) == {each.name for each in REQUESTS}


def test_the_processor_time_of_requests_has_not_grown(systems: Systems) -> None:
    """If this fails for a good reason, record the ratios again: `make bench-baseline`."""
    assert find_regressions(systems, read_baseline()) == []


def test_requests_that_take_30_percent_more_processor_time_are_found(systems: Systems, is_full_run: bool) -> None:
    scenarios, attempts = (tuple(REQUESTS), ATTEMPTS) if is_full_run else ((GET,), 1)
    for scenario in scenarios:
        usual = median_comparison(systems, scenario, attempts)
        restart(systems, loops=round(0.3 * usual.plankeeper / microseconds_of_a_loop()))
        try:
            [found] = find_regressions(systems, {scenario.name: usual.ratio}, [scenario])
        finally:
            restart(systems, loops=0)
        assert found.scenario is scenario
        assert found.ratio > usual.ratio * (1 + MAX_GROWTH)
