"""A kept answer."""

from msgspec import Struct


class StoredResponse(Struct):
    """What was answered to the first request with an idempotency key; `request_hash` tells whether it was this one."""

    request_hash: bytes
    status: int
    body: bytes
