"""One site for all tests of a run."""

import os
from collections.abc import Iterator

import pytest

from system.patroni.machines import missing_package
from system.patroni.site import Site, running_site


@pytest.fixture(scope="session")
def site() -> Iterator[Site]:
    package = missing_package()
    if package and "CI" not in os.environ:
        pytest.skip(f"install the package {package}")
    with running_site() as started:
        yield started


@pytest.fixture
def rounds() -> int:
    return 3 if os.environ.get("PLANKEEPER_SOAK") == "1" else 1
