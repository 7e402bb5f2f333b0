"""Participants: list, create, get, update, delete."""

from uuid import UUID

from plankeeper.database.client import Executor
from plankeeper.http.bulk import MAX_BODY_BYTES, BulkResult
from plankeeper.http.context import ReadContext, WriteContext, only_or_404, or_404
from plankeeper.http.pagination import VIEWS, Page, ViewQuery, build_page, in_order
from plankeeper.http.routing import READ, WRITE, Router
from plankeeper.http.schemas import EmptyResponse
from plankeeper.participants import service, store
from plankeeper.participants.bulk import save_many as save_participants
from plankeeper.participants.queries import count, list_page
from plankeeper.participants.schemas import (
    Participant,
    ParticipantBulk,
    ParticipantDetails,
    ParticipantListQuery,
    ParticipantSummary,
    ParticipantUpdate,
)

router = Router("participants", service.CONSTRAINT_ERRORS, lock=service.select_for_update)


@router.get("/participants", scope=READ, discloses="participant")
async def list_(ctx: ReadContext, query: ParticipantListQuery) -> Page[Participant] | Page[ParticipantDetails]:
    """List participants in the full shape. Filters are combined with AND."""
    rows = await list_page(ctx.db, ctx.plan_manager_id, query)
    total = None if query.uses_cursor else await count(ctx.db, ctx.plan_manager_id, query)
    return build_page(query, rows, total)


@router.post("/participants", scope=WRITE, creates=True)
async def create(
    ctx: WriteContext, query: ViewQuery, change: ParticipantUpdate
) -> ParticipantSummary | ParticipantDetails:
    """Create a participant. No member is required. Two participants can have the same participant number."""
    created = await service.create(ctx, change)
    return await _view(ctx.tx, ctx.plan_manager_id, created, query)


@router.post("/participants/bulk", scope=WRITE, extension=True, max_body_bytes=MAX_BODY_BYTES)
async def save_many(
    ctx: WriteContext, query: ViewQuery, bulk: ParticipantBulk
) -> BulkResult[ParticipantSummary] | BulkResult[ParticipantDetails]:
    """Create and update up to 500 participants. Either all items are saved, or none."""
    saved = await save_participants(ctx, bulk.items)
    if query.view != "full":
        return BulkResult([_summary(each) for each in saved])
    ids = [each.id for each in saved]
    return BulkResult(in_order(ids, await store.get_many_details(ctx.tx, ctx.plan_manager_id, ids)))


@router.get("/participants/{participant_id}", scope=READ, etag=True, views=VIEWS, discloses="participant")
async def get(ctx: ReadContext, participant_id: UUID, query: ViewQuery) -> ParticipantSummary | ParticipantDetails:
    """Get a participant. Returns the basic shape, unless `view` asks for the full shape."""
    if query.view == "full":
        return or_404(await ctx.db.load(store.get_many_details, ctx.plan_manager_id, participant_id))
    return or_404(await store.get_summary(ctx.db, ctx.plan_manager_id, participant_id))


@router.put("/participants/{participant_id}", scope=WRITE)
async def update(
    ctx: WriteContext, participant_id: UUID, query: ViewQuery, change: ParticipantUpdate
) -> ParticipantSummary | ParticipantDetails:
    """Update a participant. Omitted members keep their values; null clears a value."""
    updated = await service.update(ctx, participant_id, change)
    return await _view(ctx.tx, ctx.plan_manager_id, updated, query)


@router.delete("/participants/{participant_id}", scope=WRITE)
async def delete(ctx: WriteContext, participant_id: UUID) -> EmptyResponse:
    """Delete a participant permanently, with its team members. Its invoices remain and keep its id."""
    await service.delete(ctx, participant_id)
    return EmptyResponse()


async def _view(
    db: Executor, plan_manager_id: UUID, participant: Participant, query: ViewQuery
) -> ParticipantSummary | ParticipantDetails:
    """A participant that was written, in the shape that the request asks for."""
    if query.view == "full":
        return only_or_404(await store.get_many_details(db, plan_manager_id, [participant.id]))
    return _summary(participant)


def _summary(participant: Participant) -> ParticipantSummary:
    return ParticipantSummary(*(getattr(participant, name) for name in ParticipantSummary.__struct_fields__))
