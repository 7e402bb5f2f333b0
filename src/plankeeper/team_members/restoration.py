"""Restores team members that were deleted, with their ids, users, permissions and contact priorities."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from msgspec import Struct

from plankeeper.core.context import WriteContext
from plankeeper.core.fields import to_row_values
from plankeeper.core.json import to_json
from plankeeper.events.recorder import record_events
from plankeeper.participants.schemas import Participant
from plankeeper.team_members import store
from plankeeper.team_members.rules import effective_permissions
from plankeeper.team_members.schemas import TeamMember, TeamMemberRow
from plankeeper.users import store as user_store
from plankeeper.users.store import User


class RestoredTeam(Struct):
    """The restored members, and what could not be restored as it was, in sentences."""

    members: list[TeamMember]
    changes: list[str]


async def restore(ctx: WriteContext, participant: Participant, records: Iterable[Mapping[str, Any]]) -> RestoredTeam:
    """Add members to a participant that the caller has locked. Each record has the members of TeamMemberRow.

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
    return RestoredTeam(await _insert(ctx, accepted), changes)


def _row(participant_id: UUID, record: Mapping[str, Any]) -> TeamMemberRow:
    """A row of today's columns, whatever columns there were at the time of the deletion."""
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
