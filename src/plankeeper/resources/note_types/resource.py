"""Note types as a resource."""

from collections.abc import Sequence
from uuid import UUID

from plankeeper.core.context import WriteContext
from plankeeper.database.client import Transaction
from plankeeper.resources.note_types import service, store
from plankeeper.resources.note_types.schemas import NoteTypeImport, NoteTypeRow, NoteTypeUpdate
from plankeeper.resources.resource import Resource
from plankeeper.resources.upsert import RecordUpserter, created_or_updated


async def _save(tx: Transaction, plan_manager_id: UUID, records: str) -> None:
    await store.upsert(tx, plan_manager_id, records)
    await store.advance_id_sequence(tx, plan_manager_id)


async def _delete_many(ctx: WriteContext, keys: Sequence[str]) -> None:
    for each in keys:
        await service.delete(ctx, int(each))


RESOURCE = Resource(
    kind="note_type",
    import_schema=NoteTypeImport,
    upsert=RecordUpserter(
        record_type=NoteTypeRow,
        select_for_update=store.select_for_update,
        save=_save,
        get_many=store.get_many,
        event_type=created_or_updated("note_type"),
        new_ids=store.next_ids,
    ),
    export_schema=NoteTypeRow,
    export=store.export,
    tables=("note_types",),
    get_many=lambda db, plan_manager_id, keys: store.get_many(db, plan_manager_id, [*map(int, keys)]),
    lock=lambda tx, plan_manager_id, keys: store.select_for_update(tx, plan_manager_id, [*map(int, keys)]),
    update_schema=NoteTypeUpdate,
    update=lambda ctx, key, change: service.update(ctx, int(key), change),
    delete_many=_delete_many,
    constraint_errors=service.CONSTRAINT_ERRORS,
)
