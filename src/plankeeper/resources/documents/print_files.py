"""Files to print: several PDF documents as one, with the page that shows an address before a letter."""

import struct
from collections.abc import AsyncIterator, Sequence
from uuid import UUID

from msgspec import Struct

from plankeeper.core.errors import DomainError
from plankeeper.core.processes import ProcessSlots, run_process

MAX_TIME = 120.0  # seconds for joining the documents
MAX_BYTES = 256 * 1024**2
_PROGRAM = "plankeeper.resources.documents.joining_process"  # not imported: PDFium stays out of workers
_slots = ProcessSlots(1, "Too many print files are being made.")


class AddressPage(Struct, frozen=True):
    """The page before a letter. The address fits the window of an envelope."""

    office: str
    lines: Sequence[str]


async def join_documents(plan_manager_id: UUID, documents: Sequence[bytes]) -> bytes:
    """One PDF of several, joined by a process of its own. Raises DomainError 503 if it fails."""
    async with _slots.slot(plan_manager_id):
        output = await run_process(_PROGRAM, content=_pack(documents), max_time=MAX_TIME, max_output=MAX_BYTES)
    if not output.startswith(b"%PDF-"):
        raise DomainError("service_unavailable", "The print file couldn't be made. Try again.")
    return output


async def _pack(documents: Sequence[bytes]) -> AsyncIterator[bytes]:
    for each in documents:
        yield struct.pack(">Q", len(each))
        yield each
