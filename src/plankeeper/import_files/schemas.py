"""Schemas of files between their check and their import."""

from datetime import datetime
from uuid import UUID

from msgspec import Struct


class ImportFile(Struct):
    """A checked file. `created_by` is the account that uploaded it; only this account may import it."""

    id: UUID
    resource: str
    name: str
    content: bytes
    created_by: UUID
    created_at: datetime


class ImportFileSummary(Struct):
    """A checked file without its content."""

    id: UUID
    resource: str
    name: str
    created_at: datetime
