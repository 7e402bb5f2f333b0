"""Team members: list, create, get, update, delete."""

import re
from uuid import UUID

from msgspec import UNSET
from uuid_utils.compat import uuid7

from plankeeper.database.client import ConstraintViolation, Executor
from plankeeper.events.recorder import record_event
from plankeeper.http.context import ReadContext, WriteContext, or_404
from plankeeper.http.errors import ApiError, NotFound, ValidationError
from plankeeper.http.json import to_json
from plankeeper.http.pagination import Page, build_page
from plankeeper.http.parsing import UuidOr404
from plankeeper.http.routing import READ, WRITE, Router
from plankeeper.http.schemas import EmptyResponse, apply_patch, unset_to_none
from plankeeper.participants.store import exists, select_for_share
from plankeeper.team_members import store
from plankeeper.team_members.rules import effective_permissions, requires_email
from plankeeper.team_members.schemas import (
    TeamMember,
    TeamMemberCreate,
    TeamMemberListQuery,
    TeamMemberRow,
    TeamMemberUpdate,
)
from plankeeper.users.store import get_or_create as insert_user


async def priority_taken_error(db: Executor, plan_manager_id: UUID, violation: ConstraintViolation) -> ApiError:
    """The 409 that names who holds the priority; PostgreSQL tells participant and priority in the error's detail."""
    match = re.search(r"=\(\S+, (\S+), (\d)\)", violation.detail)
    holder_id = await store.get_priority_holder(db, plan_manager_id, UUID(match[1]), int(match[2])) if match else None
    subject = f"Team member {holder_id} holds" if holder_id else "Another team member held"
    return ApiError(
        "contact_priority_taken", f"{subject} contact priority {match[2] if match else ''} of this participant."
    )


async def member_exists_error(_db: Executor, _plan_manager_id: UUID, _violation: ConstraintViolation) -> ApiError:
    return ApiError("team_member_exists")


async def _participant_not_found_error(
    _db: Executor, _plan_manager_id: UUID, _violation: ConstraintViolation
) -> ApiError:
    return NotFound()


async def _get_for_update(ctx: WriteContext, participant_id: UUID, team_member_id: UUID) -> TeamMemberRow | None:
    rows = await store.select_for_update(ctx.tx, ctx.plan_manager_id, [participant_id], [team_member_id])
    return rows[0] if rows else None


router = Router(
    "team_members",
    {
        "team_members_contact_priority_key": priority_taken_error,
        "team_members_user_id_key": member_exists_error,
        "team_members_pkey": member_exists_error,
        "team_members_participant_id_fkey": _participant_not_found_error,
    },
    lock=_get_for_update,
)


@router.get("/participants/{participant_id}/team-members", scope=READ)
async def list_(ctx: ReadContext, participant_id: UUID, query: TeamMemberListQuery) -> Page[TeamMember]:
    """List the team members of a participant."""
    rows = await store.list_page(ctx.db, ctx.plan_manager_id, participant_id, query)
    if not rows and not await exists(ctx.db, ctx.plan_manager_id, participant_id):
        raise NotFound
    total = None if query.uses_cursor else await store.count(ctx.db, ctx.plan_manager_id, participant_id)
    return build_page(query, rows, total)


@router.post("/participants/{participant_id}/team-members", scope=WRITE, extension=True, status=201, conflicts=True)
async def create(ctx: WriteContext, participant_id: UUID, new: TeamMemberCreate) -> TeamMember:
    """Create a team member. Without `permissions` it has no access; without an email it can have none."""
    participant = or_404(await select_for_share(ctx.tx, ctx.plan_manager_id, participant_id))
    email = unset_to_none(new.email)
    if not any((unset_to_none(new.first_name), unset_to_none(new.last_name), email)):
        raise ValidationError(first_name="at least one of first_name, last_name and email is required")
    if email and email.lower() == (participant.email or "").lower():
        raise ValidationError(email="must differ from the participant's own email")
    permissions = new.permissions or []
    if not email and requires_email(permissions):
        raise ApiError("permission_requires_email")
    user_id = await insert_user(ctx.tx, ctx.plan_manager_id, uuid7(), email)
    profile_id = None if email else uuid7()
    defaults = TeamMemberRow(
        participant_id=participant_id, id=profile_id or user_id, user_id=user_id, pm_profile_id=profile_id
    )
    row = apply_patch(new, defaults)
    row.permissions = effective_permissions(permissions)
    await store.insert(ctx.tx, ctx.plan_manager_id, to_json([row]))
    after = await _save_permissions(ctx, row)
    await record_event(ctx, "team_member.created", None, after)
    return after


@router.get("/participants/{participant_id}/team-members/{team_member_id}", scope=READ, extension=True, etag=True)
async def get(ctx: ReadContext, participant_id: UUID, team_member_id: UuidOr404) -> TeamMember:
    """Get a team member."""
    members = await store.get_many(ctx.db, ctx.plan_manager_id, [participant_id], [team_member_id])
    return or_404(next(iter(members), None))


@router.put("/participants/{participant_id}/team-members/{team_member_id}", scope=WRITE, conflicts=True)
async def update(
    ctx: WriteContext, participant_id: UUID, team_member_id: UuidOr404, change: TeamMemberUpdate
) -> TeamMember:
    """Update a team member. Absent members stay as they are; null clears. The email cannot be changed."""
    old = or_404(await _get_for_update(ctx, participant_id, team_member_id))
    if change.permissions is not UNSET and old.email is None and requires_email(change.permissions):
        raise ApiError("permission_requires_email")
    new = apply_patch(change, old)
    new.permissions = effective_permissions(new.permissions)
    [before] = await store.get_many(ctx.tx, ctx.plan_manager_id, [participant_id], [team_member_id])
    if new == old:
        return before
    await store.update_many(ctx.tx, ctx.plan_manager_id, to_json([new]))
    after = await _save_permissions(ctx, new)
    await record_event(ctx, "team_member.updated", before, after)
    return after


@router.delete("/participants/{participant_id}/team-members/{team_member_id}", scope=WRITE, extension=True)
async def delete(ctx: WriteContext, participant_id: UUID, team_member_id: UuidOr404) -> EmptyResponse:
    """Take a team member off the participant's team."""
    or_404(await _get_for_update(ctx, participant_id, team_member_id))
    [before] = await store.get_many(ctx.tx, ctx.plan_manager_id, [participant_id], [team_member_id])
    await store.delete(ctx.tx, ctx.plan_manager_id, participant_id, team_member_id)
    await record_event(ctx, "team_member.deleted", before, None)
    return EmptyResponse()


async def _save_permissions(ctx: WriteContext, row: TeamMemberRow) -> TeamMember:
    await store.set_permissions(ctx.tx, ctx.plan_manager_id, to_json([row]))
    [after] = await store.get_many(ctx.tx, ctx.plan_manager_id, [row.participant_id], [row.id])
    return after
