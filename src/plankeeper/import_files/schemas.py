"""A file between its check and its import."""

from datetime import datetime
from uuid import UUID

from msgspec import Struct


class ImportFile(Struct):
    """A file that was checked; `created_by` is the account that sent it, and alone may import it."""

    id: UUID
    resource: str
    name: str
    content: bytes
    created_by: UUID
    created_at: datetime


class ImportFileSummary(Struct):
    """The same without what is in it."""

    id: UUID
    resource: str
    name: str
    created_at: datetime
