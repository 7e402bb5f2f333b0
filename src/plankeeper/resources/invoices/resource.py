"""Invoices as a resource. Deleted ones are only marked."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from msgspec import UNSET

from plankeeper.core.context import WriteContext, or_404
from plankeeper.core.errors import DomainError
from plankeeper.core.fields import unset_to_none
from plankeeper.core.validation import known_fields, validate_struct
from plankeeper.resources.invoices import actions, imports, service, store
from plankeeper.resources.invoices.import_schemas import InvoiceImport
from plankeeper.resources.invoices.schemas import Invoice, InvoiceRecord, InvoiceUpdate, LineItemUpdate
from plankeeper.resources.resource import Dependents, Resource, by_uuid, invalid
from plankeeper.resources.upsert import ImportRow

Changed = Mapping[str, Any]  # fields of an event

MADE_BY_BATCH_OR_RUN = "This change is undone with what made it: cancel the claim batch or the payment run of the line."
REST_IS_WAITING = (
    "The rest of a line that is put up for the next claim batch remains so. To keep it out of claim batches, hold the"
    " invoice."
)
BLOCK_NEEDS_REASON = (
    "An undo doesn't ignore a warning that blocks claims. Ignore it on the page of the invoice, with a reason."
)


async def _update(ctx: WriteContext, key: str, change: InvoiceUpdate) -> Invoice:
    """A line that was deleted since is created again, with another id."""
    if change.line_items is not UNSET:
        current = or_404(await store.get(ctx.tx, ctx.plan_manager_id, UUID(key)))
        deleted = {str(each.id) for each in unset_to_none(current.line_items) or [] if each.is_deleted}
        for item in change.line_items:
            if item.id in deleted and item.is_deleted is False:
                item.id = UNSET
    return await service.update(ctx, UUID(key), change)


async def _hold_again(ctx: WriteContext, key: str, before: Changed, _after: Changed) -> None:
    await actions.hold(ctx, UUID(key), before.get("hold_reason") or "")


async def _cancel_again(ctx: WriteContext, key: str, before: Changed, _after: Changed) -> None:
    """Undo the reopening of a cancelled invoice, or of one that was excluded from claims."""
    action = actions.cancel if "claim_status" in before else actions.wont_claim
    await action(ctx, UUID(key), before.get("closing_reason") or "")


async def _assign_back(ctx: WriteContext, key: str, before: Changed, _after: Changed) -> None:
    await service.update(ctx, UUID(key), InvoiceUpdate(assigned_to=before["assigned_to"]))


async def _restore_lines(ctx: WriteContext, key: str, before: Changed, after: Changed) -> None:
    """Undo the cancellation, the reopening or the split of a line. A line that was put up again remains so."""
    current = or_404(await store.get(ctx.tx, ctx.plan_manager_id, UUID(key)))
    statuses = {str(each.id): each.claim_status for each in unset_to_none(current.line_items) or []}
    lines: list[dict[str, Any]] = before.get("line_items") or []
    if len(after.get("line_items") or []) > len(lines):
        names = known_fields(LineItemUpdate)
        items = [{name: value for name, value in line.items() if name in names} for line in lines]
        await service.update(ctx, UUID(key), validate_struct(InvoiceUpdate, {"line_items": items}))
        return
    if not any(line["claim_status"] != statuses.get(line["id"]) for line in lines):
        has_put_up_rest = _lines_with_rest(after) - _lines_with_rest(before)
        raise DomainError("invalid_transition", REST_IS_WAITING if has_put_up_rest else MADE_BY_BATCH_OR_RUN)
    for line in lines:
        now = statuses.get(line["id"])
        if line["claim_status"] == "cancelled" != now:
            await actions.cancel_line(ctx, UUID(key), UUID(line["id"]), line.get("closing_reason") or "")
        elif line["claim_status"] != "cancelled" == now:
            await actions.reopen_line(ctx, UUID(key), UUID(line["id"]))
        elif line["claim_status"] != now:
            raise DomainError("invalid_transition", "A line that is put up for the next claim can only be cancelled.")


def _lines_with_rest(changed: Changed) -> set[str]:
    """The lines whose rest waits for the next claim batch."""
    lines: list[dict[str, Any]] = changed.get("line_items") or []
    return {line["id"] for line in lines if line.get("is_rest_waiting")}


async def _change_ignored(ctx: WriteContext, key: str, before: Changed, after: Changed) -> None:
    """Undo that warnings were ignored, or that they count again. Other ignored warnings stay so.

    A blocking warning isn't ignored by an undo, which has neither the reason nor the facts that it was ignored with.
    """
    old, new = (set[str](each["state_management"]["ignored_errors"]) for each in (before, after))
    for code in sorted(new - old):
        await service.restore(ctx, UUID(key), code)
    for code in sorted(old - new):
        try:
            await service.ignore(ctx, UUID(key), code, "Ignored again by an undo")
        except DomainError as error:
            raise DomainError("invalid_transition", BLOCK_NEEDS_REASON) from error


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
    update_schema=InvoiceUpdate,
    update=_update,
    inverses={
        "assigned": _assign_back,
        "held": lambda ctx, key, _before, _after: actions.release(ctx, UUID(key)),
        "released": _hold_again,
        "cancelled": lambda ctx, key, _before, _after: actions.reopen(ctx, UUID(key)),
        "reopened": _cancel_again,
        "wont_claim": lambda ctx, key, _before, _after: actions.reopen(ctx, UUID(key)),
        "line_changed": _restore_lines,
        "warning_ignored": _change_ignored,
        "warning_restored": _change_ignored,
    },
    delete_many=_mark_as_deleted,
    constraint_errors=service.CONSTRAINT_ERRORS,
    computed=frozenset({"errors", "is_duplicate", "state_management"}),
    dependents=(
        Dependents("participant", "has_invoices", by_uuid(store.list_invoiced_participants)),
        Dependents("provider", "has_invoices", by_uuid(store.list_invoiced_providers)),
    ),
)
