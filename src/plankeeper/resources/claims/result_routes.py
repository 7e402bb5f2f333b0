"""Results and receipts of claim batches."""

from uuid import UUID

from plankeeper.core.context import ReadContext, WriteContext, or_404
from plankeeper.core.lists import Page, read_page
from plankeeper.http.routing import CLAIMS, Router
from plankeeper.resources.claims import receipts, result_service, result_store, store
from plankeeper.resources.claims.result_schemas import (
    ClaimResults,
    NewReceipt,
    Receipt,
    ReceiptListQuery,
    ResultsQuery,
)
from plankeeper.resources.claims.results_file import MAX_BYTES, ResultsFile

router = Router("claim_batches")


@router.post(
    "/claim-batches/{claim_batch_id}/results",
    scope=CLAIMS,
    extension=True,
    receive_file=result_service.receive,
    max_body_bytes=MAX_BYTES,
    errors=("invalid_transition",),
)
async def apply_results(
    ctx: WriteContext, claim_batch_id: UUID, query: ResultsQuery, file: ResultsFile
) -> ClaimResults:
    """Apply the results file of the agency's portal to a batch. Applying it again changes nothing."""
    return await result_service.apply_results(ctx, claim_batch_id, file, dry_run=query.dry_run is True)


@router.get("/claim-batches/{claim_batch_id}/receipts", scope=CLAIMS, extension=True)
async def list_receipts(ctx: ReadContext, claim_batch_id: UUID, query: ReceiptListQuery) -> Page[Receipt]:
    """List the money from the agency that has arrived for a batch."""
    or_404(await store.get_state(ctx.db, ctx.plan_manager_id, claim_batch_id))
    place = ctx.db, ctx.plan_manager_id, claim_batch_id
    return await read_page(query, result_store.list_receipts_page, result_store.count_receipts, *place)


@router.post(
    "/claim-batches/{claim_batch_id}/receipts", scope=CLAIMS, extension=True, status=201, errors=("invalid_transition",)
)
async def record_receipt(ctx: WriteContext, claim_batch_id: UUID, new: NewReceipt) -> Receipt:
    """Record that money from the agency has arrived for a batch."""
    return await receipts.record(ctx, claim_batch_id, new)
