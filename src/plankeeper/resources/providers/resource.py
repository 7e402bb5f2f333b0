"""Providers as a resource."""

from collections.abc import Sequence
from uuid import UUID

from stdnum.au import abn

from plankeeper.core.context import WriteContext
from plankeeper.events.recorder import Change
from plankeeper.resources.bank_details import service as bank_details
from plankeeper.resources.providers import service, store
from plankeeper.resources.providers.bank_columns import parse_import
from plankeeper.resources.providers.schemas import ProviderImport, ProviderRecord, ProviderUpdate
from plankeeper.resources.resource import Resource, by_uuid, uuids
from plankeeper.resources.upsert import (
    ImportCounts,
    ImportRow,
    RecordUpserter,
    created_or_updated,
    default_created_at,
    map_collecting_errors,
)

_Pair = tuple[ProviderRecord | None, ProviderRecord]


class _Rechecks:
    """The invoices of imported providers, to check them again."""

    async def prepare(
        self,
        ctx: WriteContext,  # noqa: ARG002 - the protocol's
        changed: Sequence[tuple[int, ProviderRecord | None, ProviderRecord]],
    ) -> Sequence[_Pair]:
        return [(before, after) for _, before, after in changed]

    async def write(self, ctx: WriteContext, prepared: Sequence[_Pair]) -> Sequence[Change]:
        await service.enqueue_changed(ctx, prepared)
        return ()


def _check(values: ProviderImport) -> str | None:
    if not isinstance(values.abn, str) or abn.is_valid(values.abn):
        return None
    return f"abn {values.abn!r} is not 11 digits with a valid check digit"


_UPSERT = RecordUpserter(
    record_type=ProviderRecord,
    select_for_update=store.select_for_update,
    save=store.upsert,
    event_type=created_or_updated("provider"),
    defaults=default_created_at,
    part=_Rechecks(),
)


async def _upsert(ctx: WriteContext, rows: Sequence[ImportRow[ProviderImport]]) -> ImportCounts:
    """Upsert providers, and then their bank details."""
    accounts = map_collecting_errors(lambda row, _: parse_import(row), rows, rows)
    counts = await _UPSERT(ctx, rows)
    found = {UUID(str(row.values.id)): account for row, account in zip(rows, accounts, strict=True) if account}
    await bank_details.import_accounts(ctx, "provider", found)
    return counts


RESOURCE = Resource(
    kind="provider",
    import_schema=ProviderImport,
    upsert=_upsert,
    export_schema=ProviderRecord,
    export=store.export,
    tables=("providers",),
    check=_check,
    match_fields=service.MATCH_FIELDS,
    get_many=by_uuid(store.get_many),
    lock=by_uuid(store.select_for_update),
    update_schema=ProviderUpdate,
    update=lambda ctx, key, change: service.update(ctx, UUID(key), change),
    delete_many=lambda ctx, keys: service.delete_many(ctx, uuids(keys)),
    constraint_errors=service.CONSTRAINT_ERRORS,
    remove=service.remove,
    restore=service.restore,
)
