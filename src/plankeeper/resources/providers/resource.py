"""Providers as a resource."""

from collections.abc import Sequence
from uuid import UUID

from stdnum.au import abn

from plankeeper.core.context import WriteContext
from plankeeper.resources.providers import service, store
from plankeeper.resources.providers.schemas import Provider, ProviderImport, ProviderRecord, ProviderUpdate
from plankeeper.resources.resource import Resource, by_uuid, uuids
from plankeeper.resources.upsert import RecordUpserter, created_or_updated, default_created_at


def _check(values: ProviderImport) -> str | None:
    if not isinstance(values.abn, str) or abn.is_valid(values.abn):
        return None
    return f"abn {values.abn!r} is not 11 digits with a valid check digit"


async def _update(ctx: WriteContext, key: str, change: ProviderUpdate) -> Provider:
    return await service.update(ctx, UUID(key), change)


async def _delete_many(ctx: WriteContext, keys: Sequence[str]) -> None:
    await service.delete_many(ctx, uuids(keys))


RESOURCE = Resource(
    kind="provider",
    import_schema=ProviderImport,
    upsert=RecordUpserter(
        record_type=ProviderRecord,
        select_for_update=store.select_for_update,
        save=store.upsert,
        event_type=created_or_updated("provider"),
        defaults=default_created_at,
    ),
    export_schema=ProviderRecord,
    export=store.export,
    tables=("providers",),
    check=_check,
    match_fields=service.MATCH_FIELDS,
    get_many=by_uuid(store.get_many),
    lock=by_uuid(store.select_for_update),
    update_schema=ProviderUpdate,
    update=_update,
    delete_many=_delete_many,
    constraint_errors=service.CONSTRAINT_ERRORS,
    remove=service.remove,
    restore=service.restore,
)
