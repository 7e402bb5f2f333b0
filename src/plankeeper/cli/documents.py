"""The files of documents in the commands: backups, exports and imports, and the check of the storage."""

import asyncio
import hashlib
import os
import re
import stat
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from io import BufferedReader
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

import click
from uuid_utils.compat import uuid7

from plankeeper.access.plan_managers.store import list_all
from plankeeper.cli.context import Line
from plankeeper.core.context import ReadContext, WriteContext
from plankeeper.core.errors import DomainError
from plankeeper.core.files import Upload, single_chunk
from plankeeper.core.ids import parse_uuid
from plankeeper.core.settings import Settings
from plankeeper.database.client import Database
from plankeeper.resources.documents import store
from plankeeper.resources.documents.schemas import DocumentRow
from plankeeper.resources.documents.service import MAX_BYTES, receive
from plankeeper.resources.documents.storage import DocumentStorage, StorageError, storage_of
from plankeeper.resources.invoices import store as invoice_store
from plankeeper.resources.invoices.documents import attach
from plankeeper.resources.statements import store as statement_store
from plankeeper.resources.statements.store import StatementFile

PAGE_SIZE = 1000
MAX_LOST_SHOWN = 20
CHUNK_BYTES = 1024**2
_FIRST_ID = UUID(int=0)
_UNFINISHED = re.compile("#[0-9]+$")  # the end of the names of files that obstore is writing


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


StoredFile = DocumentRow | StatementFile


async def copy_documents(db: Database, source: DocumentStorage, target: DocumentStorage) -> list[StoredFile]:
    """Copy the files of all documents and statements that `target` lacks. Returns those that neither of both has."""
    lost: list[StoredFile] = []
    async for row in _all_files(db):
        if await target.exists(row.object_key):
            continue
        if not await _copy(source, row, target, row.object_key):
            lost.append(row)
    return lost


async def _copy(source: DocumentStorage, row: StoredFile, target: DocumentStorage, name: str) -> bool:
    """Copy the file of a document or a statement. False if the storage lacks it."""
    if not await source.exists(row.object_key):
        return False
    await target.put(name, source.read(row.object_key))
    return True


async def _all_files(db: Database) -> AsyncIterator[StoredFile]:
    for plan_manager in await list_all(db):
        async for row in _documents_of(db, plan_manager.id):
            yield row
        async for row in _statements_of(db, plan_manager.id):
            yield row


async def _statements_of(db: Database, plan_manager_id: UUID) -> AsyncIterator[StatementFile]:
    """The PDFs of the statements of a plan manager."""
    after = _FIRST_ID
    while page := await statement_store.list_files(db, plan_manager_id, after, PAGE_SIZE):
        for row in page:
            yield row
        after = page[-1].id


async def _documents_of(db: Database, plan_manager_id: UUID) -> AsyncIterator[DocumentRow]:
    """The documents and statements of a plan manager, also replaced ones."""
    after = _FIRST_ID
    while page := await store.list_page(db, plan_manager_id, after, PAGE_SIZE):
        for row in page:
            yield row
        after = page[-1].id


async def write_files(settings: Settings, documents: Sequence[DocumentRow], folder: Path) -> list[DocumentRow]:
    """Write the files of documents to a folder. Returns those that the storage lacks."""
    source, target = open_storage(settings), open_folder(folder)
    return [row for row in documents if not await _copy(source, row, target, f"{row.id}{Path(row.object_key).suffix}")]


async def export_documents(
    db: Database, settings: Settings, plan_manager_id: UUID, folder: Path, on_progress: Callable[[str, int], None]
) -> list[DocumentRow]:
    """Write the current documents to a folder, each under its invoice's id. Returns those that the storage lacks.

    Files that the folder has already are left alone: an export can be repeated. Raises StorageError.
    """
    source, target = open_storage(settings), open_folder(folder)
    lost, count = list[DocumentRow](), 0
    async for row in _documents_of(db, plan_manager_id):
        if row.replaced_at is not None or row.invoice_id is None:
            continue
        name = f"{row.invoice_id}{Path(row.object_key).suffix}"
        is_there = await asyncio.to_thread(_is_same_file, folder / name, row)
        if not is_there and not await _copy(source, row, target, name):
            lost.append(row)
        count += 1
        on_progress(f"{count:,} documents", count)
    return lost


def _is_same_file(file: Path, row: DocumentRow) -> bool:
    """Whether a file has the content of a document."""
    try:
        return file.lstat().st_size == row.size and _hash_file(file) == row.sha256
    except OSError:
        return False  # it doesn't exist, or is a link


class ImportedDocuments(NamedTuple):
    """The numbers of files that are documents now, and that were already, and the errors of the others."""

    added: int
    unchanged: int
    errors: Sequence[str]


async def import_documents(
    db: Database, settings: Settings, ctx: WriteContext, folder: Path, on_progress: Callable[[str, int], None]
) -> ImportedDocuments:
    """Make each file of a folder the document of the invoice whose id or `external_id` is its name.

    Each file is a transaction, and one that is the document already is left alone: an import can be repeated.
    `ctx` has the plan manager and the actor.
    """
    added, errors, files = 0, list[str](), list_files(folder)
    files_by_invoice = dict[UUID, Path]()
    for number, file in enumerate(files, 1):
        try:
            added += await _import_file(db, settings, ctx, file, files_by_invoice)
        except DomainError as error:
            errors.append(f"{file.name}: {error.detail}")
        except OSError as error:
            errors.append(f"{file.name}: cannot be read: {error.strerror}")
        on_progress(f"{number:,} of {len(files):,} documents", number)
    return ImportedDocuments(added, len(files) - added - len(errors), errors)


def list_files(folder: Path) -> list[Path]:
    """The files of a folder, in the order of their names, with links, which are errors.

    Folders, hidden files, and files that an interrupted export hasn't finished are left out.
    """
    names = (each for each in folder.iterdir() if not each.name.startswith(".") and not _UNFINISHED.search(each.name))
    return sorted(each for each in names if each.is_symlink() or each.is_file())


async def _import_file(
    db: Database, settings: Settings, ctx: WriteContext, file: Path, files_by_invoice: dict[UUID, Path]
) -> bool:
    """Whether the file was added. Adds it to `files_by_invoice`, where each invoice has one file.

    Raises DomainError and OSError.
    """
    invoice_id = await _find_invoice(db, ctx.plan_manager_id, file.stem)
    if other := files_by_invoice.get(invoice_id):
        raise DomainError("invalid_request", f"{other.name} is for the same invoice. Remove one of them")
    is_new = await _add_document(db, settings, ctx, invoice_id, file)
    files_by_invoice[invoice_id] = file
    return is_new


async def _find_invoice(db: Database, plan_manager_id: UUID, name: str) -> UUID:
    # A name that isn't UTF-8 has characters that PostgreSQL doesn't accept. Python prints them escaped.
    holders = await invoice_store.list_by_external_ids(db, plan_manager_id, [name]) if name.isprintable() else []
    if holders:
        return holders[0].id
    invoice_id = parse_uuid(name)
    if invoice_id is None or not await invoice_store.exists(db, plan_manager_id, invoice_id):
        raise DomainError("not_found", f"no invoice has the id or the external_id {name}")
    return invoice_id


async def _add_document(db: Database, settings: Settings, ctx: WriteContext, invoice_id: UUID, file: Path) -> bool:
    """Whether the file was added: it wasn't the invoice's document yet."""
    found = await asyncio.to_thread(file.lstat)
    if stat.S_ISLNK(found.st_mode):
        raise DomainError("invalid_request", "is a link. Replace it with the file itself")
    size = found.st_size
    if size == 0:
        raise DomainError("invalid_request", "is empty")
    if size > MAX_BYTES:
        raise DomainError("body_too_large", f"has {size:,} bytes, but a document has at most {MAX_BYTES:,}")
    current = await store.get(db, ctx.plan_manager_id, invoice_id)
    if current and current.size == size and current.sha256 == await asyncio.to_thread(_hash_file, file):
        return False
    stored = await receive(ReadContext(db, ctx.plan_manager_id, settings), Upload(file.name, _read_chunks(file)))
    async with db.transaction() as tx:
        await attach(replace(ctx, tx=tx), invoice_id, stored)
    return True


def _open_file(file: Path) -> BufferedReader:
    """Open a file itself: a link could lead to a file outside of the folder."""
    return open(file, "rb", opener=lambda path, flags: os.open(path, flags | os.O_NOFOLLOW))


def _hash_file(file: Path) -> str:
    with _open_file(file) as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


async def _read_chunks(file: Path) -> AsyncIterator[bytes]:
    with _open_file(file) as stream:
        while chunk := await asyncio.to_thread(stream.read, CHUNK_BYTES):
            yield chunk


def report_lost(lost: Sequence[StoredFile]) -> None:
    """Warn of documents and statements without a file."""
    for row in lost[:MAX_LOST_SHOWN]:
        click.echo(f"Warning: the file of {_describe(row)} is missing: {row.object_key}", err=True)
    if len(lost) > MAX_LOST_SHOWN:
        click.echo(f"Warning: {len(lost) - MAX_LOST_SHOWN:,} more files are missing.", err=True)


def _describe(row: StoredFile) -> str:
    if not isinstance(row, DocumentRow):
        return f"statement {row.id}"
    owner = f"invoice {row.invoice_id}" if row.invoice_id else f"provider {row.provider_id}"
    return f"document {row.id} of {owner}"


async def storage_lines(settings: Settings) -> list[Line]:
    """Whether the storage can be written, read and emptied. The folder in the data directory isn't checked."""
    name = settings.documents_url
    if name is None:
        text = "PLANKEEPER_DOCUMENTS_URL is not set, so the server stores no documents"
        return [("warn", text)] if settings.database_url else []
    key = f"doctor/{uuid7()}"
    try:
        storage = storage_of(settings)
        await storage.put(key, single_chunk(b"check"))
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
