"""The file of secret keys: one line for each key, `<key id>:<base64url of 32 bytes>`.

The first key encrypts, and all keys decrypt. Lines that start with `#` are comments.
"""

import base64
import binascii
import hashlib
import os
import secrets
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

KEY_BYTES = 32
_HEADER = """\
# Secret keys of Plankeeper. The first key encrypts, and all keys decrypt. Change them with `plankeeper secret-key`.
# Without these keys, a backup's secrets cannot be read: keep a copy of this file, apart from the backups.
"""
_OTHERS_PERMISSIONS = 0o077


class KeyFileError(Exception):
    """A key file cannot be read or written, or is invalid. The reason is a sentence that names the file."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class SecretKey(NamedTuple):
    """An AES-256 key. Its id is derived from the key, so that a damaged line is detected."""

    id: str
    value: bytes

    @classmethod
    def generate(cls) -> "SecretKey":
        value = secrets.token_bytes(KEY_BYTES)
        return cls(_key_id(value), value)


def _key_id(value: bytes) -> str:
    return hashlib.sha256(b"plankeeper secret key id\0" + value).hexdigest()[:8]


def read_keys(path: Path) -> list[SecretKey]:
    """The keys of a file, at least one. Raises KeyFileError, and FileNotFoundError if there is no such file."""
    try:
        text = path.read_text(encoding="ascii")
    except FileNotFoundError:
        raise
    except OSError as error:
        raise KeyFileError(f"Cannot read the key file {path}: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise KeyFileError(f"The key file {path} is not a text file with keys.") from None
    keys = [
        _parse_line(path, number, line.strip())
        for number, line in enumerate(text.splitlines(), 1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    if not keys:
        raise KeyFileError(f"The key file {path} contains no key.")
    if len({key.id for key in keys}) < len(keys):
        raise KeyFileError(f"The key file {path} contains a key twice.")
    return keys


def _parse_line(path: Path, number: int, line: str) -> SecretKey:
    key_id, _, encoded = line.partition(":")
    with suppress(binascii.Error, ValueError):
        value = base64.b64decode(encoded, altchars=b"-_", validate=True)
        if len(value) == KEY_BYTES and _key_id(value) == key_id:
            return SecretKey(key_id, value)
    raise KeyFileError(f"Line {number} of the key file {path} is not a valid key, or is damaged.")


def create_key_file(path: Path) -> SecretKey:
    """Create a file with one new key, which only its owner can read. Raises KeyFileError if the file exists."""
    key = SecretKey.generate()
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            _write_keys(descriptor, [key])
        except BaseException:
            path.unlink()
            raise
        _sync_folder(path.parent)
    except FileExistsError:
        raise KeyFileError(f"{path} already exists. Its keys may be in use, so it is not overwritten.") from None
    except OSError as error:
        raise KeyFileError(f"Cannot write the key file {path}: {error.strerror}.") from None
    return key


def replace_keys(path: Path, keys: Sequence[SecretKey]) -> None:
    """Replace the keys of a file in one step. The file keeps its owner. Raises KeyFileError."""
    try:
        target = path.resolve(strict=True)  # a symbolic link stays one
        owner = target.stat()
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)  # mode 0600
        temporary_file = Path(name)
        try:
            _write_keys(descriptor, keys)
            if (owner.st_uid, owner.st_gid) != (os.geteuid(), os.getegid()):
                os.chown(temporary_file, owner.st_uid, owner.st_gid)
            temporary_file.replace(target)
        except BaseException:
            temporary_file.unlink()
            raise
        _sync_folder(target.parent)
    except OSError as error:
        raise KeyFileError(f"Cannot write the key file {path}: {error.strerror}.") from None


def _write_keys(descriptor: int, keys: Sequence[SecretKey]) -> None:
    """Write keys to an open file, and close it."""
    lines = [f"{key.id}:{base64.urlsafe_b64encode(key.value).decode()}\n" for key in keys]
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(_HEADER + "".join(lines))
        file.flush()
        os.fsync(descriptor)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def has_open_permissions(path: Path) -> bool:
    """Whether system users other than the owner can access the file."""
    return bool(path.stat().st_mode & _OTHERS_PERMISSIONS)
