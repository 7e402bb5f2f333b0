"""How long the suite takes: short within all tests, in full with PLANKEEPER_SOAK=1."""

import os

import pytest


@pytest.fixture(scope="session")
def is_full_run() -> bool:
    return os.environ.get("PLANKEEPER_SOAK") == "1"
