"""Unit tests: without a database."""

import pytest


@pytest.fixture(scope="session")
def cluster() -> None:
    pytest.fail("a test that needs a database belongs in another folder, such as tests/api")
