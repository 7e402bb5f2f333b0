"""A folder for clusters whose PostgreSQL runs as another user."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def home() -> Iterator[Path]:
    """A folder that the server's user can pass through; pytest's own are closed to it."""
    folder = Path(tempfile.mkdtemp(prefix="plankeeper-test-")).resolve()
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)
