"""Encrypts secrets before they are stored: AES-256-GCM, as `v1:<key id>:<base64url of nonce and ciphertext>`."""

import base64
import logging
import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from plankeeper.encryption.key_file import KeyFileError, read_keys
from plankeeper.http.errors import SecretKeyMissingError
from plankeeper.settings import Settings

log = logging.getLogger("plankeeper")

SETTING = "PLANKEEPER_SECRET_KEY_FILE"
_NONCE_BYTES = 12
_ENCRYPTED = re.compile("v1:([0-9a-f]{8}):(.+)", re.DOTALL)


class SecretDecryptionError(Exception):
    """A stored secret was changed, or belongs to another record."""


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
        """Without a file, the cipher only reads secrets in plain text."""
        self._path = path
        self._keys: Mapping[str, AESGCM] = {}  # by id, the encrypting key first
        self._version: tuple[int, ...] | None = None  # of the file that was read last

    def encrypt(self, plaintext: str, associated_data: bytes) -> str:
        """The text to store. Raises SecretKeyMissingError if there is no key."""
        key_id = self.require_key()
        nonce = os.urandom(_NONCE_BYTES)
        ciphertext = self._keys[key_id].encrypt(nonce, plaintext.encode(), associated_data)
        return f"v1:{key_id}:{base64.urlsafe_b64encode(nonce + ciphertext).decode()}"

    def decrypt(self, stored: str, associated_data: bytes) -> str:
        """The secret of a stored text. Text that an older version stored without encryption is returned as it is.

        Raises SecretKeyMissingError if the key is missing, and SecretDecryptionError if the text or the associated
        data is not the one that was encrypted.
        """
        match = _ENCRYPTED.fullmatch(stored)
        if match is None:
            return stored
        key = self._find_key(match[1])
        try:
            content = base64.b64decode(match[2], altchars=b"-_", validate=True)
            return key.decrypt(content[:_NONCE_BYTES], content[_NONCE_BYTES:], associated_data).decode()
        except (InvalidTag, ValueError):
            raise SecretDecryptionError("a stored secret was changed, or belongs to another record") from None

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
            self._keys = {key.id: AESGCM(key.value) for key in read_keys(self._path)}
        except (KeyFileError, OSError) as error:
            reason = error.reason if isinstance(error, KeyFileError) else error.strerror
            event = "the key file cannot be used; the keys that were read before remain in use"
            log.error(event, extra={"reason": reason})  # noqa: TRY400 - the reason is enough


def encrypting_key_id(stored: str) -> str | None:
    """The id of the key that a stored secret is encrypted with; None for plain text."""
    match = _ENCRYPTED.fullmatch(stored)
    return match[1] if match else None
