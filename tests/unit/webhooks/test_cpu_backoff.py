"""A webhook worker beside a server pauses for as long as it waits for a processor, and not otherwise."""

from pathlib import Path

import pytest

from plankeeper.webhooks import worker
from plankeeper.webhooks.worker import MAX_DELAY, CpuBackoff, cpu_wait_seconds


class FakeClock:
    """What a process has waited for, and the time, as a test says."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.waited = self.now = 0.0
        patch.setattr(worker, "cpu_wait_seconds", lambda: self.waited)
        patch.setattr(worker.time, "monotonic", lambda: self.now)


@pytest.mark.parametrize("waits, delay", [(0.0, 0.0), (0.049, 0.0), (0.06, 0.6), (0.5, MAX_DELAY), (1.0, MAX_DELAY)])
def test_the_delay_is_a_multiple_of_the_cpu_wait(monkeypatch: pytest.MonkeyPatch, waits: float, delay: float) -> None:
    clock = FakeClock(monkeypatch)
    own = CpuBackoff()
    clock.now, clock.waited = 1.0, waits
    assert own.delay() == pytest.approx(delay)
    # What has been rested for is not counted again.
    clock.now = 2.0
    assert own.delay() == 0


def test_a_system_without_pressure_data_is_treated_as_idle(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(worker, "_SCHEDSTAT", tmp_path / "none")
    assert cpu_wait_seconds() == 0
    (tmp_path / "odd").write_text("")
    monkeypatch.setattr(worker, "_SCHEDSTAT", tmp_path / "odd")
    assert cpu_wait_seconds() == 0
    (tmp_path / "known").write_text("5000000000 2500000000 7\n")
    monkeypatch.setattr(worker, "_SCHEDSTAT", tmp_path / "known")
    assert cpu_wait_seconds() == 2.5
