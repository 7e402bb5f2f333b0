"""Schemas of files between their check and their import."""

from datetime import datetime
from uuid import UUID

from msgspec import Struct


class ImportFile(Struct):
    """An uploaded file; its id is that of its import. `created_by` is the account, which alone may import it."""

    id: UUID
    resource: str
    name: str
    content: bytes
    created_by: UUID
    created_at: datetime
