"""Participants: list, create, get, update, delete."""

from uuid import UUID

from msgspec import UNSET

from plankeeper.http.context import ReadContext, WriteContext, or_404
from plankeeper.http.pagination import Page, build_page
from plankeeper.http.routing import READ, WRITE, Router
from plankeeper.http.schemas import EmptyResponse
from plankeeper.participants import service, store
from plankeeper.participants.queries import count, list_page
from plankeeper.participants.schemas import (
    Participant,
    ParticipantListQuery,
    ParticipantSummary,
    ParticipantUpdate,
    ViewQuery,
)

router = Router("participants", service.CONSTRAINT_ERRORS, lock=service.select_for_update)


@router.get("/participants", scope=READ, discloses="participant")
async def list_(ctx: ReadContext, query: ParticipantListQuery) -> Page[Participant]:
    """List participants in the full shape. Filters are combined with AND."""
    rows = await list_page(ctx.db, ctx.plan_manager_id, query)
    total = None if query.uses_cursor else await count(ctx.db, ctx.plan_manager_id, query)
    return build_page(query, rows, total)


@router.post("/participants", scope=WRITE, creates=True)
async def create(ctx: WriteContext, query: ViewQuery, change: ParticipantUpdate) -> ParticipantSummary | Participant:
    """Create a participant. No member is required. Two participants can have the same participant number."""
    return _apply_view(await service.create(ctx, change), query)


@router.get(
    "/participants/{participant_id}",
    scope=READ,
    etag=True,
    views=(ViewQuery(), ViewQuery(view="full")),
    discloses="participant",
)
async def get(ctx: ReadContext, participant_id: UUID, query: ViewQuery) -> ParticipantSummary | Participant:
    """Get a participant. Returns the basic shape, unless `view` asks for the full shape."""
    if query.view is UNSET:
        return or_404(await store.get_summary(ctx.db, ctx.plan_manager_id, participant_id))
    return or_404(await store.get(ctx.db, ctx.plan_manager_id, participant_id))


@router.put("/participants/{participant_id}", scope=WRITE)
async def update(
    ctx: WriteContext, participant_id: UUID, query: ViewQuery, change: ParticipantUpdate
) -> ParticipantSummary | Participant:
    """Update a participant. Omitted members keep their values; null clears a value."""
    return _apply_view(await service.update(ctx, participant_id, change), query)


@router.delete("/participants/{participant_id}", scope=WRITE)
async def delete(ctx: WriteContext, participant_id: UUID) -> EmptyResponse:
    """Delete a participant permanently, with its team members. Its invoices remain and keep its id."""
    await service.delete(ctx, participant_id)
    return EmptyResponse()


def _apply_view(participant: Participant, query: ViewQuery) -> ParticipantSummary | Participant:
    if query.view == "full":
        return participant
    return ParticipantSummary(*(getattr(participant, name) for name in ParticipantSummary.__struct_fields__))
