"""Invoices as a resource. Deleted ones are only marked, and of their changes, only ignored warnings are undone."""

from collections.abc import Sequence
from uuid import UUID

from plankeeper.core.context import WriteContext, or_404
from plankeeper.resources.invoices import imports, service, store
from plankeeper.resources.invoices.import_schemas import InvoiceImport
from plankeeper.resources.invoices.schemas import Invoice, InvoiceRecord
from plankeeper.resources.resource import Dependents, Resource, by_uuid, invalid
from plankeeper.resources.upsert import ImportRow


async def _restore_warnings(ctx: WriteContext, key: str, codes: Sequence[str]) -> Invoice:
    for code in codes:
        await service.restore(ctx, UUID(key), code)
    return or_404(await store.get(ctx.tx, ctx.plan_manager_id, UUID(key)))


async def _mark_as_deleted(ctx: WriteContext, keys: Sequence[str]) -> None:
    rows = [ImportRow(line_number, InvoiceImport(id=key, is_deleted=True)) for line_number, key in enumerate(keys, 1)]
    await imports.upsert(ctx, rows)


RESOURCE = Resource(
    kind="invoice",
    import_schema=InvoiceImport,
    upsert=imports.upsert,
    export_schema=InvoiceRecord,
    export=store.export,
    tables=("invoices", "invoice_lines"),
    match_fields=service.MATCH_FIELDS,
    import_errors={
        "invoices_pkey": invalid(
            id="is that of an invoice that another import has just created: import the file again"
        ),
    },
    get_many=by_uuid(store.get_many),
    lock=by_uuid(store.select_for_update),
    update=_restore_warnings,
    delete_many=_mark_as_deleted,
    constraint_errors=service.CONSTRAINT_ERRORS,
    computed=frozenset({"errors", "is_duplicate", "state_management"}),
    dependents=(
        Dependents("participant", "has_invoices", by_uuid(store.list_invoiced_participants)),
        Dependents("provider", "has_invoices", by_uuid(store.list_invoiced_providers)),
    ),
)
