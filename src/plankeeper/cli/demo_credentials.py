"""The file that keeps the sample data's sign-in and key across starts, readable only by its owner."""

import os
import tempfile
from pathlib import Path

import msgspec

CREDENTIALS_FILE = "demo-credentials.json"


class KeptCredentials(msgspec.Struct, frozen=True):
    """The secrets of the last start. They are empty before the first one."""

    key: str = ""
    password: str = ""


def read_credentials(file: Path) -> KeptCredentials:
    """The secrets in the file; empty ones if there is no valid file."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=KeptCredentials)
    except (OSError, msgspec.DecodeError):
        return KeptCredentials()


def write_credentials(file: Path, credentials: KeptCredentials) -> None:
    """Replace the file. mkstemp creates it with the mode 0600."""
    descriptor, name = tempfile.mkstemp(prefix=f".{file.name}-", dir=file.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(msgspec.json.encode(credentials) + b"\n")
        Path(name).replace(file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
