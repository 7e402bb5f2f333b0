"""How long the suite takes: short within all tests, in full with PLANKEEPER_SOAK=1."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.folder import temporary_folder
from support.program import ServeProcess


def is_full_run() -> bool:
    return os.environ.get("PLANKEEPER_SOAK") == "1"


@pytest.fixture
def rounds() -> int:
    return 20 if is_full_run() else 2


@pytest.fixture
def failovers() -> int:
    return 5 if is_full_run() else 1


@pytest.fixture
def full_run_only() -> None:
    """For tests that take too long to run with the others."""
    if not is_full_run():
        pytest.skip("runs in full only: make soak")


@pytest.fixture
def folder(copy_migrated_data: Callable[[Path], None]) -> Iterator[Path]:
    """The data folder of a server that has been started before."""
    with temporary_folder() as made:
        copy_migrated_data(made)
        yield made


@pytest.fixture
def serve(folder: Path) -> Iterator[Callable[..., ServeProcess]]:
    """Starts `plankeeper serve`; what a test that fails has not stopped is stopped before its folder goes."""
    started: list[ServeProcess] = []

    def start(data_dir: Path = folder, **settings: Any) -> ServeProcess:
        started.append(ServeProcess(data_dir, **settings))
        return started[-1]

    yield start
    for each in started:
        if each.process.returncode is None:
            each.stop()
