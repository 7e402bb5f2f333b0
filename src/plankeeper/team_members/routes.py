"""Team members: list, create, get, update, delete."""

import re
from uuid import UUID

from msgspec import UNSET
from uuid_utils.compat import uuid7

from plankeeper.database.client import Broken, Queries
from plankeeper.events.recorder import record_event
from plankeeper.http.context import Read, Write, found
from plankeeper.http.errors import Invalid, NotFound, Refusal
from plankeeper.http.pagination import page_of
from plankeeper.http.parsing import LooseId
from plankeeper.http.routing import READ, WRITE, Routes
from plankeeper.http.schemas import Empty, Page, applied, given, json_text
from plankeeper.participants.store import exists, select_for_share
from plankeeper.team_members import store
from plankeeper.team_members.rules import effective_permissions, requires_email
from plankeeper.team_members.schemas import (
    TeamMember,
    TeamMemberUpdate,
    TeamMemberCreate,
    TeamMemberListQuery,
    TeamMemberRow,
)
from plankeeper.users.store import get_or_create as insert_user


async def priority_taken_error(db: Queries, plan_manager_id: UUID, violation: Broken) -> Refusal:
    """The 409 that names who holds the priority; PostgreSQL tells participant and priority in the error's detail."""
    match = re.search(r"=\(\S+, (\S+), (\d)\)", violation.detail)
    holder_id = await store.get_priority_holder(db, plan_manager_id, UUID(match[1]), int(match[2])) if match else None
    subject = f"Team member {holder_id} holds" if holder_id else "Another team member held"
    return Refusal(
        "contact_priority_taken", f"{subject} contact priority {match[2] if match else ''} of this participant."
    )


async def member_exists_error(_db: Queries, _plan_manager_id: UUID, _violation: Broken) -> Refusal:
    return Refusal("team_member_exists")


async def _participant_not_found_error(_db: Queries, _plan_manager_id: UUID, _violation: Broken) -> Refusal:
    return NotFound()


async def _get_for_update(ctx: Write, participant_id: UUID, team_member_id: UUID) -> TeamMemberRow | None:
    rows = await store.select_for_update(ctx.tx, ctx.plan_manager_id, [participant_id], [team_member_id])
    return rows[0] if rows else None


routes = Routes(
    "team_members",
    {
        "team_members_contact_priority_key": priority_taken_error,
        "team_members_user_id_key": member_exists_error,
        "team_members_pkey": member_exists_error,
        "team_members_participant_id_fkey": _participant_not_found_error,
    },
    lock=_get_for_update,
)


@routes.get("/participants/{participant_id}/team-members", need=READ)
async def list_(ctx: Read, participant_id: UUID, query: TeamMemberListQuery) -> Page[TeamMember]:
    """List the team members of a participant."""
    rows = await store.list_page(ctx.db, ctx.plan_manager_id, participant_id, query)
    if not rows and not await exists(ctx.db, ctx.plan_manager_id, participant_id):
        raise NotFound
    total = None if query.by_cursor else await store.count(ctx.db, ctx.plan_manager_id, participant_id)
    return page_of(query, rows, total)


@routes.post("/participants/{participant_id}/team-members", need=WRITE, extension=True, status=201, conflicts=True)
async def create(ctx: Write, participant_id: UUID, new: TeamMemberCreate) -> TeamMember:
    """Create a team member. Without `permissions` it has no access; without an email it can have none."""
    participant = found(await select_for_share(ctx.tx, ctx.plan_manager_id, participant_id))
    email = given(new.email)
    if not any((given(new.first_name), given(new.last_name), email)):
        raise Invalid(first_name="at least one of first_name, last_name and email is required")
    if email and email.lower() == (participant.email or "").lower():
        raise Invalid(email="must differ from the participant's own email")
    permissions = new.permissions or []
    if not email and requires_email(permissions):
        raise Refusal("permission_requires_email")
    user_id = await insert_user(ctx.tx, ctx.plan_manager_id, uuid7(), email)
    profile_id = None if email else uuid7()
    defaults = TeamMemberRow(
        participant_id=participant_id, id=profile_id or user_id, user_id=user_id, pm_profile_id=profile_id
    )  # fmt: skip
    row = applied(new, defaults)
    row.permissions = effective_permissions(permissions)
    await store.insert(ctx.tx, ctx.plan_manager_id, json_text([row]))
    after = await _save_permissions(ctx, row)
    await record_event(ctx, "team_member.created", None, after)
    return after


@routes.get("/participants/{participant_id}/team-members/{team_member_id}", need=READ, extension=True)
async def get(ctx: Read, participant_id: UUID, team_member_id: LooseId) -> TeamMember:
    """Get a team member."""
    members = await store.get_many(ctx.db, ctx.plan_manager_id, [participant_id], [team_member_id])
    return found(next(iter(members), None))


@routes.put("/participants/{participant_id}/team-members/{team_member_id}", need=WRITE, conflicts=True)
async def update(ctx: Write, participant_id: UUID, team_member_id: LooseId, change: TeamMemberUpdate) -> TeamMember:
    """Update a team member. Absent members stay as they are; null clears. The email cannot be changed."""
    old = found(await _get_for_update(ctx, participant_id, team_member_id))
    if change.permissions is not UNSET and old.email is None and requires_email(change.permissions):
        raise Refusal("permission_requires_email")
    new = applied(change, old)
    new.permissions = effective_permissions(new.permissions)
    [before] = await store.get_many(ctx.tx, ctx.plan_manager_id, [participant_id], [team_member_id])
    if new == old:
        return before
    await store.update_many(ctx.tx, ctx.plan_manager_id, json_text([new]))
    after = await _save_permissions(ctx, new)
    await record_event(ctx, "team_member.updated", before, after)
    return after


@routes.delete("/participants/{participant_id}/team-members/{team_member_id}", need=WRITE, extension=True)
async def delete(ctx: Write, participant_id: UUID, team_member_id: LooseId) -> Empty:
    """Take a team member off the participant's team."""
    found(await _get_for_update(ctx, participant_id, team_member_id))
    [before] = await store.get_many(ctx.tx, ctx.plan_manager_id, [participant_id], [team_member_id])
    await store.delete(ctx.tx, ctx.plan_manager_id, participant_id, team_member_id)
    await record_event(ctx, "team_member.deleted", before, None)
    return Empty()


async def _save_permissions(ctx: Write, row: TeamMemberRow) -> TeamMember:
    await store.set_permissions(ctx.tx, ctx.plan_manager_id, json_text([row]))
    [after] = await store.get_many(ctx.tx, ctx.plan_manager_id, [row.participant_id], [row.id])
    return after
