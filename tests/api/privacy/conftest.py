"""A plan manager with one person."""

from collections.abc import Iterator

import pytest

from support.factories import SeededPlanManager, seed_plan_manager, seed_records, unique_text
from support.server import RunningServer


@pytest.fixture
def world(server: RunningServer) -> Iterator[SeededPlanManager]:
    """A plan manager in which every text occurs once, and says where it stands."""
    seeded = seed_plan_manager(server, unique_text)
    yield seeded
    seeded.client.http.close()


@pytest.fixture
def small_world(server: RunningServer) -> Iterator[SeededPlanManager]:
    """A plan manager with the imported records alone, for tests of rules that these are enough for."""
    seeded = seed_records(server, unique_text)
    yield seeded
    seeded.client.http.close()
