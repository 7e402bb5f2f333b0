"""Claims of single lines, adjustments, and what is to be recovered."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from plankeeper.core.context import AccessedKind, ReadContext, WriteContext, or_404
from plankeeper.core.errors import ErrorCode
from plankeeper.core.lists import Page, build_page, read_page
from plankeeper.http.routing import CLAIMS, CLAIMS_OR_PAYMENTS, PAYMENTS, Router
from plankeeper.resources.claims import adjustment_store, adjustments, line_claims
from plankeeper.resources.claims.adjustment_schemas import (
    Adjustment,
    AdjustmentListQuery,
    NewAdjustment,
    Recovery,
    RecoveryListQuery,
)
from plankeeper.resources.claims.result_schemas import ClaimedElsewhere, LineClaimResult
from plankeeper.resources.invoices import store as invoice_store
from plankeeper.resources.invoices.schemas import Invoice

router = Router("invoices")

_LOCKABLE: tuple[ErrorCode, ...] = ("invalid_transition", "invoice_locked")


@router.post("/invoices/{invoice_id}/claimed-elsewhere", scope=CLAIMS, extension=True, errors=_LOCKABLE)
async def claim_elsewhere(ctx: WriteContext, invoice_id: UUID, body: ClaimedElsewhere) -> Invoice:
    """Record that lines were claimed outside of Plankeeper: they are pending."""
    return await line_claims.claim_elsewhere(ctx, invoice_id, body)


@router.post("/invoices/{invoice_id}/lines/{line_id}/claim-result", scope=CLAIMS, extension=True, errors=_LOCKABLE)
async def record_result(ctx: WriteContext, invoice_id: UUID, line_id: UUID, body: LineClaimResult) -> Invoice:
    """Record the agency's answer to the claim of a pending line, or that it was cancelled in the agency's portal."""
    return await line_claims.record_result(ctx, invoice_id, line_id, body)


@router.post("/invoices/{invoice_id}/lines/{line_id}/claim-rest", scope=CLAIMS, extension=True, errors=_LOCKABLE)
async def claim_rest(ctx: WriteContext, invoice_id: UUID, line_id: UUID) -> Invoice:
    """Put the unpaid rest of a partially paid line up for the next claim batch."""
    return await line_claims.claim_rest(ctx, invoice_id, line_id)


@router.get(
    "/invoices/{invoice_id}/adjustments",
    scope=CLAIMS_OR_PAYMENTS,
    one_scope=True,
    extension=True,
    access_log="invoice",
)
async def list_adjustments(ctx: ReadContext, invoice_id: UUID, query: AdjustmentListQuery) -> Page[Adjustment]:
    """List what has happened to the money of an invoice's lines after their results."""
    or_404(await invoice_store.exists(ctx.db, ctx.plan_manager_id, invoice_id) or None)
    place = ctx.db, ctx.plan_manager_id, invoice_id
    return await read_page(query, adjustment_store.list_page, adjustment_store.count, *place)


@router.post(
    "/invoices/{invoice_id}/adjustments",
    scope=CLAIMS_OR_PAYMENTS,
    one_scope=True,
    extension=True,
    status=201,
    errors=_LOCKABLE,
)
async def record_adjustment(ctx: WriteContext, invoice_id: UUID, new: NewAdjustment) -> Adjustment:
    """Record a reversal by the agency, a refund of the payee, or a repayment to the agency."""
    adjustments.require_scope(ctx, new)
    return await adjustments.record(ctx, invoice_id, new)


def _list_invoices(page: Page[Recovery]) -> Mapping[AccessedKind, Sequence[UUID]]:
    return {"invoice": list(dict.fromkeys(each.invoice_id for each in page.data))}


@router.get("/recoveries", scope=PAYMENTS, extension=True, access_log=_list_invoices)
async def list_recoveries(ctx: ReadContext, query: RecoveryListQuery) -> Page[Recovery]:
    """List the lines that were paid out and that the agency has reversed since, until they are settled."""
    rows = await adjustments.list_recoveries(ctx.db, ctx.plan_manager_id, query)
    total = None if query.uses_cursor else await adjustment_store.count_unsettled(ctx.db, ctx.plan_manager_id)
    return build_page(query, rows, total)
