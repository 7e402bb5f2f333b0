"""Buffers that are written soon."""

from collections.abc import Iterator

import pytest

from plankeeper.database import write_buffer


@pytest.fixture(scope="module")
def soon_written() -> Iterator[None]:
    """Servers write their buffers twenty times a second, for tests that wait for the rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(write_buffer, "FLUSH_INTERVAL", 0.05)
        yield
