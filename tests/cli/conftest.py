"""What the tests of commands share."""

import pytest

from plankeeper.cli import progress


@pytest.fixture(autouse=True)
def no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that takes long, as on a busy machine, prints no progress."""
    monkeypatch.setattr(progress, "REPORT_INTERVAL", 3600.0)
