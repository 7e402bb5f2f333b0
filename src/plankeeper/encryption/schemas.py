"""Stored secrets, and how many of them each key encrypts."""

from msgspec import Struct


class StoredSecret(Struct):
    """A secret as it is stored: the table and column, the primary key of its row, and the stored text."""

    location: str
    key: list[str]
    associated_data: bytes
    stored: str


class KeyUsage(Struct):
    """The number of stored secrets that a key encrypts. `key_id` is None for plain text."""

    key_id: str | None
    secrets: int
