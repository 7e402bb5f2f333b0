"""Files that a request sends or that a response contains, as streams."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Annotated, Literal, Self

from plankeeper.core.fields import component

MediaType = Annotated[
    Literal["application/pdf", "image/png", "image/jpeg"],
    component("DocumentMediaType", "The type of a document, which is recognised by its first bytes."),
]


async def single_chunk(content: bytes) -> AsyncIterator[bytes]:
    """A small file as a stream."""
    yield content


@dataclass(slots=True)
class Upload:
    """A file that a client sends. `chunks` raises DomainError 413 as soon as it is too large."""

    file_name: str | None
    chunks: AsyncIterator[bytes]
    media_type: str = ""  # of the Content-Type header, without parameters; empty without the header


@dataclass(slots=True)
class Download:
    """A file that a client receives while it is read or made, so that its size is unlimited.

    `size` is in bytes; null if it isn't known before the file has been written. `version` identifies the file among all
    that its address has had; null if no request depends on it.
    """

    file_name: str
    media_type: str
    chunks: AsyncIterator[bytes]
    size: int | None = None
    version: str | None = None

    @classmethod
    def of_bytes(cls, file_name: str, media_type: str, content: bytes) -> Self:
        """A file that is small enough to be made before it is sent."""
        return cls(file_name, media_type, single_chunk(content), len(content))
