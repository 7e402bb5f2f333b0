"""A worker beside a server rests for as long as it is kept waiting for a processor, and not otherwise."""

from pathlib import Path

import pytest

from plankeeper.webhooks import cpu_backoff
from plankeeper.webhooks.cpu_backoff import LONGEST, Manners, waited


class Clock:
    """What a process has waited for, and the time, as a test says."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.waited = self.now = 0.0
        patch.setattr(cpu_backoff, "waited", lambda: self.waited)
        patch.setattr(cpu_backoff.time, "monotonic", lambda: self.now)


@pytest.mark.parametrize("kept, rest", [(0.0, 0.0), (0.049, 0.0), (0.06, 0.6), (0.5, LONGEST), (1.0, LONGEST)])
def test_the_rest_is_a_multiple_of_the_wait(monkeypatch: pytest.MonkeyPatch, kept: float, rest: float) -> None:
    clock = Clock(monkeypatch)
    own = Manners()
    clock.now, clock.waited = 1.0, kept
    assert own.rest() == pytest.approx(rest)
    # What has been rested for is not counted again.
    clock.now = 2.0
    assert own.rest() == 0


def test_a_system_that_does_not_say_is_taken_for_a_quiet_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cpu_backoff, "_STANDING", tmp_path / "none")
    assert waited() == 0
    (tmp_path / "odd").write_text("")
    monkeypatch.setattr(cpu_backoff, "_STANDING", tmp_path / "odd")
    assert waited() == 0
    (tmp_path / "known").write_text("5000000000 2500000000 7\n")
    monkeypatch.setattr(cpu_backoff, "_STANDING", tmp_path / "known")
    assert waited() == 2.5
