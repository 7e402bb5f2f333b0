"""Participants as a resource."""

from uuid import UUID

from plankeeper.resources.participants import bulk, service, store
from plankeeper.resources.participants.rules import is_ndis_number
from plankeeper.resources.participants.schemas import (
    REFERENCES,
    ParticipantImport,
    ParticipantRow,
    ParticipantUpdate,
)
from plankeeper.resources.resource import Resource, by_uuid, uuids
from plankeeper.resources.upsert import RecordUpserter, created_or_updated


def _check(values: ParticipantImport) -> str | None:
    number = values.participant_number
    if not isinstance(number, str) or is_ndis_number(number):
        return None
    return f"participant_number {number!r} is not a 9-digit scheme number"


RESOURCE = Resource(
    kind="participant",
    import_schema=ParticipantImport,
    upsert=RecordUpserter(
        record_type=ParticipantRow,
        select_for_update=store.select_for_import,
        save=store.update_many,
        insert=store.insert,
        get_many=store.get_many,
        event_type=created_or_updated("participant"),
    ),
    export_schema=ParticipantRow,
    export=store.export,
    tables=("participants",),
    check=_check,
    match_fields=bulk.MATCH_FIELDS,
    get_many=by_uuid(store.get_many),
    lock=by_uuid(store.select_for_import),
    update_schema=ParticipantUpdate,
    update=lambda ctx, key, change: service.update(ctx, UUID(key), change),
    delete_many=lambda ctx, keys: service.delete_many(ctx, uuids(keys)),
    constraint_errors=service.CONSTRAINT_ERRORS,
    references=REFERENCES,
    remove=service.remove,
    restore=service.restore,
)
