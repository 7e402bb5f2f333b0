"""Encrypts secrets before they are stored: AES-256-GCM, as `v1:<key id>:<base64url of nonce and ciphertext>`."""

import base64
import binascii
import hashlib
import hmac
import logging
import os
import re
import secrets
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from plankeeper.core.errors import SecretKeyMissingError
from plankeeper.core.settings import Settings

log = logging.getLogger("plankeeper")

SETTING = "PLANKEEPER_SECRET_KEY_FILE"
_NONCE_BYTES = 12
_FINGERPRINT_PURPOSE = b"plankeeper fingerprints"  # a key of its own for each purpose is derived from a secret key
_ENCRYPTED = re.compile("v1:([0-9a-f]{8}):(.+)", re.DOTALL)


class SecretDecryptionError(Exception):
    """A stored secret was changed, is not encrypted, or belongs to another record."""


def secret_cipher(settings: Settings) -> "SecretCipher":
    """The cipher of the settings' key file, one for each file and process."""
    return _cipher_of_file(settings.secret_key_path)


@cache
def _cipher_of_file(path: Path | None) -> "SecretCipher":
    return SecretCipher(path)


class SecretCipher:
    """Encrypts and decrypts secrets with the keys of a file. A changed file takes effect with the next call.

    The associated data is the id of the record that the secret belongs to, as bytes. A stored secret can therefore not
    be moved to another record.
    """

    def __init__(self, path: Path | None) -> None:
        """Without a file, the cipher has no key."""
        self._path = path
        self._keys: Mapping[str, AESGCM] = {}  # by id, the encrypting key first
        self._fingerprint_keys: Mapping[str, bytes] = {}
        self._version: tuple[int, ...] | None = None  # of the file that was read last

    def encrypt(self, plaintext: str, associated_data: bytes) -> str:
        """The text to store. Raises SecretKeyMissingError if there is no key."""
        key_id = self.require_key()
        nonce = os.urandom(_NONCE_BYTES)
        ciphertext = self._keys[key_id].encrypt(nonce, plaintext.encode(), associated_data)
        return f"v1:{key_id}:{base64.urlsafe_b64encode(nonce + ciphertext).decode()}"

    def decrypt(self, stored: str, associated_data: bytes) -> str:
        """The secret of a stored text.

        Raises SecretKeyMissingError if the key is missing, and SecretDecryptionError if the text or the associated
        data is not the one that was encrypted.
        """
        match = _ENCRYPTED.fullmatch(stored)
        if match is None:
            raise SecretDecryptionError("a stored secret is not encrypted")
        key = self._find_key(match[1])
        try:
            content = base64.b64decode(match[2], altchars=b"-_", validate=True)
            return key.decrypt(content[:_NONCE_BYTES], content[_NONCE_BYTES:], associated_data).decode()
        except (InvalidTag, ValueError):
            raise SecretDecryptionError("a stored secret was changed, or belongs to another record") from None

    def fingerprints(self, text: str) -> dict[str, bytes]:
        """The keyed hash of a text under each key, by its id, the encrypting key first.

        Equal texts have equal hashes under a key. Without the key, nobody can find a text by trying texts.
        """
        self._reload_if_changed()
        return {key_id: hmac.digest(key, text.encode(), "sha256") for key_id, key in self._fingerprint_keys.items()}

    def require_key(self) -> str:
        """The id of the key that encrypts. Raises SecretKeyMissingError if there is no key."""
        for key_id in self.key_ids():
            return key_id
        raise SecretKeyMissingError(f"The server has no secret key, which this request needs: set {SETTING}.")

    def key_ids(self) -> list[str]:
        """The ids of all keys, the encrypting one first. Reads the file again if it has changed."""
        self._reload_if_changed()
        return list(self._keys)

    def _find_key(self, key_id: str) -> AESGCM:
        self._reload_if_changed()
        if key_id not in self._keys:
            self._version = None  # a change of the file within the resolution of its time
            self._reload_if_changed()
        try:
            return self._keys[key_id]
        except KeyError:
            raise SecretKeyMissingError(
                f"A stored secret is encrypted with the key {key_id}, which {SETTING} does not contain."
            ) from None

    def _reload_if_changed(self) -> None:
        """Read the file if it has changed. While it is missing or invalid, the previous keys remain in use."""
        if self._path is None:
            return
        try:
            status = self._path.stat()
        except OSError:
            return
        version = (status.st_mtime_ns, status.st_ino, status.st_size)
        if version == self._version:
            return
        self._version = version
        try:
            keys = read_keys(self._path)
        except (KeyFileError, OSError) as error:
            reason = error.reason if isinstance(error, KeyFileError) else error.strerror
            event = "the key file cannot be used; the keys that were read before remain in use"
            log.error(event, extra={"reason": reason})  # noqa: TRY400 - the reason is enough
            return
        self._keys = {key.id: AESGCM(key.value) for key in keys}
        self._fingerprint_keys = {key.id: hmac.digest(key.value, _FINGERPRINT_PURPOSE, "sha256") for key in keys}


def encrypting_key_id(stored: str) -> str:
    """The id of the key that a stored secret is encrypted with; empty for other text."""
    match = _ENCRYPTED.fullmatch(stored)
    return match[1] if match else ""


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
