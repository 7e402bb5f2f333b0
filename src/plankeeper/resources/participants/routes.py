"""Participants: list, create, get, update, delete."""

from uuid import UUID

from plankeeper.core.bulk import MAX_BODY_BYTES, BulkResult
from plankeeper.core.context import ReadContext, WriteContext, or_404
from plankeeper.core.fields import EmptyResponse
from plankeeper.core.lists import Page, read_page
from plankeeper.http.routing import READ, WRITE, Router
from plankeeper.resources.participants import bulk as bulk_writes
from plankeeper.resources.participants import service, store
from plankeeper.resources.participants.queries import count, list_page
from plankeeper.resources.participants.schemas import (
    Participant,
    ParticipantBulk,
    ParticipantBulkQuery,
    ParticipantListQuery,
    ParticipantUpdate,
)

router = Router("participants", service.CONSTRAINT_ERRORS, lock=service.select_for_update)


@router.get("/participants", scope=READ, access_log="participant")
async def list_(ctx: ReadContext, query: ParticipantListQuery) -> Page[Participant]:
    """List participants. Filters are combined with AND."""
    return await read_page(query, list_page, count, ctx.db, ctx.plan_manager_id)


@router.post("/participants", scope=WRITE, creates=True)
async def create(ctx: WriteContext, change: ParticipantUpdate) -> Participant:
    """Create a participant. No field is required. Two participants can have the same participant number."""
    return await service.create(ctx, change)


@router.post(
    "/participants/bulk",
    scope=WRITE,
    extension=True,
    max_body_bytes=MAX_BODY_BYTES,
    find_errors=bulk_writes.find_errors,
)
async def save_many(ctx: WriteContext, query: ParticipantBulkQuery, bulk: ParticipantBulk) -> BulkResult[Participant]:
    """Create and update up to 500 participants. Either all items are saved, or none."""
    return BulkResult(await bulk_writes.save_many(ctx, query, bulk.items))


@router.get("/participants/{participant_id}", scope=READ, has_etag=True, access_log="participant")
async def get(ctx: ReadContext, participant_id: UUID) -> Participant:
    """Get a participant. It includes the names of its account manager and its exit reasons."""
    return or_404(await store.get(ctx.db, ctx.plan_manager_id, participant_id))


@router.put("/participants/{participant_id}", scope=WRITE)
async def update(ctx: WriteContext, participant_id: UUID, change: ParticipantUpdate) -> Participant:
    """Update a participant. Omitted fields keep their values; null clears a value."""
    return await service.update(ctx, participant_id, change)


@router.delete("/participants/{participant_id}", scope=WRITE)
async def delete(ctx: WriteContext, participant_id: UUID) -> EmptyResponse:
    """Delete a participant permanently, with its team members. Its invoices remain and keep its id."""
    await service.delete(ctx, participant_id)
    return EmptyResponse()
