"""What rows of an import say about claims: states that existing invoices keep, and warnings that block claims."""

from collections.abc import Sequence
from typing import TypeVar
from uuid import UUID

from msgspec import UNSET, Struct
from msgspec.structs import replace

from plankeeper.core.context import WriteContext
from plankeeper.core.fields import unset_to_none
from plankeeper.resources.invoices import check_store, store
from plankeeper.resources.invoices.import_schemas import InvoiceImport, InvoiceLineImport
from plankeeper.resources.invoices.schemas import Invoice, LineItem
from plankeeper.resources.invoices.warnings import Level, level_of
from plankeeper.resources.upsert import ImportRow, RowError

S = TypeVar("S", bound=Struct)

INVOICE_FIELDS = (
    "claim_status",
    "approval_status",
    "wont_claim",
    "held_at",
    "held_by",
    "hold_reason",
    "cancelled_at",
    "closing_reason",
    "approval_decided_at",
    "approval_decided_by",
    "approval_team_member_id",
    "approval_reason",
)
LINE_FIELDS = (
    "claim_status",
    "claim_batch_ref",
    "claim_number",
    "paid_amount",
    "rejection_reason",
    "payment_ref",
    "closing_reason",
)


async def keep_states(ctx: WriteContext, rows: Sequence[ImportRow[InvoiceImport]]) -> list[ImportRow[InvoiceImport]]:
    """The rows, those about existing invoices without the states of the file: their lines keep the stored ones."""
    ids = [UUID(row.values.id) for row in rows if row.values.id is not UNSET]
    stored = {each.id: each for each in await store.get_many(ctx.tx, ctx.plan_manager_id, ids)} if ids else {}
    return [_keep(row, stored.get(UUID(row.values.id))) if row.values.id is not UNSET else row for row in rows]


def _keep(row: ImportRow[InvoiceImport], stored: Invoice | None) -> ImportRow[InvoiceImport]:
    if stored is None:
        return row
    lines = {each.id: each for each in unset_to_none(stored.line_items) or []}
    values = _without(row.values, INVOICE_FIELDS)
    if values.line_items is not UNSET:
        values.line_items = [_keep_line(each, lines) for each in values.line_items]
    return row._replace(values=values)


def _keep_line(item: InvoiceLineImport, stored: dict[UUID, LineItem]) -> InvoiceLineImport:
    """A line with its stored states; a new one has none."""
    old = stored.get(UUID(item.id)) if item.id is not UNSET else None
    if old is None:
        return _without(item, LINE_FIELDS)
    return replace(item, **{name: getattr(old, name) for name in LINE_FIELDS})


async def find_overrides(ctx: WriteContext, rows: Sequence[ImportRow[InvoiceImport]]) -> list[RowError]:
    """The errors of rows that ignore a warning that blocks claims, unless the stored invoice ignores it already."""
    codes = {row.line_number: found for row in rows if (found := _ignored_codes(row.values))}
    if not codes:
        return []
    levels: dict[str, Level] = {
        each.code: each.level for each in await check_store.list_levels(ctx.tx, ctx.plan_manager_id)
    }
    ids = [UUID(row.values.id) for row in rows if row.line_number in codes and row.values.id is not UNSET]
    stored = await store.get_many_without_lines(ctx.tx, ctx.plan_manager_id, ids)
    known = {each.id: each.state_management.ignored_errors for each in stored}
    errors = list[RowError]()
    for row in rows:
        own = () if row.values.id is UNSET else known.get(UUID(row.values.id), ())
        found = [
            each for each in codes.get(row.line_number, ()) if each not in own and level_of(each, levels) == "block"
        ]
        if found:
            message = f"must not ignore {found[0]}: only people who can ignore blocking warnings can import that"
            errors.append(RowError(row.line_number, "state_management", message))
    return errors


def _ignored_codes(values: InvoiceImport) -> list[str]:
    state = unset_to_none(values.state_management)
    return [] if state is None else unset_to_none(state.ignored_errors) or []


def _without(struct: S, names: Sequence[str]) -> S:
    return replace(struct, **dict.fromkeys(names, UNSET))
