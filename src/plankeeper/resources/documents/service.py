"""Receives files into the storage, reads them, and deletes those that no document needs."""

import hashlib
import logging
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from uuid_utils.compat import uuid7

from plankeeper.core.context import ReadContext
from plankeeper.core.errors import DomainError
from plankeeper.core.files import Download, MediaType, Upload
from plankeeper.core.settings import Settings
from plankeeper.database.client import Database
from plankeeper.resources.documents import store
from plankeeper.resources.documents.schemas import DocumentRow, StoredObject
from plankeeper.resources.documents.storage import StorageError, storage_of

log = logging.getLogger("plankeeper")

MAX_BYTES = 20 * 1024**2
UPLOAD_TIME = timedelta(hours=1)  # then the object of an upload without a document is deleted
RETRY_DELAY = timedelta(minutes=5)  # of a deletion that failed
CLEANUP_BATCH_SIZE = 100  # objects per second

_SIGNATURES: dict[bytes, tuple[MediaType, str]] = {
    b"%PDF-": ("application/pdf", "pdf"),
    b"\x89PNG\r\n\x1a\n": ("image/png", "png"),
    b"\xff\xd8\xff": ("image/jpeg", "jpg"),
}
_SIGNATURE_BYTES = max(len(each) for each in _SIGNATURES)


def recognise(start: bytes) -> tuple[MediaType, str] | None:
    """The media type and the file extension of a content, by its first bytes."""
    return next((kind for signature, kind in _SIGNATURES.items() if start.startswith(signature)), None)


async def receive(ctx: ReadContext, upload: Upload) -> StoredObject:
    """Store a file. Raises DomainError 400 if it is empty, 413, 415, and 503 if the storage fails."""
    storage = storage_of(ctx.settings)
    start = await _read_start(upload.chunks)
    kind = recognise(start)
    if not start:
        raise DomainError("invalid_request", "The file is empty. It must be a PDF, PNG or JPEG.")
    if kind is None:
        raise DomainError("unsupported_media_type", "The file must be a PDF, PNG or JPEG. Its name doesn't matter.")
    media_type, extension = kind
    key = f"{ctx.plan_manager_id}/{uuid7()}.{extension}"
    await store.add_object(ctx.db, ctx.plan_manager_id, key, datetime.now(UTC) + UPLOAD_TIME)
    content = _Content(start, upload.chunks)
    try:
        await storage.put(key, content)
    except StorageError as error:
        raise storage_failed(error) from error
    name = upload.file_name or f"document.{extension}"
    return StoredObject(key, name, media_type, content.size, content.sha256.hexdigest())


async def _read_start(chunks: AsyncIterator[bytes]) -> bytes:
    start = b""
    while len(start) < _SIGNATURE_BYTES and (chunk := await anext(chunks, b"")):
        start += chunk
    return start


class _Content:
    """The chunks of an upload, with their total size and hash."""

    def __init__(self, start: bytes, rest: AsyncIterator[bytes]) -> None:
        self._start, self._rest = start, rest
        self.size, self.sha256 = 0, hashlib.sha256()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._add(self._start)
        async for chunk in self._rest:
            yield self._add(chunk)

    def _add(self, chunk: bytes) -> bytes:
        self.size += len(chunk)
        self.sha256.update(chunk)
        return chunk


def storage_failed(error: StorageError) -> DomainError:
    """The error of a request, which is logged."""
    log.error("the storage of documents failed", exc_info=error)
    return DomainError("service_unavailable", "The storage of documents failed. Nothing was stored.", retry_after=10)


def open_document(settings: Settings, row: DocumentRow) -> Download:
    """The content of a document. Its first chunk raises DomainError 503 if the storage lacks it, or fails."""
    return Download(row.file_name, row.media_type, _read(settings, row), row.size, row.id.hex)


async def open_checked(settings: Settings, row: DocumentRow) -> Download:
    """The content of a document; raises DomainError 503 before the first chunk is sent, for an error page."""
    file = open_document(settings, row)
    start = await anext(file.chunks, b"")
    return replace(file, chunks=_join(start, file.chunks))


async def _join(start: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield start
    async for chunk in rest:
        yield chunk


async def _read(settings: Settings, row: DocumentRow) -> AsyncIterator[bytes]:
    try:
        async for chunk in storage_of(settings).read(row.object_key):
            yield chunk
    except FileNotFoundError:
        log.exception("the storage lacks a document", extra={"document_id": str(row.id)})
        detail = "The storage has lost the document. The operator can restore it from a backup."
        raise DomainError("service_unavailable", detail) from None
    except StorageError as error:
        raise storage_failed(error) from error


async def delete_due_objects(db: Database, settings: Settings) -> None:
    """Delete the objects of failed uploads and of deleted documents."""
    now = datetime.now(UTC)
    for due in await store.list_due(db, now, CLEANUP_BATCH_SIZE):
        async with db.transaction() as tx:
            # The upload may end at this moment: then the row is gone, or its transaction waits for this one, and fails.
            if not await store.claim_object(tx, due.plan_manager_id, due.object_key):
                continue
            try:
                await storage_of(settings).delete([due.object_key])
            except StorageError as error:
                log.warning("an object could not be deleted", exc_info=error)
                await store.add_object(tx, due.plan_manager_id, due.object_key, now + RETRY_DELAY)
