"""The files of documents in the commands: copies for backups, exports of a person, and the check of the storage."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from uuid import UUID

import click
from uuid_utils.compat import uuid7

from plankeeper.access.plan_managers.store import list_all
from plankeeper.cli.context import Line
from plankeeper.core.errors import DomainError
from plankeeper.core.settings import Settings
from plankeeper.database.client import Database
from plankeeper.resources.documents import store
from plankeeper.resources.documents.schemas import DocumentRow
from plankeeper.resources.documents.storage import DocumentStorage, StorageError, storage_of

PAGE_SIZE = 1000
MAX_LOST_SHOWN = 20
_FIRST_ID = UUID(int=0)


def open_storage(settings: Settings) -> DocumentStorage:
    """The storage of a server; raises ClickException if it has none."""
    try:
        return storage_of(settings)
    except DomainError as error:
        raise click.ClickException(error.detail) from None


def open_folder(folder: Path) -> DocumentStorage:
    """The files of a backup. Only their owner can read the folder."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return DocumentStorage(folder.absolute().as_uri())
    except OSError as error:
        raise click.ClickException(f"Cannot write {folder}: {error.strerror}.") from None


async def copy_documents(db: Database, source: DocumentStorage, target: DocumentStorage) -> list[DocumentRow]:
    """Copy the files of all documents that `target` lacks. Returns the documents that neither of both has."""
    lost: list[DocumentRow] = []
    async for row in _all_documents(db):
        if await target.exists(row.object_key):
            continue
        if await source.exists(row.object_key):
            await target.put(row.object_key, source.read(row.object_key))
        else:
            lost.append(row)
    return lost


async def _all_documents(db: Database) -> AsyncIterator[DocumentRow]:
    for plan_manager in await list_all(db):
        after = _FIRST_ID
        while page := await store.list_page(db, plan_manager.id, after, PAGE_SIZE):
            for row in page:
                yield row
            after = page[-1].id


async def write_files(settings: Settings, documents: Sequence[DocumentRow], folder: Path) -> list[DocumentRow]:
    """Write the files of documents to a folder. Returns those that the storage lacks."""
    source, target = open_storage(settings), open_folder(folder)
    lost: list[DocumentRow] = []
    for row in documents:
        if await source.exists(row.object_key):
            await target.put(f"{row.id}{Path(row.object_key).suffix}", source.read(row.object_key))
        else:
            lost.append(row)
    return lost


def report_lost(lost: Sequence[DocumentRow]) -> None:
    """Warn of documents without a file."""
    for row in lost[:MAX_LOST_SHOWN]:
        text = f"Warning: the file of document {row.id} of invoice {row.invoice_id} is missing: {row.object_key}"
        click.echo(text, err=True)
    if len(lost) > MAX_LOST_SHOWN:
        click.echo(f"Warning: {len(lost) - MAX_LOST_SHOWN:,} more files are missing.", err=True)


async def storage_lines(settings: Settings) -> list[Line]:
    """Whether the storage can be written, read and emptied. The folder in the data directory isn't checked."""
    name = settings.documents_url
    if name is None:
        text = "PLANKEEPER_DOCUMENTS_URL is not set, so the server stores no documents"
        return [("warn", text)] if settings.database_url else []
    key = f"doctor/{uuid7()}"
    try:
        storage = storage_of(settings)
        await storage.put(key, _single_chunk(b"check"))
        is_read = b"".join([chunk async for chunk in storage.read(key)]) == b"check"
        await storage.delete([key])
    except (StorageError, FileNotFoundError, DomainError) as error:
        return [("FAIL", f"the storage of documents in {name} can't be used: {_reason(error)}")]
    if not is_read:
        return [("FAIL", f"the storage of documents in {name} returns other content than was written")]
    return [("ok", f"documents are stored in {name}")]


def _reason(error: Exception) -> str:
    """The first line of the cause, without its details."""
    return str(error.__cause__ or error).strip().partition("\n")[0].rstrip(".")


async def _single_chunk(content: bytes) -> AsyncIterator[bytes]:
    yield content
