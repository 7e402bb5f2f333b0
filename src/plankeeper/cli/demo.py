"""`serve --demo`: loads the sample data through the same import as any file, adds documents, an account and a key."""

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

import click
import msgspec
from uuid_utils.compat import uuid7

from plankeeper.access.accounts import members, password_reset, passwords
from plankeeper.access.accounts import store as accounts
from plankeeper.access.api_keys import service
from plankeeper.access.api_keys import store as key_store
from plankeeper.access.plan_managers import store
from plankeeper.access.tokens import hash_token
from plankeeper.cli.context import system_context
from plankeeper.cli.sample_data import DemoPlanManager, generate_support_items, plan_managers, records
from plankeeper.cli.sample_data.invoice_pdf import invoice_pdf, photograph
from plankeeper.cli.sample_data.random_values import Row
from plankeeper.core.context import Actor, ReadContext, WriteContext, or_404
from plankeeper.core.errors import NotFound
from plankeeper.core.files import Upload, single_chunk
from plankeeper.core.json import to_json
from plankeeper.core.settings import Settings
from plankeeper.database.client import Database, Executor, Transaction
from plankeeper.database.privileges import get_role
from plankeeper.events.recorder import record_event
from plankeeper.imports.importer import import_file
from plankeeper.resources.documents import store as document_store
from plankeeper.resources.documents.schemas import StoredObject
from plankeeper.resources.documents.storage import storage_of
from plankeeper.resources.invoices import documents
from plankeeper.resources.registry import CONSTRAINT_ERRORS, RESOURCES
from plankeeper.resources.support_items import store as support_items
from plankeeper.resources.support_items.service import import_items

CREDENTIALS_FILE = "demo-credentials.json"


class KeptCredentials(msgspec.Struct, frozen=True):
    """The secrets of the last start. They are empty before the first one."""

    key: str = ""
    password: str = ""


def read_credentials(file: Path) -> KeptCredentials:
    """The secrets in the file; empty ones if there is no valid file."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=KeptCredentials)
    except (OSError, msgspec.DecodeError):
        return KeptCredentials()


def write_credentials(file: Path, credentials: KeptCredentials) -> None:
    """Replace the file. mkstemp creates it with the mode 0600."""
    descriptor, name = tempfile.mkstemp(prefix=f".{file.name}-", dir=file.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(msgspec.json.encode(credentials) + b"\n")
        Path(name).replace(file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


KEY_NAME = "sample data"
KEY_LIFETIME = timedelta(days=30)
MIN_REMAINING_LIFETIME = timedelta(days=1)  # of a key that the next start uses again
COMMAND = "serve --demo"
EMAIL = "demo@plankeeper.example"


class DemoCredentials(NamedTuple):
    """The first plan manager of the sample data, an API key, and an account that can sign in."""

    plan_manager_id: UUID
    name: str
    key: str
    email: str
    password: str


async def load_demo_data(
    db: Database, settings: Settings, folder: Path | None = None, now: datetime | None = None
) -> DemoCredentials:
    """Load the sample data with dates relative to `now` unless it is loaded, with an account and a key.

    Their secrets are kept in a file in `folder`, so that the next start uses the same ones while they are valid.
    Without a folder, each start replaces them.
    Raises ClickException if the database has only other data, because sample data must not be mixed with it.
    """
    file = folder / CREDENTIALS_FILE if folder else None
    kept = read_credentials(file) if file else KeptCredentials()
    managers = plan_managers()
    async with db.transaction() as tx:
        await _require_place_for_demo_data(tx, managers)
        for each in managers:
            await _load_plan_manager(tx, settings, each, now or datetime.now(settings.time_zone))
        ctx = await system_context(tx, settings, managers[0].id, COMMAND)
        ids = [each.id for each in managers]
        key = await _use_or_replace_key(ctx, kept.key, ids)
        password = await _use_or_reset_password(tx, settings, kept.password, ids)
    if file and (key, password) != (kept.key, kept.password):
        write_credentials(file, KeptCredentials(key, password))
    return DemoCredentials(managers[0].id, managers[0].name, key, EMAIL, password)


async def _require_place_for_demo_data(db: Executor, managers: Sequence[DemoPlanManager]) -> None:
    existing_ids = {each.id for each in await store.list_all(db)}
    if existing_ids and not existing_ids & {each.id for each in managers}:
        raise click.ClickException(
            "The database contains plan managers, but not the sample data, and `--demo` would add it with an account"
            " and a key. Start without `--demo`, or use another database or data directory."
        )


async def _use_or_replace_key(ctx: WriteContext, kept: str, ids: Sequence[UUID]) -> str:
    """The kept key if it is valid for a while, or a new one, which replaces those of earlier starts."""
    found = await key_store.get_by_hash(ctx.tx, hash_token(kept)) if kept else None
    if found and found.revoked_at is None and set(ids) <= set(found.plan_managers):
        remaining = found.expires_at - datetime.now(UTC) if found.expires_at else KEY_LIFETIME
        if remaining > MIN_REMAINING_LIFETIME:
            return kept
    await _revoke_demo_keys(ctx)
    return await service.create(ctx, KEY_NAME, ids, ["read", "write", "claims", "payments"], KEY_LIFETIME)


async def _revoke_demo_keys(ctx: WriteContext) -> None:
    """Revoke the keys of earlier starts, whose secrets can't be shown again."""
    for key in await key_store.list_by_plan_manager(ctx.tx, ctx.plan_manager_id):
        if (key.name, key.created_by) == (KEY_NAME, ctx.actor.name) and service.key_state(key) == "active":
            await service.revoke(ctx, key.id)


async def _use_or_reset_password(tx: Transaction, settings: Settings, kept: str, ids: Sequence[UUID]) -> str:
    """The kept password if it is that of the account that owns the plan managers of the sample data, or a new one."""
    contexts = [await system_context(tx, settings, id_, COMMAND) for id_ in ids]
    account = await accounts.get_by_email(tx, EMAIL)
    is_valid = account is not None and kept and await passwords.verify(account.password_hash, kept)
    password = kept if is_valid else password_reset.generate_password()
    if account is None:
        await members.create(contexts[0], EMAIL, "Alex Morgan", "owner", password)
        account = or_404(await accounts.get_by_email(tx, EMAIL))
    elif not is_valid:
        await password_reset.reset(tx, settings, account, password, COMMAND)
    for ctx in contexts:
        await members.add(ctx, account, "owner")
    return password


async def _load_plan_manager(tx: Transaction, settings: Settings, manager: DemoPlanManager, now: datetime) -> None:
    plan_manager = await store.insert(tx, manager.id, manager.name)
    if plan_manager is None:
        return
    ctx = WriteContext(tx, manager.id, settings, Actor("system", None, f"plankeeper {COMMAND}"))
    await record_event(replace(ctx, notify=False), "plan_manager.created", None, plan_manager)
    for resource, rows in records(manager.id, now=now):
        lines = [f"{to_json(row)}\n".encode() for row in rows]
        import_ctx = replace(ctx, import_id=uuid7())
        report = await import_file(import_ctx, RESOURCES[resource], lines, CONSTRAINT_ERRORS, lambda _lines: None)
        if report.errors:
            raise ValueError(f"the sample data of {resource} cannot be imported: {report.errors[:3]}")


async def add_demo_catalogue(db: Database, settings: Settings, now: datetime | None = None) -> bool:
    """Import the sample support catalogue, unless there is a catalogue. False if the role doesn't own the tables.

    It comes before the invoices, whose checks use it. Raises ClickException as `load_demo_data` does.
    """
    await _require_place_for_demo_data(db, plan_managers())
    today = (now or datetime.now(settings.time_zone)).date()
    if (await support_items.get_catalogue(db)).revision:
        return True
    if not (await get_role(db)).is_owner:
        return False
    async with db.transaction() as tx:
        await import_items(tx, generate_support_items(today), today)
    return True


DOCUMENT_COUNT = 40  # of the latest invoices of each plan manager
PHOTO = -3  # the position of the document that is a photo
COPIES = (-6, -12)  # the positions of those that are the same file as the one before
FIRST_ID = UUID(int=0)


async def add_demo_documents(db: Database, settings: Settings, now: datetime | None = None) -> None:
    """Add documents to the latest sample invoices of each plan manager, unless it has documents.

    `now` is that of `load_demo_data`; by default, the time at which the plan manager was created. Raises DomainError
    503 if the server has no storage for documents, or if it fails.
    """
    storage_of(settings)
    for manager in plan_managers():
        if await document_store.list_page(db, manager.id, FIRST_ID, 1):
            continue
        loaded_at = now or or_404(await store.get(db, manager.id)).created_at.astimezone(settings.time_zone)
        read = ReadContext(db, manager.id, settings)
        stored: list[tuple[UUID, StoredObject]] = []
        for invoice_id, name, content in _documents(manager, loaded_at):
            with suppress(NotFound):  # an invoice that somebody has deleted for good
                stored.append(
                    (invoice_id, await documents.receive(read, invoice_id, Upload(name, single_chunk(content))))
                )
        async with db.transaction() as tx:
            actor = Actor("system", None, f"plankeeper {COMMAND}")
            ctx = WriteContext(tx, manager.id, settings, actor, import_id=uuid7(), notify=False)
            for invoice_id, each in stored:
                await documents.attach(ctx, invoice_id, each)


def _documents(manager: DemoPlanManager, now: datetime) -> Iterator[tuple[UUID, str, bytes]]:
    """The ids of invoices, and the names and contents of their documents. Some invoices have none."""
    rows: dict[str, list[Row]] = {resource: list(each) for resource, each in records(manager.id, now=now)}
    people, providers = ({row["id"]: row for row in rows[each]} for each in ("participants", "providers"))
    ids, files = list[UUID](), list[tuple[str, bytes]]()
    for invoice in rows["invoices"][-DOCUMENT_COUNT:]:
        participant, provider = people.get(invoice["participant_id"]), providers.get(invoice["pm_provider_id"])
        if participant and provider and invoice["s3_key"]:
            ids.append(UUID(invoice["id"]))
            name = (invoice["invoice_number"] or "invoice").replace("/", "-")
            files.append((f"{name}.pdf", invoice_pdf(invoice, provider, participant)))
    name, content = files[PHOTO]
    files[PHOTO] = (name.replace(".pdf", ".jpg"), photograph(content))
    for position in COPIES:
        files[position] = files[position - 1]
    for invoice_id, (name, content) in zip(ids, files, strict=True):
        yield invoice_id, name, content
