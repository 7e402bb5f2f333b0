"""The format of API keys: `plk_`, 32 random base62 characters (190 bits), 6 base62 characters of their CRC-32."""

import secrets
import string
import zlib

PREFIX = "plk_"
RANDOM_LENGTH = 32
CHECKSUM_LENGTH = 6

_ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase


def new_key() -> str:
    """A new key. The database stores only its hash."""
    body = PREFIX + "".join(secrets.choice(_ALPHABET) for _ in range(RANDOM_LENGTH))
    return body + checksum(body)


def checksum(body: str) -> str:
    """The CRC-32 of the prefix and the random part in base62, most significant digit first, padded to six digits."""
    remainder = zlib.crc32(body.encode())
    digits = ""
    for _ in range(CHECKSUM_LENGTH):
        remainder, digit = divmod(remainder, 62)
        digits = _ALPHABET[digit] + digits
    return digits


def is_well_formed(key: str) -> bool:
    """Whether a key has the right format and checksum, so that a database query is worthwhile."""
    return (
        key.startswith(PREFIX)
        and len(key) >= len(PREFIX) + RANDOM_LENGTH + CHECKSUM_LENGTH
        and checksum(key[:-CHECKSUM_LENGTH]) == key[-CHECKSUM_LENGTH:]
    )
