"""Claim batches: list, create, get, their claims and their file, submit, cancel."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from plankeeper.core.context import AccessedKind, ReadContext, WriteContext, or_404
from plankeeper.core.files import Download
from plankeeper.core.lists import Page, read_page
from plankeeper.http.routing import CLAIMS, Router
from plankeeper.resources.claims import service, store
from plankeeper.resources.claims.schemas import (
    Claim,
    ClaimBatch,
    ClaimBatchCancel,
    ClaimBatchCreateQuery,
    ClaimBatchListQuery,
    ClaimListQuery,
    NewClaimBatch,
)

router = Router("claim_batches")


def _list_invoices(page: Page[Claim]) -> Mapping[AccessedKind, Sequence[UUID]]:
    return {"invoice": list(dict.fromkeys(each.invoice_id for each in page.data))} if page.data else {}


@router.get("/claim-batches", scope=CLAIMS, extension=True)
async def list_(ctx: ReadContext, query: ClaimBatchListQuery) -> Page[ClaimBatch]:
    """List claim batches. Filters are combined with AND."""
    return await read_page(query, store.list_page, store.LIST.count_matching, ctx.db, ctx.plan_manager_id)


@router.post(
    "/claim-batches",
    scope=CLAIMS,
    extension=True,
    creates=True,
    status=201,
    errors=("invalid_transition",),  # after a restore
)
async def create(ctx: WriteContext, query: ClaimBatchCreateQuery, new: NewClaimBatch) -> ClaimBatch:
    """Make a draft of the lines that can be claimed, up to 5,000. The others are left out, each with a reason."""
    return await service.create(ctx, new, is_dry_run=query.dry_run is True)


@router.get("/claim-batches/{claim_batch_id}", scope=CLAIMS, extension=True, has_etag=True)
async def get(ctx: ReadContext, claim_batch_id: UUID) -> ClaimBatch:
    """Get a claim batch."""
    return or_404(await store.get(ctx.db, ctx.plan_manager_id, claim_batch_id))


@router.get("/claim-batches/{claim_batch_id}/lines", scope=CLAIMS, extension=True, access_log=_list_invoices)
async def list_lines(ctx: ReadContext, claim_batch_id: UUID, query: ClaimListQuery) -> Page[Claim]:
    """List the claims of a batch, in the order of its file. Filters are combined with AND."""
    or_404(await store.get_state(ctx.db, ctx.plan_manager_id, claim_batch_id))
    return await read_page(
        query, store.list_claims_page, store.count_claims, ctx.db, ctx.plan_manager_id, claim_batch_id
    )


@router.get(
    "/claim-batches/{claim_batch_id}/file",
    scope=CLAIMS,
    extension=True,
    media_types=(service.MEDIA_TYPE,),
    errors=("invalid_transition",),  # after a restore
)
async def download(ctx: WriteContext, claim_batch_id: UUID) -> Download:
    """Download the file of a batch for the agency's portal. It is always the same. The first download is recorded."""
    return await service.download(ctx, claim_batch_id)


@router.post(
    "/claim-batches/{claim_batch_id}/submit",
    scope=CLAIMS,
    extension=True,
    errors=("invalid_transition", "invoice_locked"),
)
async def submit(ctx: WriteContext, claim_batch_id: UUID) -> ClaimBatch:
    """Submit a draft: its file is uploaded to the agency's portal, and its lines wait for their results."""
    return await service.submit(ctx, claim_batch_id)


@router.post(
    "/claim-batches/{claim_batch_id}/cancel",
    scope=CLAIMS,
    extension=True,
    errors=("invalid_transition",),
)
async def cancel(ctx: WriteContext, claim_batch_id: UUID, body: ClaimBatchCancel) -> ClaimBatch:
    """Cancel a draft, or a submitted batch without results, whose file hasn't been uploaded."""
    return await service.cancel(ctx, claim_batch_id, body)
