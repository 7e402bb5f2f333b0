"""A folder for an embedded cluster."""

import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def temporary_folder() -> Generator[Path]:
    """An empty folder, gone at the end.

    Not one of pytest's own: they are closed to the system user that PostgreSQL runs as under root, and a cluster for a
    closed folder is stored elsewhere.
    """
    folder = Path(tempfile.mkdtemp(prefix="plankeeper-test-"))
    folder.chmod(0o711)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)
