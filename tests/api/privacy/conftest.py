"""A plan manager with one person."""

from collections.abc import Iterator

import pytest
from uuid_utils.compat import uuid7

from support.factories import SeededPlanManager, seed_plan_manager
from support.server import RunningServer


@pytest.fixture
def world(server: RunningServer) -> Iterator[SeededPlanManager]:
    """A plan manager in which every text occurs once, and says where it stands."""
    seeded = seed_plan_manager(server, lambda name: f"{name} {uuid7().hex[-8:]}")
    yield seeded
    seeded.client.http.close()
