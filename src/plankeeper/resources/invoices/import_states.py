"""Rows of an import that leave the claim and approval states of existing invoices as they are."""

from collections.abc import Sequence
from typing import TypeVar
from uuid import UUID

from msgspec import UNSET, Struct
from msgspec.structs import replace

from plankeeper.core.context import WriteContext
from plankeeper.core.fields import unset_to_none
from plankeeper.resources.invoices import store
from plankeeper.resources.invoices.import_schemas import InvoiceImport, InvoiceLineImport
from plankeeper.resources.invoices.schemas import Invoice, LineItem
from plankeeper.resources.upsert import ImportRow

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


def _without(struct: S, names: Sequence[str]) -> S:
    return replace(struct, **dict.fromkeys(names, UNSET))
