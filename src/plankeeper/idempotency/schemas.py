"""Stored responses."""

from msgspec import Struct


class StoredResponse(Struct):
    """The response to the first request with an idempotency key, and the hash of that request."""

    request_hash: bytes
    status: int
    body: bytes
