"""Schemas of documents."""

from typing import Annotated, Literal
from uuid import UUID

from msgspec import Meta, Struct

from plankeeper.core.fields import AwareDatetime
from plankeeper.core.files import MediaType


class Document(Struct):
    """The document of an invoice."""

    id: Annotated[UUID, Meta(description="The document's UUID. Another upload has another one.")]
    file_name: Annotated[str, Meta(description="The name of the file.")]
    media_type: Annotated[MediaType, Meta(description="`application/pdf`, `image/png` or `image/jpeg`.")]
    size: Annotated[int, Meta(description="In bytes.")]
    sha256: Annotated[str, Meta(description="The SHA-256 of the content, in hexadecimal.")]

    @property
    def version(self) -> str:
        """As in the `Download` of this document."""
        return self.id.hex


class DocumentRow(Struct, kw_only=True):
    """A stored document of an invoice, or of a provider: its statement that it needn't quote an ABN.

    `object_key` names its object in the storage; `replaced_at` is null for the current one.
    """

    id: UUID
    invoice_id: UUID | None = None
    provider_id: UUID | None = None
    object_key: str
    file_name: str
    media_type: MediaType
    size: int
    sha256: str
    created_at: AwareDatetime
    created_by: str
    replaced_at: AwareDatetime | None = None


class StoredObject(Struct):
    """An upload that is in the storage, but has no row yet."""

    object_key: str
    file_name: str
    media_type: MediaType
    size: int
    sha256: str


MAX_PAGES = 200  # of a document that is shown

# Why a page can't be shown. `failed`: the process ended, because the page takes too much time or memory, for example.
Problem = Literal["encrypted", "damaged", "too_many_pages", "too_large", "failed"]


class RenderingResult(Struct):
    """The number of pages of a document, or why it can't be shown: what the process that draws it writes."""

    pages: Annotated[int, Meta(ge=1, le=MAX_PAGES)] = 1
    problem: Problem | None = None
