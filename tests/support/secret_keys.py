"""The key file of the tests' servers."""

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

from plankeeper.core.encryption.cipher import create_key_file


@cache
def shared_key_file() -> Path:
    """A key file for all servers that this test process starts on a database of its own."""
    folder = Path(tempfile.mkdtemp(prefix="plankeeper-test-keys-"))
    atexit.register(shutil.rmtree, folder)
    path = folder / "secret.keys"
    create_key_file(path)
    return path
