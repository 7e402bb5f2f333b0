"""Exit reasons: list, create, get, update, delete."""

from uuid import UUID

from plankeeper.core.context import ReadContext, WriteContext, or_404
from plankeeper.core.fields import EmptyResponse
from plankeeper.core.lists import Page, read_page
from plankeeper.http.routing import READ, WRITE, Router
from plankeeper.resources.exit_reasons import service, store
from plankeeper.resources.exit_reasons.schemas import (
    ExitReason,
    ExitReasonCreate,
    ExitReasonListQuery,
    ExitReasonUpdate,
)

router = Router("exit_reasons", service.CONSTRAINT_ERRORS, lock=service.select_for_update)


@router.get("/exit-reasons", scope=READ, extension=True)
async def list_(ctx: ReadContext, query: ExitReasonListQuery) -> Page[ExitReason]:
    """List exit reasons. The parent of a subcategory is its category."""
    return await read_page(query, store.list_page, store.LIST.count_matching, ctx.db, ctx.plan_manager_id)


@router.post("/exit-reasons", scope=WRITE, extension=True, creates=True, status=201)
async def create(ctx: WriteContext, new: ExitReasonCreate) -> ExitReason:
    """Create an exit reason. Only `name` is required. With `parent_id`, it is a subcategory."""
    return await service.create(ctx, new)


@router.get("/exit-reasons/{exit_reason_id}", scope=READ, extension=True, has_etag=True)
async def get(ctx: ReadContext, exit_reason_id: UUID) -> ExitReason:
    """Get an exit reason."""
    return or_404(await store.get(ctx.db, ctx.plan_manager_id, exit_reason_id))


@router.put("/exit-reasons/{exit_reason_id}", scope=WRITE, extension=True)
async def update(ctx: WriteContext, exit_reason_id: UUID, change: ExitReasonUpdate) -> ExitReason:
    """Update an exit reason. Omitted fields keep their values."""
    return await service.update(ctx, exit_reason_id, change)


@router.delete("/exit-reasons/{exit_reason_id}", scope=WRITE, extension=True, errors=("exit_reason_in_use",))
async def delete(ctx: WriteContext, exit_reason_id: UUID) -> EmptyResponse:
    """Delete an exit reason. This is permanent, and only possible if nothing refers to it."""
    await service.delete(ctx, exit_reason_id)
    return EmptyResponse()
