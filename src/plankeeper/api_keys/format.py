"""The form of an API key: `plk_`, 32 random base62 characters (190 bits), 6 base62 characters of their CRC-32."""

import hashlib
import secrets
import string
import zlib

PREFIX = "plk_"
RANDOM_LENGTH = 32
CHECKSUM_LENGTH = 6

_ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase


def new_key() -> str:
    """A new key. It is shown once: only its hash is kept."""
    body = PREFIX + "".join(secrets.choice(_ALPHABET) for _ in range(RANDOM_LENGTH))
    return body + checksum(body)


def checksum(body: str) -> str:
    """CRC-32 of prefix and random part in base62, most significant digit first, padded with `0` to six."""
    remainder = zlib.crc32(body.encode())
    digits = ""
    for _ in range(CHECKSUM_LENGTH):
        remainder, digit = divmod(remainder, 62)
        digits = _ALPHABET[digit] + digits
    return digits


def is_well_formed(key: str) -> bool:
    """Whether a key could be one of ours: told without asking the database."""
    return (
        key.startswith(PREFIX)
        and len(key) >= len(PREFIX) + RANDOM_LENGTH + CHECKSUM_LENGTH
        and checksum(key[:-CHECKSUM_LENGTH]) == key[-CHECKSUM_LENGTH:]
    )


def hash_key(key: str) -> bytes:
    """SHA-256: enough for a secret of 190 random bits, where a password would need a slow hash."""
    return hashlib.sha256(key.encode()).digest()
