"""Participants: list, create, get, update, delete."""

from datetime import UTC, datetime
from uuid import UUID

from msgspec import UNSET
from uuid_utils.compat import uuid7

from plankeeper.account_managers.store import get_visible
from plankeeper.database.client import ConstraintViolation, Executor
from plankeeper.events.recorder import record_event, record_events
from plankeeper.http.context import ReadContext, WriteContext, or_404
from plankeeper.http.errors import ApiError, FieldError, ValidationError
from plankeeper.http.json import to_json
from plankeeper.http.pagination import Page, build_page
from plankeeper.http.routing import READ, WRITE, Router
from plankeeper.http.schemas import EmptyResponse, apply_patch
from plankeeper.participants import store
from plankeeper.participants.queries import count, list_page
from plankeeper.participants.schemas import (
    Participant,
    ParticipantListQuery,
    ParticipantRow,
    ParticipantSummary,
    ParticipantUpdate,
    ViewQuery,
    reference_ids,
    with_references,
)
from plankeeper.team_members import store as team_store


async def _unknown_reference(_db: Executor, _plan_manager_id: UUID, violation: ConstraintViolation) -> ApiError:
    column = violation.constraint.removeprefix("participants_").removesuffix("_fkey")
    resource = "account manager" if column == "account_manager_id" else "exit reason"
    return ValidationError(FieldError(column, f"must be the id of an {resource} of this plan manager"))


async def _select_for_update(ctx: WriteContext, participant_id: UUID) -> ParticipantRow | None:
    rows = await store.select_for_update(ctx.tx, ctx.plan_manager_id, [participant_id])
    return rows[0] if rows else None


router = Router(
    "participants",
    {
        "participants_account_manager_id_fkey": _unknown_reference,
        "participants_exit_reason_category_id_fkey": _unknown_reference,
        "participants_exit_reason_subcategory_id_fkey": _unknown_reference,
    },
    lock=_select_for_update,
)


@router.get("/participants", scope=READ)
async def list_(ctx: ReadContext, query: ParticipantListQuery) -> Page[Participant]:
    """List participants."""
    rows = await list_page(ctx.db, ctx.plan_manager_id, query)
    total = None if query.uses_cursor else await count(ctx.db, ctx.plan_manager_id, query)
    return build_page(query, rows, total)


@router.post("/participants", scope=WRITE)
async def create(ctx: WriteContext, query: ViewQuery, change: ParticipantUpdate) -> ParticipantSummary | Participant:
    """Create a participant. Its status is Active unless another is given."""
    new = apply_patch(change, ParticipantRow(id=uuid7(), created_at=datetime.now(UTC)))
    await _require_visible(ctx, change)
    await store.insert(ctx.tx, ctx.plan_manager_id, to_json([new]))
    [after] = await _with_references(ctx, new)
    await record_event(ctx, "participant.created", None, after)
    return _apply_view(after, query)


@router.get("/participants/{participant_id}", scope=READ, etag=True, views=(ViewQuery(), ViewQuery(view="full")))
async def get(ctx: ReadContext, participant_id: UUID, query: ViewQuery) -> ParticipantSummary | Participant:
    """Get a participant."""
    if query.view is UNSET:
        return or_404(await store.get_summary(ctx.db, ctx.plan_manager_id, participant_id))
    return or_404(await store.get(ctx.db, ctx.plan_manager_id, participant_id))


@router.put("/participants/{participant_id}", scope=WRITE)
async def update(
    ctx: WriteContext, participant_id: UUID, query: ViewQuery, change: ParticipantUpdate
) -> ParticipantSummary | Participant:
    """Update a participant. Absent members stay as they are; null clears."""
    old = or_404(await _select_for_update(ctx, participant_id))
    new = apply_patch(change, old)
    if to_json(new) != to_json(old):
        await _require_visible(ctx, change)
        await store.update_many(ctx.tx, ctx.plan_manager_id, to_json([new]))
    before, after = await _with_references(ctx, old, new)
    await record_event(ctx, "participant.updated", before, after)
    return _apply_view(after, query)


@router.delete("/participants/{participant_id}", scope=WRITE)
async def delete(ctx: WriteContext, participant_id: UUID) -> EmptyResponse:
    """Delete a participant for good, with its team members. Its invoices stay, and keep its id."""
    old = or_404(await _select_for_update(ctx, participant_id))
    [before] = await _with_references(ctx, old)
    member_ids = await team_store.select_ids_for_update(ctx.tx, ctx.plan_manager_id, participant_id)
    team = await team_store.get_many(ctx.tx, ctx.plan_manager_id, [participant_id] * len(member_ids), member_ids)
    await team_store.delete_team(ctx.tx, ctx.plan_manager_id, participant_id)
    await store.delete(ctx.tx, ctx.plan_manager_id, participant_id)
    await record_events(ctx, [("team_member.deleted", member, None) for member in team])
    await record_event(ctx, "participant.deleted", before, None)
    return EmptyResponse()


async def _with_references(ctx: WriteContext, *rows: ParticipantRow) -> list[Participant]:
    ids = reference_ids(*rows)
    names = await store.reference_names(ctx.tx, ctx.plan_manager_id, ids) if ids else {}
    return [with_references(row, names) for row in rows]


async def _require_visible(ctx: WriteContext, change: ParticipantUpdate) -> None:
    """An account manager that the list hides is as good as none; the foreign key cannot know that."""
    manager_id = change.account_manager_id
    if not isinstance(manager_id, str):
        return
    if await get_visible(ctx.tx, ctx.plan_manager_id, UUID(manager_id), ctx.settings.operator_name) is None:
        raise ValidationError(account_manager_id="must be the id of an account manager that the list shows")


def _apply_view(participant: Participant, query: ViewQuery) -> ParticipantSummary | Participant:
    if query.view == "full":
        return participant
    return ParticipantSummary(*(getattr(participant, name) for name in ParticipantSummary.__struct_fields__))
