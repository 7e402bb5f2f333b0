"""Import of team members. A row identifies its participant by id or number; its email identifies the user."""

from collections.abc import Sequence
from typing import Any, NamedTuple
from uuid import UUID

from msgspec import UNSET, UnsetType
from uuid_utils.compat import uuid7

from plankeeper.core.context import WriteContext
from plankeeper.core.fields import unset_to_none
from plankeeper.core.json import to_json
from plankeeper.events.recorder import record_events
from plankeeper.resources.parents import resolve_participants
from plankeeper.resources.team_members import store
from plankeeper.resources.team_members.rules import effective_permissions, requires_email
from plankeeper.resources.team_members.schemas import TeamMemberImport, TeamMemberRow
from plankeeper.resources.upsert import (
    ImportCounts,
    ImportRow,
    InvalidRowsError,
    RowError,
    has_changed,
    map_collecting_errors,
    merge_record,
    upsert_each,
)
from plankeeper.resources.users.store import User
from plankeeper.resources.users.store import get_by_ids_or_emails as find_users
from plankeeper.resources.users.store import upsert as upsert_users

TeamMemberImportRow = ImportRow[TeamMemberImport]
MemberKey = tuple[UUID, UUID | None]  # a participant's id and a member's, if the row has it


class UserLookup(NamedTuple):
    """The users that rows refer to: by id, and their ids by email in lower case."""

    by_id: dict[UUID, User]
    by_email: dict[str, UUID]


class MemberIdentity(NamedTuple):
    """The ids of the member that a row describes."""

    participant_id: UUID
    id: UUID
    user_id: UUID
    pm_profile_id: UUID | None


async def upsert(ctx: WriteContext, rows: Sequence[TeamMemberImportRow]) -> ImportCounts:
    participants = await resolve_participants(ctx.tx, ctx.plan_manager_id, rows)
    keys = [(participant, _uuid(row.values.id)) for row, participant in zip(rows, participants, strict=True)]
    old = await _select_for_update(ctx, keys)
    users = await _find_users(ctx, rows)
    identities = map_collecting_errors(
        lambda row, member_key: (
            _existing_identity(row, member)
            if (member := old.get(member_key))
            else _new_identity(row, member_key[0], users)
        ),
        rows,
        keys,
    )
    if len({each[:2] for each in identities}) < len(rows):
        return await upsert_each(upsert, ctx, rows)
    old |= await _select_for_update(ctx, [each[:2] for each in identities if each[:2] not in old])
    records = map_collecting_errors(
        lambda row, identity: _build_member(row, identity, old.get(identity[:2])), rows, identities
    )
    existing = [member for member in records if (member.participant_id, member.id) in old]
    changed = [member for member in existing if has_changed(old[member.participant_id, member.id], member)]
    created = [member for member in records if (member.participant_id, member.id) not in old]
    # A user can be on several of the teams: the first row decides the spelling of the email.
    without_user = [member for member in reversed(created) if member.user_id not in users.by_id]
    new_users = {member.user_id: User(member.user_id, member.email) for member in without_user}
    await upsert_users(ctx.tx, ctx.plan_manager_id, to_json(list(new_users.values())))
    await _save(ctx, created, changed)
    for row, identity in zip(rows, identities, strict=True):
        row.values.participant_id, row.values.id = str(identity.participant_id), str(identity.id)
    return ImportCounts(len(created), len(changed), len(existing) - len(changed))


async def _select_for_update(ctx: WriteContext, keys: Sequence[MemberKey]) -> dict[MemberKey, TeamMemberRow]:
    """The existing members by participant and id, locked."""
    complete = [(participant_id, id_) for participant_id, id_ in keys if id_]
    participant_ids, member_ids = [each[0] for each in complete], [each[1] for each in complete]
    rows = await store.select_for_update(ctx.tx, ctx.plan_manager_id, participant_ids, member_ids)
    return {(each.participant_id, each.id): each for each in rows}


async def _save(ctx: WriteContext, created: list[Any], changed: list[Any]) -> None:
    saved = [*created, *changed]
    keys = [each.participant_id for each in saved], [each.id for each in saved]
    before = {(each.participant_id, each.id): each for each in await store.get_many(ctx.tx, ctx.plan_manager_id, *keys)}
    await store.clear_changed_priorities(ctx.tx, ctx.plan_manager_id, to_json(changed))
    await store.update_many(ctx.tx, ctx.plan_manager_id, to_json(changed))
    await store.insert(ctx.tx, ctx.plan_manager_id, to_json(created))
    await store.set_permissions(ctx.tx, ctx.plan_manager_id, to_json(saved))
    after = await store.get_many(ctx.tx, ctx.plan_manager_id, *keys)
    await record_events(
        ctx,
        [
            ("team_member.updated" if previous else "team_member.created", previous, each)
            for each in after
            for previous in [before.get((each.participant_id, each.id))]
        ],
    )


def _build_member(row: TeamMemberImportRow, identity: MemberIdentity, old: TeamMemberRow | None) -> Any:
    new = merge_record(TeamMemberRow, row, identity._asdict(), old)
    if old is not None and old.email is not None and new.email is None:
        raise invalid_row(row, "email", "cannot be cleared")
    if old is not None:
        new.email = old.email
    if new.email is None and requires_email(new.permissions):
        raise invalid_row(row, "permissions", "must be only no_access for a member without an email")
    new.permissions = effective_permissions(new.permissions)
    return new


def _existing_identity(row: TeamMemberImportRow, old: TeamMemberRow) -> MemberIdentity:
    """The identity of an existing member. Raises InvalidRowsError if another value of the row contradicts it."""
    values = row.values
    email = unset_to_none(values.email)
    if email and email.lower() != (old.email or "").lower():
        raise invalid_row(row, "email", "cannot be changed")
    if _uuid(values.user_id) not in (None, old.user_id):
        raise invalid_row(row, "user_id", "is not the user of the member with this id")
    profile_id = old.pm_profile_id if values.pm_profile_id is UNSET else _uuid(values.pm_profile_id)
    if old.email is None and profile_id not in (None, old.id):
        raise invalid_row(row, "pm_profile_id", "must equal the id for a member without an email")
    return MemberIdentity(old.participant_id, old.id, old.user_id, old.id if old.email is None else profile_id)


def _new_identity(row: TeamMemberImportRow, participant_id: UUID, users: UserLookup) -> MemberIdentity:
    """The id of a member is its user's id with an email, and its profile's id without one (specification, 2.2)."""
    values = row.values
    id_, user_id, profile_id = (_uuid(each) for each in (values.id, values.user_id, values.pm_profile_id))
    if email := unset_to_none(values.email):
        owner = users.by_email.get(email.lower())
        user = owner or user_id or id_ or uuid7()
        for name, value in (("id", id_), ("user_id", user_id)):
            if value not in (None, user):
                raise invalid_row(row, name, "is not the id of the user with this email")
        if owner is None and user in users.by_id:
            raise invalid_row(row, "email", "is not the email of the user with this id")
        users.by_email.setdefault(email.lower(), user)
        return MemberIdentity(participant_id, user, user, profile_id)
    member_id = profile_id or id_ or uuid7()
    if id_ not in (None, member_id):
        raise invalid_row(row, "pm_profile_id", "must equal the id for a member without an email")
    if user_id and (existing_user := users.by_id.get(user_id)) and existing_user.email:
        raise invalid_row(row, "user_id", "is the id of a user with an email, but the line has no email")
    return MemberIdentity(participant_id, member_id, user_id or uuid7(), member_id)


def _uuid(value: str | UnsetType | None) -> UUID | None:
    return UUID(value) if isinstance(value, str) else None


def invalid_row(row: TeamMemberImportRow, field: str, message: str) -> InvalidRowsError:
    return InvalidRowsError([RowError(row.line_number, field, message)])


async def _find_users(ctx: WriteContext, rows: Sequence[TeamMemberImportRow]) -> UserLookup:
    """The users that rows refer to by an id or an email."""
    emails = {email.lower() for row in rows if (email := unset_to_none(row.values.email))}
    ids = {id_ for row in rows for each in (row.values.id, row.values.user_id) if (id_ := _uuid(each))}
    users = await find_users(ctx.tx, ctx.plan_manager_id, sorted(ids), sorted(emails))
    return UserLookup(
        {each.id: each for each in users},
        {each.email.lower(): each.id for each in users if each.email},
    )
