"""Operations on team members that the API and the console share."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from msgspec import UNSET
from msgspec.structs import replace
from uuid_utils.compat import uuid7

from plankeeper.core.context import Disclosure, WriteContext, or_404
from plankeeper.core.errors import (
    DomainError,
    ErrorResource,
    FieldError,
    NotFound,
    ValidationError,
)
from plankeeper.core.fields import UUID_PATTERN, apply_patch, to_row_values, unset_to_none
from plankeeper.core.json import to_json
from plankeeper.core.record_matches import external_id_error
from plankeeper.database.client import Executor
from plankeeper.database.errors import ConstraintViolation
from plankeeper.events.recorder import is_changed, record_event, record_events
from plankeeper.resources.parents import Parent, select_participant_for_share
from plankeeper.resources.resource import Restored, record_key
from plankeeper.resources.team_members import store
from plankeeper.resources.team_members.rules import effective_permissions, other_priority, requires_email
from plankeeper.resources.team_members.schemas import (
    TeamMember,
    TeamMemberChange,
    TeamMemberCreate,
    TeamMemberRow,
    TeamMemberUpdate,
    TeamMemberVersion,
)
from plankeeper.resources.users import store as user_store
from plankeeper.resources.users.store import User
from plankeeper.resources.users.store import get_or_create as get_or_create_user


async def _priority_taken_error(db: Executor, plan_manager_id: UUID, violation: ConstraintViolation) -> DomainError:
    """Name the member that has the priority. The detail of PostgreSQL's error has the participant and the priority."""
    match = re.search(r"=\(\S+, (\S+), (\d)\)", violation.detail)
    holder_id = await store.get_priority_holder(db, plan_manager_id, UUID(match[1]), int(match[2])) if match else None
    subject = f"Team member {holder_id} holds" if holder_id else "Another team member held"
    detail = f"{subject} contact priority {match[2] if match else ''} of this participant."
    holder = ErrorResource("team_member", str(holder_id)) if holder_id else None
    return DomainError("contact_priority_taken", detail, resource=holder)


async def _member_exists_error(_db: Executor, _plan_manager_id: UUID, violation: ConstraintViolation) -> DomainError:
    """Name the member with the email. A member's id is the last one of the key's values."""
    ids = [match[0] for match in _UUIDS.finditer(violation.detail)]
    return DomainError("team_member_exists", resource=ErrorResource("team_member", ids[-1]) if ids else None)


async def _participant_not_found_error(
    _db: Executor, _plan_manager_id: UUID, _violation: ConstraintViolation
) -> DomainError:
    return NotFound()


_UUIDS = re.compile(UUID_PATTERN)


CONSTRAINT_ERRORS = {
    "team_members_external_id_key": external_id_error("team member"),
    "team_members_contact_priority_key": _priority_taken_error,
    "team_members_user_id_key": _member_exists_error,
    "team_members_pkey": _member_exists_error,
    "team_members_participant_id_fkey": _participant_not_found_error,
}


async def select_for_update(ctx: WriteContext, participant_id: UUID, team_member_id: UUID) -> TeamMemberVersion | None:
    """Lock a team member until the transaction ends."""
    rows = await store.select_for_update(ctx.tx, ctx.plan_manager_id, [participant_id], [team_member_id])
    return rows[0] if rows else None


async def create(
    ctx: WriteContext, participant_id: UUID, new: TeamMemberCreate, *, replaces_holder: bool = False
) -> TeamMember:
    """Add a member; raises NotFound. With `replaces_holder`, another holder of the contact priority gives it up."""
    participant = or_404(await select_participant_for_share(ctx.tx, ctx.plan_manager_id, participant_id))
    email = unset_to_none(new.email)
    if not any((unset_to_none(new.first_name), unset_to_none(new.last_name), email)):
        message = "at least one of first_name, last_name and email is required"
        raise ValidationError(FieldError("first_name", message, "required"))
    if email and email.lower() == (participant.email or "").lower():
        raise ValidationError(email="must differ from the participant's own email")
    permissions = new.permission_names or []
    if not email and requires_email(permissions):
        raise DomainError("permission_requires_email")
    user_id = await get_or_create_user(ctx.tx, ctx.plan_manager_id, uuid7(), email)
    profile_id = None if email else uuid7()
    defaults = TeamMemberRow(
        participant_id=participant_id, id=profile_id or user_id, user_id=user_id, pm_profile_id=profile_id
    )
    row = apply_patch(new, defaults)
    row.permissions = effective_permissions(permissions)
    if replaces_holder:
        await _clear_holder(ctx, row, None)
    await store.insert(ctx.tx, ctx.plan_manager_id, to_json([row]))
    await store.grant_permissions(ctx.tx, ctx.plan_manager_id, to_json([row]))
    after = or_404(await store.get(ctx.tx, ctx.plan_manager_id, participant_id, row.id))
    await record_event(ctx, "team_member.created", None, after)
    return after


async def update(
    ctx: WriteContext,
    participant_id: UUID,
    team_member_id: UUID,
    change: TeamMemberChange,
    *,
    replaces_holder: bool = False,
) -> TeamMember:
    """Apply the fields that are set; raises NotFound.

    With `replaces_holder`, another holder of the contact priority gives it up, and gets the one that becomes free.
    """
    if replaces_holder:  # all of the team in order, so that two such updates never wait for each other
        await store.select_ids_for_update(ctx.tx, ctx.plan_manager_id, participant_id)
    old = or_404(await select_for_update(ctx, participant_id, team_member_id))
    if isinstance(change, TeamMemberUpdate):
        _require_own_email(change, old)
        change = replace(change, email=UNSET)
    permissions = change.permission_names
    if permissions is not UNSET and old.email is None and requires_email(permissions):
        raise DomainError("permission_requires_email")
    new = apply_patch(change, old)
    new.permissions = effective_permissions(new.permissions)
    before = or_404(await store.get(ctx.tx, ctx.plan_manager_id, participant_id, team_member_id))
    if not is_changed(old, new):
        ctx.disclosed.append(Disclosure("viewed", "participant", participant_id))
        return before
    if replaces_holder:
        await _clear_holder(ctx, new, old.contact_priority)
    await store.update_many(ctx.tx, ctx.plan_manager_id, to_json([new]))
    if new.permissions != old.permissions:
        await store.set_permissions(ctx.tx, ctx.plan_manager_id, to_json([new]))
    after = or_404(await store.get(ctx.tx, ctx.plan_manager_id, participant_id, new.id))
    await record_event(ctx, "team_member.updated", before, after)
    return after


def _require_own_email(change: TeamMemberUpdate, old: TeamMemberRow) -> None:
    if change.email is not UNSET and (change.email or "").lower() != (old.email or "").lower():
        message = "can't be changed: leave it out, or send the member's own email"
        raise ValidationError(FieldError("email", message, "read_only"))


async def _clear_holder(ctx: WriteContext, new: TeamMemberRow, old_priority: int | None) -> None:
    """Take the contact priority that a member is about to get from its holder, and record the holder's event.

    The holder gets the member's old priority, or else the other one if nobody has it.
    """
    participant_id, priority = new.participant_id, new.contact_priority
    place = (ctx.tx, ctx.plan_manager_id, participant_id)
    holder_id = await store.get_priority_holder(*place, priority) if priority else None
    if priority is None or holder_id is None or holder_id == new.id:
        return
    holder = or_404(await select_for_update(ctx, participant_id, holder_id))
    before = or_404(await store.get(*place, holder_id))
    is_other_taken = await store.get_priority_holder(*place, other_priority(priority)) is not None
    holder.contact_priority = old_priority or (None if is_other_taken else other_priority(priority))
    # The priorities of a team are unique at every moment: both members give up theirs first.
    await store.clear_changed_priorities(ctx.tx, ctx.plan_manager_id, to_json([holder, new]))
    await store.update_many(ctx.tx, ctx.plan_manager_id, to_json([holder]))
    after = or_404(await store.get(*place, holder_id))
    await record_event(ctx, "team_member.updated", before, after)


async def delete(ctx: WriteContext, participant_id: UUID, team_member_id: UUID) -> None:
    """Remove a team member; raises NotFound."""
    or_404(await select_for_update(ctx, participant_id, team_member_id))
    before = or_404(await store.get(ctx.tx, ctx.plan_manager_id, participant_id, team_member_id))
    await store.delete(ctx.tx, ctx.plan_manager_id, participant_id, team_member_id)
    await record_event(ctx, "team_member.deleted", before, None)


async def restore(ctx: WriteContext, participant: Parent, records: Iterable[Mapping[str, Any]]) -> Restored:
    """Add members to a participant that the caller has locked. Each record has the fields of TeamMemberRow.

    A user who was deleted since is created again. A contact priority that another member has now is left out, and so is
    a member whose email is on the team already, or is the participant's own.
    """
    rows = [_row(participant.id, each) for each in records]
    changes = await _restore_users(ctx, rows)
    member_ids = await store.select_ids_for_update(ctx.tx, ctx.plan_manager_id, participant.id)
    team = await store.select_for_update(ctx.tx, ctx.plan_manager_id, [participant.id] * len(member_ids), member_ids)
    accepted = list[TeamMemberRow]()
    for row in rows:
        if row.email and row.email.lower() == (participant.email or "").lower():
            changes.append(f"{_name(row)} wasn’t added: the email {row.email} is the participant’s own.")
        elif any(row.user_id == each.user_id for each in [*team, *accepted]):
            changes.append(f"{_name(row)} wasn’t added: the same person is on the team already.")
        else:
            changes += _clear_taken_priority(row, [*team, *accepted])
            accepted.append(row)
    members = await _insert(ctx, accepted)
    return Restored([record_key(each) for each in members], changes)


def _row(participant_id: UUID, record: Mapping[str, Any]) -> TeamMemberRow:
    """A row with the current columns, whatever the columns at the time of the deletion."""
    known: dict[str, Any] = {name: record[name] for name in TeamMemberRow.__struct_fields__ if name in record}
    return TeamMemberRow(**to_row_values(TeamMemberRow, known | {"participant_id": participant_id}))


async def _restore_users(ctx: WriteContext, rows: Sequence[TeamMemberRow]) -> list[str]:
    """Create missing users, and change the rows to the users who have their emails now."""
    emails = [each.email.lower() for each in rows if each.email]
    user_ids = [each.user_id for each in rows]
    found = await user_store.get_by_ids_or_emails(ctx.tx, ctx.plan_manager_id, user_ids, emails)
    by_id = {each.id: each for each in found}
    by_email = {each.email.lower(): each for each in found if each.email}
    changes, missing = list[str](), list[User]()
    for row in rows:
        user = by_id.get(row.user_id)
        if user and user.email != row.email:
            changes.append(f"{_name(row)} has the email {user.email} now, not {row.email or 'none'}.")
            row.email = user.email
        elif user is None and row.email and row.email.lower() in by_email:
            new_id = by_email[row.email.lower()].id
            row.id = new_id if row.id == row.user_id else row.id
            row.user_id = new_id
            changes.append(f"{_name(row)} has another id: the email {row.email} belongs to another user now.")
        elif user is None:
            missing.append(User(row.user_id, row.email))
    if missing:
        await user_store.upsert(ctx.tx, ctx.plan_manager_id, to_json(missing))
    return changes


def _clear_taken_priority(row: TeamMemberRow, team: Iterable[TeamMemberRow]) -> list[str]:
    holder = next(
        (each for each in team if row.contact_priority and each.contact_priority == row.contact_priority), None
    )
    if holder is None:
        return []
    label = "primary" if row.contact_priority == 1 else "secondary"
    row.contact_priority = None
    return [f"{_name(row)} isn’t the {label} contact: {_name(holder)} is."]


async def _insert(ctx: WriteContext, rows: Sequence[TeamMemberRow]) -> list[TeamMember]:
    if not rows:
        return []
    for row in rows:
        row.permissions = effective_permissions(row.permissions)
    records = to_json(rows)
    await store.insert(ctx.tx, ctx.plan_manager_id, records)
    await store.grant_permissions(ctx.tx, ctx.plan_manager_id, records)
    participant_ids = [each.participant_id for each in rows]
    members = await store.get_many(ctx.tx, ctx.plan_manager_id, participant_ids, [each.id for each in rows])
    await record_events(ctx, [("team_member.created", None, each) for each in members])
    return members


def _name(row: TeamMemberRow) -> str:
    return " ".join(filter(None, (row.first_name, row.last_name))) or row.email or "A member without a name"
