"""Notes as a resource."""

from collections.abc import Awaitable, Callable, Sequence
from uuid import UUID

from plankeeper.core.context import WriteContext
from plankeeper.database.client import Executor
from plankeeper.resources.note_types.store import list_used
from plankeeper.resources.notes import imports, service, store
from plankeeper.resources.notes.schemas import NotedKind, NoteImport, NoteRow, NoteUpdate
from plankeeper.resources.resource import Dependents, Resource, Restored, Snapshot, by_uuid, uuids


async def _delete_many(ctx: WriteContext, keys: Sequence[str]) -> None:
    await service.delete_many(ctx, uuids(keys))


async def _restore(ctx: WriteContext, snapshot: Snapshot) -> Restored:
    """Nothing if the note's record or its type no longer exists."""
    note = service.from_record(snapshot.record)
    return Restored([str(note.id)] if await service.restore(ctx, note) else [], [])


async def _list_used_types(db: Executor, plan_manager_id: UUID, keys: Sequence[str]) -> Sequence[str]:
    return await list_used(db, plan_manager_id, [*map(int, keys)])


def _with_notes(kind: NotedKind) -> Callable[[Executor, UUID, Sequence[str]], Awaitable[Sequence[str]]]:
    return lambda db, plan_manager_id, keys: store.list_noted(db, plan_manager_id, kind, uuids(keys))


RESOURCE = Resource(
    kind="note",
    import_schema=NoteImport,
    upsert=imports.upsert,
    export_schema=NoteRow,
    export=store.export,
    tables=("notes",),
    get_many=by_uuid(store.get_many),
    lock=by_uuid(store.select_for_update),
    update_schema=NoteUpdate,
    update=lambda ctx, key, change: service.update(ctx, UUID(key), change),
    delete_many=_delete_many,
    computed=frozenset({"note_type", "badge_color", "highlight_color"}),
    dependents=(
        Dependents("note_type", "has_notes", _list_used_types),
        Dependents("participant", "has_notes", _with_notes("participant")),
        Dependents("provider", "has_notes", _with_notes("provider")),
    ),
    restore=_restore,
)
