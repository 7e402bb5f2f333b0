"""The merge of team members: they name a participant by id or number, and their email makes their user."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from msgspec import UNSET
from uuid_utils.compat import uuid7

from plankeeper.bulk.merging import BadLines, Tally, differs, key, merged
from plankeeper.bulk.reading import BadLine, Line
from plankeeper.edge.call import Write
from plankeeper.edge.shapes import given, json_text
from plankeeper.events.record import record_many
from plankeeper.participants.store import ids_by_number
from plankeeper.team_members import store
from plankeeper.team_members.rules import effective, needs_email
from plankeeper.team_members.shapes import TeamMemberImport, TeamMemberRecord
from plankeeper.users.store import User, by_emails
from plankeeper.users.store import put as put_users

MemberLine = Line[TeamMemberImport]


class Identity(NamedTuple):
    """Which member a line is about."""

    participant_id: str
    id: str
    user_id: str
    pm_profile_id: str | None


async def merge(call: Write, lines: Sequence[MemberLine]) -> Tally:
    identities = await _identities(call, lines)
    pairs = [each.participant_id for each in identities], [each.id for each in identities]
    locked = await store.records_for_update(call.tx, call.plan_manager_id, *pairs)
    old = {(key(each.participant_id), key(each.id)): each for each in locked}
    records = [_record(line, identity, old.get(identity[:2])) for line, identity in zip(lines, identities, strict=True)]
    known = [new for new in records if (new.participant_id, new.id) in old]
    changed = [new for new in known if differs(old[new.participant_id, new.id], new)]
    created = [new for new in records if (new.participant_id, new.id) not in old]
    await _write(call, created, changed)
    return Tally(len(created), len(changed), len(known) - len(changed))


async def _write(call: Write, created: list[Any], changed: list[Any]) -> None:
    written = [*created, *changed]
    users = [User(each.user_id, each.email) for each in written]
    pairs = [each.participant_id for each in written], [each.id for each in written]
    before = {(each.participant_id, each.id): each for each in await store.fetch(call.tx, call.plan_manager_id, *pairs)}
    unique = {key(user.id): user for user in users}
    await put_users(call.tx, call.plan_manager_id, json_text(list(unique.values())))
    await store.free_priorities(call.tx, call.plan_manager_id, json_text(changed))
    await store.replace(call.tx, call.plan_manager_id, json_text(changed))
    await store.insert(call.tx, call.plan_manager_id, json_text(created))
    await store.grant(call.tx, call.plan_manager_id, json_text(written))
    after = await store.fetch(call.tx, call.plan_manager_id, *pairs)
    await record_many(
        call,
        [
            ("team_member.updated" if was else "team_member.created", was, each)
            for each in after
            for was in [before.get((each.participant_id, each.id))]
        ],
    )


def _record(line: MemberLine, identity: Identity, old: TeamMemberRecord | None) -> Any:
    new = merged(TeamMemberRecord, line, identity._asdict(), old)
    if old is not None and old.email is not None and new.email is None:
        raise BadLines([BadLine(line.number, "email", "cannot be cleared")])
    if new.email is None and needs_email(new.permissions):
        raise BadLines([BadLine(line.number, "permissions", "a member without an email can hold only no_access")])
    new.permissions = effective(new.permissions)
    return new


async def _identities(call: Write, lines: Sequence[MemberLine]) -> list[Identity]:
    participants = await _participants(call, lines)
    emails = {str(line.values.email).lower() for line in lines if given(line.values.email)}
    found = await by_emails(call.tx, call.plan_manager_id, sorted(emails))
    users = {str(user.email): str(user.id) for user in found}
    identities: list[Identity] = []
    for line, participant_id in zip(lines, participants, strict=True):
        identity = _identity(line.values, participant_id, users)
        if line.values.email and line.values.email is not UNSET:
            # Two lines of one new email are one user.
            users.setdefault(line.values.email.lower(), identity.user_id)
        identities.append(identity)
    return identities


def _identity(values: TeamMemberImport, participant_id: str, users: dict[str, str]) -> Identity:
    """With an email a member's id is its user's, without one its profile's (specification, 2.2)."""
    email, id_, profile = given(values.email), given(values.id), given(values.pm_profile_id)
    if email:
        user_id = given(values.user_id) or users.get(email.lower()) or id_ or str(uuid7())
        return Identity(participant_id, key(user_id), key(user_id), profile and key(profile))
    profile = profile or id_ or str(uuid7())
    return Identity(participant_id, key(id_ or profile), key(given(values.user_id) or uuid7()), key(profile))


async def _participants(call: Write, lines: Sequence[MemberLine]) -> list[str]:
    """The participant's id of each line; raises BadLines for a number that nobody has, or that two share."""
    numbers = {str(line.values.participant_number) for line in lines if line.values.participant_id is UNSET}
    rows = await ids_by_number(call.tx, call.plan_manager_id, sorted(numbers))
    ids = {row.participant_number: str(row.id) for row in rows}
    shared = Counter(row.participant_number for row in rows)
    faults: list[BadLine] = []
    found: list[str] = []
    for line in lines:
        number = given(line.values.participant_number)
        if line.values.participant_id is not UNSET:
            found.append(key(line.values.participant_id))
        elif number in ids and shared[number] == 1:
            found.append(ids[number])
        elif number is None:
            faults.append(BadLine(line.number, "participant_id", "or participant_number is required"))
        else:
            reason = "is shared by two participants; use participant_id" if shared[number] else "is no participant's"
            faults.append(BadLine(line.number, "participant_number", reason))
    if faults:
        raise BadLines(faults)
    return found
