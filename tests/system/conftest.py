"""The order of the system tests, which several processes run file by file."""

from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
# What takes minutes comes first, so that no process still works on it when the others have nothing left.
LONGEST = (
    "tests/system/clusters/test_citus.py",
    "tests/system/patroni/test_patroni.py",
    "tests/system/clients/test_generated_clients.py",
    "tests/browser/test_documentation_site.py",
    "tests/system/test_first_change.py",
    "tests/system/faults/test_kills.py",
    "tests/system/plans/test_plans.py",
    "tests/system/faults/test_keep_copy.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    places = {PROJECT / name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda each: places.get(each.path, len(LONGEST)))
