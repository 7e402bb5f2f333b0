"""The processor time of a request grows by no more than 15 %, compared with the bare handler of the benchmarks."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from benchmarks.plankeeper import Plankeeper
from benchmarks.regressions import (
    MAX_GROWTH,
    REQUESTS,
    Systems,
    find_regressions,
    read_baseline,
    running_systems,
)
from benchmarks.scenarios import GET

from support.folder import temporary_folder

SLOWDOWN = Path(__file__).parent / "slowdown"


class SlowPlankeeper(Plankeeper):
    """Plankeeper with `delay` microseconds more of processor time for each request."""

    delay = 0.0

    def command(self) -> tuple[list[str | Path], dict[str, str]]:
        command, env = super().command()
        slowdown = {"PYTHONPATH": str(SLOWDOWN), "SLOWDOWN_MICROSECONDS": str(self.delay)}
        return command, env | (slowdown if self.delay else {})


@pytest.fixture(scope="module")
def systems() -> Iterator[Systems]:
    with temporary_folder() as folder, running_systems(folder, SlowPlankeeper) as running:
        yield running


def restart(systems: Systems, delay: float) -> None:
    plankeeper = systems.plankeeper
    assert isinstance(plankeeper, SlowPlankeeper)
    plankeeper.stop()
    plankeeper.delay = delay
    plankeeper.start()


def test_every_scenario_has_a_recorded_ratio() -> None:
    assert set(read_baseline()) == {each.name for each in REQUESTS}


def test_the_processor_time_of_requests_has_not_grown(systems: Systems) -> None:
    """If this fails for a good reason, record the ratios again: `make bench-baseline`."""
    assert find_regressions(systems, read_baseline()) == []


def test_requests_that_take_30_percent_more_processor_time_are_found(systems: Systems, is_full_run: bool) -> None:
    for scenario in REQUESTS if is_full_run else (GET,):
        usual = systems.compare(scenario)
        restart(systems, delay=0.3 * usual.plankeeper)
        try:
            [found] = find_regressions(systems, {scenario.name: usual.ratio}, [scenario])
        finally:
            restart(systems, delay=0)
        assert found.scenario is scenario
        assert found.ratio > usual.ratio * (1 + MAX_GROWTH)
