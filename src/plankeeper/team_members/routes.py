"""Team members: list, create, get, update, delete."""

import re
from uuid import UUID

from msgspec import UNSET
from uuid_utils.compat import uuid7

from plankeeper.database.client import Broken, Queries
from plankeeper.events.recorder import record
from plankeeper.http.context import Read, Write, found
from plankeeper.http.errors import Invalid, NotFound, Refusal
from plankeeper.http.pagination import page_of
from plankeeper.http.parsing import LooseId
from plankeeper.http.routing import READ, WRITE, Routes
from plankeeper.http.schemas import Empty, Page, applied, given, json_text
from plankeeper.participants.store import exists, fetch_contact
from plankeeper.team_members import store
from plankeeper.team_members.rules import effective, needs_email
from plankeeper.team_members.schemas import (
    TeamMember,
    TeamMemberChange,
    TeamMemberCreate,
    TeamMemberListQuery,
    TeamMemberRecord,
)
from plankeeper.users.store import insert as insert_user


async def priority_taken(db: Queries, plan_manager_id: UUID, fault: Broken) -> Refusal:
    """The 409 that names who holds the priority; PostgreSQL tells participant and priority in the error's detail."""
    key = re.search(r"=\(\S+, (\S+), (\d)\)", fault.detail)
    holder = await store.holder(db, plan_manager_id, UUID(key[1]), int(key[2])) if key else None
    held = f"Team member {holder} holds" if holder else "Another team member held"
    return Refusal("contact_priority_taken", f"{held} contact priority {key[2] if key else ''} of this participant.")


async def member_exists(_db: Queries, _plan_manager_id: UUID, _fault: Broken) -> Refusal:
    return Refusal("team_member_exists")


async def _participant_gone(_db: Queries, _plan_manager_id: UUID, _fault: Broken) -> Refusal:
    return NotFound()


async def _locked(call: Write, participant_id: UUID, team_member_id: UUID) -> TeamMemberRecord | None:
    rows = await store.records_for_update(call.tx, call.plan_manager_id, [participant_id], [team_member_id])
    return rows[0] if rows else None


routes = Routes(
    "team_members",
    {
        "team_members_contact_priority_key": priority_taken,
        "team_members_user_id_key": member_exists,
        "team_members_pkey": member_exists,
        "team_members_participant_id_fkey": _participant_gone,
    },
    lock=_locked,
)


@routes.get("/participants/{participant_id}/team-members", need=READ)
async def list_(call: Read, participant_id: UUID, query: TeamMemberListQuery) -> Page[TeamMember]:
    """List the team members of a participant."""
    rows = await store.page(call.db, call.plan_manager_id, participant_id, query)
    if not rows and not await exists(call.db, call.plan_manager_id, participant_id):
        raise NotFound
    total = None if query.by_cursor else await store.count(call.db, call.plan_manager_id, participant_id)
    return page_of(query, rows, total)


@routes.post("/participants/{participant_id}/team-members", need=WRITE, extension=True, status=201, conflicts=True)
async def create(call: Write, participant_id: UUID, new: TeamMemberCreate) -> TeamMember:
    """Create a team member. Without `permissions` it has no access; without an email it can have none."""
    participant = found(await fetch_contact(call.tx, call.plan_manager_id, participant_id))
    email = given(new.email)
    if not any((given(new.first_name), given(new.last_name), email)):
        raise Invalid(first_name="at least one of first_name, last_name and email is required")
    if email and email.lower() == (participant.email or "").lower():
        raise Invalid(email="must differ from the participant's own email")
    permissions = new.permissions or []
    if not email and needs_email(permissions):
        raise Refusal("permission_requires_email")
    user_id = await insert_user(call.tx, call.plan_manager_id, uuid7(), email)
    profile_id = None if email else uuid7()
    member = TeamMemberRecord(
        participant_id=participant_id, id=profile_id or user_id, user_id=user_id, pm_profile_id=profile_id
    )  # fmt: skip
    kept = applied(new, member)
    kept.permissions = effective(permissions)
    await store.insert(call.tx, call.plan_manager_id, json_text([kept]))
    after = await _granted(call, kept)
    await record(call, "team_member.created", None, after)
    return after


@routes.get("/participants/{participant_id}/team-members/{team_member_id}", need=READ, extension=True)
async def get(call: Read, participant_id: UUID, team_member_id: LooseId) -> TeamMember:
    """Get a team member."""
    members = await store.fetch(call.db, call.plan_manager_id, [participant_id], [team_member_id])
    return found(next(iter(members), None))


@routes.put("/participants/{participant_id}/team-members/{team_member_id}", need=WRITE, conflicts=True)
async def update(call: Write, participant_id: UUID, team_member_id: LooseId, change: TeamMemberChange) -> TeamMember:
    """Update a team member. Absent members stay as they are; null clears. The email cannot be changed."""
    old = found(await _locked(call, participant_id, team_member_id))
    if change.permissions is not UNSET and old.email is None and needs_email(change.permissions):
        raise Refusal("permission_requires_email")
    new = applied(change, old)
    new.permissions = effective(new.permissions)
    [before] = await store.fetch(call.tx, call.plan_manager_id, [participant_id], [team_member_id])
    if new == old:
        return before
    await store.replace(call.tx, call.plan_manager_id, json_text([new]))
    after = await _granted(call, new)
    await record(call, "team_member.updated", before, after)
    return after


@routes.delete("/participants/{participant_id}/team-members/{team_member_id}", need=WRITE, extension=True)
async def delete(call: Write, participant_id: UUID, team_member_id: LooseId) -> Empty:
    """Take a team member off the participant's team."""
    found(await _locked(call, participant_id, team_member_id))
    [before] = await store.fetch(call.tx, call.plan_manager_id, [participant_id], [team_member_id])
    await store.remove(call.tx, call.plan_manager_id, participant_id, team_member_id)
    await record(call, "team_member.deleted", before, None)
    return Empty()


async def _granted(call: Write, member: TeamMemberRecord) -> TeamMember:
    await store.grant(call.tx, call.plan_manager_id, json_text([member]))
    [after] = await store.fetch(call.tx, call.plan_manager_id, [member.participant_id], [member.id])
    return after
