"""Operations on notes that the API and the console share."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import msgspec
from msgspec.structs import replace
from uuid_utils.compat import uuid7

from plankeeper.core.context import Disclosure, WriteContext, or_404
from plankeeper.core.errors import FieldError, ValidationError
from plankeeper.core.fields import apply_patch
from plankeeper.core.json import to_json
from plankeeper.database.versions import next_updated_at
from plankeeper.events.recorder import Change, is_changed, record_event, record_events
from plankeeper.resources import recheck_queue
from plankeeper.resources.notes import store
from plankeeper.resources.notes.schemas import Note, NoteCreate, NotedKind, NotedResource, NoteUpdate, NoteVersion
from plankeeper.resources.notes.store import UsedNoteType

ARTICLES: Mapping[NotedKind, str] = {"participant": "a participant", "provider": "a provider", "invoice": "an invoice"}
_TYPE_MESSAGE = "must be the id of a note type of this plan manager"


async def select_for_update(ctx: WriteContext, note_id: UUID) -> NoteVersion | None:
    """Lock a note until the transaction ends."""
    rows = await store.select_for_update(ctx.tx, ctx.plan_manager_id, [note_id])
    return rows[0] if rows else None


async def create(ctx: WriteContext, new: NoteCreate) -> Note:
    """Create a note. Raises ValidationError for an unknown record or note type."""
    resource = NotedResource(new.resource.kind, UUID(new.resource.id))
    errors = [] if await _lock_resource(ctx, resource) else [FieldError("resource.id", _message(resource), "not_found")]
    type_ = await _lock_type(ctx, new.note_type_id)
    if errors or type_ is None:
        raise ValidationError(*errors, *([] if type_ else [FieldError("note_type_id", _TYPE_MESSAGE, "not_found")]))
    now = datetime.now(UTC)
    note = Note(
        id=uuid7(),
        resource=resource,
        note_type_id=type_.id,
        note_type=type_.note_type,
        badge_color=type_.badge_color,
        highlight_color=type_.highlight_color,
        text=new.text,
        pinned=new.pinned is True,
        alert=new.alert is True,
        author=ctx.actor,
        created_at=now,
        updated_at=now,
    )
    await store.insert(ctx.tx, ctx.plan_manager_id, to_json([to_row(note)]))
    await _recheck(ctx, [(None, note)])
    await record_event(ctx, "note.created", None, note)
    return note


def _message(resource: NotedResource) -> str:
    return f"must be the id of {ARTICLES[resource.kind]} of this plan manager"


async def _lock_resource(ctx: WriteContext, resource: NotedResource) -> bool:
    return bool(await store.lock_resources(ctx.tx, ctx.plan_manager_id, resource.kind, [resource.id]))


async def _lock_type(ctx: WriteContext, note_type_id: int) -> UsedNoteType | None:
    found = await store.lock_note_types(ctx.tx, ctx.plan_manager_id, [note_type_id])
    return found[0] if found else None


def to_row(note: Note) -> NoteVersion:
    return NoteVersion(
        id=note.id,
        resource_kind=note.resource.kind,
        resource_id=note.resource.id,
        note_type_id=note.note_type_id,
        text=note.text,
        pinned=note.pinned,
        alert=note.alert,
        author_kind=note.author.kind,
        author_id=note.author.id,
        author_name=note.author.name,
        created_at=note.created_at,
        updated_at=note.updated_at,
    )


async def update(ctx: WriteContext, note_id: UUID, change: NoteUpdate) -> Note:
    """Apply the fields that are set; raises NotFound, and ValidationError for an unknown note type."""
    return await save(ctx, or_404(await store.get_for_update(ctx.tx, ctx.plan_manager_id, note_id)), change)


async def save(ctx: WriteContext, before: Note, change: NoteUpdate) -> Note:
    """Apply the fields that are set to a note that `get_for_update` has returned."""
    after = apply_patch(change, before)
    if after.note_type_id != before.note_type_id:
        type_ = await _lock_type(ctx, after.note_type_id)
        if type_ is None:
            raise ValidationError(FieldError("note_type_id", _TYPE_MESSAGE, "not_found"))
        after = _with_type(after, type_)
    if not is_changed(before, after):
        if before.resource.kind != "provider":
            ctx.disclosed.append(Disclosure("viewed", before.resource.kind, before.resource.id))
    else:
        after.updated_at = next_updated_at(before.updated_at)
        await store.update(ctx.tx, ctx.plan_manager_id, to_json([after]), before.updated_at)
        await _recheck(ctx, [(before, after)])
        await record_event(ctx, "note.updated", before, after)
    return after


def _with_type(note: Note, type_: UsedNoteType) -> Note:
    colours = {"badge_color": type_.badge_color, "highlight_color": type_.highlight_color}
    return replace(note, note_type_id=type_.id, note_type=type_.note_type, **colours)


async def delete(ctx: WriteContext, note_id: UUID) -> Note:
    """Delete a note, and return it; raises NotFound."""
    or_404(await select_for_update(ctx, note_id))
    before = or_404(await store.get(ctx.tx, ctx.plan_manager_id, note_id))
    await store.delete_many(ctx.tx, ctx.plan_manager_id, [note_id])
    await _recheck(ctx, [(before, None)])
    await record_event(ctx, "note.deleted", before, None)
    return before


async def delete_many(ctx: WriteContext, note_ids: Sequence[UUID]) -> list[Note]:
    """Delete those of the notes that exist, and return them."""
    return await _delete(ctx, await store.get_many(ctx.tx, ctx.plan_manager_id, note_ids))


async def _delete(ctx: WriteContext, notes: Sequence[Note]) -> list[Note]:
    if notes:
        await store.delete_many(ctx.tx, ctx.plan_manager_id, [each.id for each in notes])
        await _recheck(ctx, [(each, None) for each in notes])
        await record_events(ctx, [("note.deleted", each, None) for each in notes])
    return list(notes)


async def restore(ctx: WriteContext, note: Note) -> bool:
    """Insert a deleted note again. Returns false if its record or its note type no longer exists."""
    type_ = await _lock_type(ctx, note.note_type_id)
    if type_ is None or not await _lock_resource(ctx, note.resource):
        return False
    after = replace(_with_type(note, type_), updated_at=datetime.now(UTC))
    await store.insert(ctx.tx, ctx.plan_manager_id, to_json([to_row(after)]))
    await _recheck(ctx, [(None, after)])
    await record_event(ctx, "note.created", None, after)
    return True


async def _recheck(ctx: WriteContext, changes: Sequence[tuple[Note | None, Note | None]]) -> None:
    """Queue the invoices of participants and providers whose alerts have changed."""
    concerned = [(after or before) for before, after in changes if _alert(before) != _alert(after)]
    notes = [each for each in concerned if each]
    participants = {each.resource.id: None for each in notes if each.resource.kind == "participant"}
    providers = {each.resource.id: None for each in notes if each.resource.kind == "provider"}
    await recheck_queue.enqueue(ctx, "participant", participants)
    await recheck_queue.enqueue(ctx, "provider", providers)


def _alert(note: Note | None) -> str | None:
    return note.text if note and note.alert else None


# Together with participants and providers, whose invoices are checked again anyway


async def delete_of(ctx: WriteContext, kind: NotedKind, resource_ids: Sequence[UUID]) -> list[Change]:
    """Delete the notes on records that the caller has locked, and is about to delete. Returns the events to record."""
    notes = await store.list_of_resources(ctx.tx, ctx.plan_manager_id, kind, resource_ids)
    if notes:
        await store.delete_many(ctx.tx, ctx.plan_manager_id, [each.id for each in notes])
    return [("note.deleted", each, None) for each in notes]


async def list_of(ctx: WriteContext, kind: NotedKind, resource_id: UUID) -> list[Note]:
    """The notes on a record, for its entry in the trash."""
    return await store.list_of_resources(ctx.tx, ctx.plan_manager_id, kind, [resource_id])


async def restore_all(ctx: WriteContext, records: Iterable[Mapping[str, Any]]) -> tuple[list[Change], Sequence[str]]:
    """Insert the notes of a restored record again.

    Returns the events to record, and sentences about notes that can't be restored, because their type is gone.
    """
    notes = [from_record(each) for each in records]
    ids = sorted({each.note_type_id for each in notes})
    types = {each.id: each for each in await store.lock_note_types(ctx.tx, ctx.plan_manager_id, ids)} if ids else {}
    kept = [_with_type(each, types[each.note_type_id]) for each in notes if each.note_type_id in types]
    if kept:
        await store.insert(ctx.tx, ctx.plan_manager_id, to_json([to_row(each) for each in kept]))
    lost = dict.fromkeys(each.note_type for each in notes if each.note_type_id not in types)
    changes = [f"The note type {each} no longer exists, so its notes weren’t restored." for each in lost]
    return [("note.created", None, each) for each in kept], changes


def from_record(record: Mapping[str, Any]) -> Note:
    """A deleted note."""
    return msgspec.convert(dict(record) | {"updated_at": datetime.now(UTC)}, Note)


async def delete_of_invoices_of(ctx: WriteContext, participant_id: UUID) -> list[Note]:
    """Delete the notes on the invoices of a participant, for an erasure. Returns them."""
    return await _delete(ctx, await store.list_of_invoices_of(ctx.tx, ctx.plan_manager_id, participant_id))
