"""Sealed cursors of sorted lists: AES-256-GCM over the row that a page ended with.

The value of that row, such as a last name, therefore doesn't stand in URLs and logs. The order, the filters and the
plan manager are associated data: with others, a cursor is rejected.
"""

import base64
import os

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from plankeeper.database.sorting import Start
from plankeeper.http.errors import invalid_parameter

PREFIX = "s."  # no id begins with it
_NONCE_BYTES = 12

_decode = msgspec.msgpack.Decoder(Start).decode


def seal_cursor(key: bytes, start: Start, associated_data: bytes) -> str:
    nonce = os.urandom(_NONCE_BYTES)
    sealed = AESGCM(key).encrypt(nonce, msgspec.msgpack.encode(start), associated_data)
    return PREFIX + _encode(nonce + sealed)


def _encode(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def _decode_text(text: str) -> bytes:
    """Raises ValueError for a text that `_encode` doesn't return: the last character can have bits without a use."""
    content = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    if _encode(content) != text:
        raise ValueError(text)
    return content


def open_cursor(key: bytes, cursor: str, associated_data: bytes) -> Start:
    """The row that a cursor stands for. Raises ValidationError if it belongs to another list, or was changed."""
    try:
        content = _decode_text(cursor.removeprefix(PREFIX))
        return _decode(AESGCM(key).decrypt(content[:_NONCE_BYTES], content[_NONCE_BYTES:], associated_data))
    except (InvalidTag, ValueError):
        message = "must be the `next_cursor` of a page of this list with the same sort and filters, or 0"
        raise invalid_parameter("after", message, "inconsistent") from None
