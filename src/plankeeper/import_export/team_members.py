"""The merge of team members: they name a participant by id or number, and their email makes their user."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from msgspec import UNSET
from uuid_utils.compat import uuid7

from plankeeper.events.recorder import record_many
from plankeeper.http.context import Write
from plankeeper.http.schemas import given, json_text
from plankeeper.import_export.reader import BadLine, Line
from plankeeper.import_export.upsert import BadLines, Tally, differs, every, key, merged, one_by_one
from plankeeper.participants.store import ids_by_number
from plankeeper.team_members import store
from plankeeper.team_members.rules import effective, needs_email
from plankeeper.team_members.schemas import TeamMemberImport, TeamMemberRecord
from plankeeper.users.store import User
from plankeeper.users.store import named as named_users
from plankeeper.users.store import put as put_users

MemberLine = Line[TeamMemberImport]


Pair = tuple[str, str]  # a participant's id and a member's


class Users(NamedTuple):
    """The users that lines name: by their ids, and their ids by email in lower case."""

    by_id: dict[str, User]
    by_email: dict[str, str]


class Identity(NamedTuple):
    """Which member a line is about."""

    participant_id: str
    id: str
    user_id: str
    pm_profile_id: str | None


async def merge(call: Write, lines: Sequence[MemberLine]) -> Tally:
    participants = await _participants(call, lines)
    named = [(participant, key(given(line.values.id))) for line, participant in zip(lines, participants, strict=True)]
    old = await _locked(call, named)
    users = await _users(call, lines)
    identities = every(
        lambda line, name: _known(line, old[name]) if name in old else _new(line, name[0], users), lines, named
    )
    if len({each[:2] for each in identities}) < len(lines):
        return await one_by_one(merge, call, lines)
    old |= await _locked(call, [each[:2] for each in identities if each[:2] not in old])
    records = every(lambda line, identity: _record(line, identity, old.get(identity[:2])), lines, identities)
    known = [new for new in records if (new.participant_id, new.id) in old]
    changed = [new for new in known if differs(old[new.participant_id, new.id], new)]
    created = [new for new in records if (new.participant_id, new.id) not in old]
    # One user may be on many of the teams: the first line says how the email is written.
    unknown = [each for each in reversed(created) if each.user_id not in users.by_id]
    new = {each.user_id: User(each.user_id, each.email) for each in unknown}
    await put_users(call.tx, call.plan_manager_id, json_text(list(new.values())))
    await _write(call, created, changed)
    return Tally(len(created), len(changed), len(known) - len(changed))


async def _locked(call: Write, pairs: Sequence[Pair]) -> dict[Pair, TeamMemberRecord]:
    """Those of the members that there are, by participant and id."""
    known = [pair for pair in pairs if pair[1] != key(None)]
    rows = await store.records_for_update(
        call.tx, call.plan_manager_id, [pair[0] for pair in known], [pair[1] for pair in known]
    )
    return {(key(each.participant_id), key(each.id)): each for each in rows}


async def _write(call: Write, created: list[Any], changed: list[Any]) -> None:
    written = [*created, *changed]
    pairs = [each.participant_id for each in written], [each.id for each in written]
    before = {(each.participant_id, each.id): each for each in await store.fetch(call.tx, call.plan_manager_id, *pairs)}
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
        raise bad(line, "email", "cannot be cleared")
    if old is not None:
        new.email = old.email
    if new.email is None and needs_email(new.permissions):
        raise bad(line, "permissions", "a member without an email can hold only no_access")
    new.permissions = effective(new.permissions)
    return new


def _known(line: MemberLine, old: TeamMemberRecord) -> Identity:
    """The identity of a member that the line names by its id: nothing in the line may say otherwise."""
    values = line.values
    email = given(values.email)
    if email and email.lower() != (old.email or "").lower():
        raise bad(line, "email", "cannot be changed")
    if given(values.user_id) and key(values.user_id) != key(old.user_id):
        raise bad(line, "user_id", "is not the user of the member with this id")
    profile = old.pm_profile_id if values.pm_profile_id is UNSET else values.pm_profile_id
    if old.email is None and key(profile) not in (key(old.id), key(None)):
        raise bad(line, "pm_profile_id", "of a member without an email is its id")
    profile = old.id if old.email is None else profile
    return Identity(key(old.participant_id), key(old.id), key(old.user_id), key(profile) if profile else None)


def _new(line: MemberLine, participant_id: str, users: Users) -> Identity:
    """With an email a member's id is its user's, without one its profile's (specification, 2.2)."""
    values = line.values
    email, id_, user_id, profile = (
        given(each) for each in (values.email, values.id, values.user_id, values.pm_profile_id)
    )
    if email:
        owner = users.by_email.get(email.lower())
        user = key(owner or user_id or id_ or uuid7())
        for name, said in (("id", id_), ("user_id", user_id)):
            if said and key(said) != user:
                raise bad(line, name, "is not the id of the user with this email")
        if owner is None and user in users.by_id:
            raise bad(line, "email", "is not the email of the user with this id")
        users.by_email.setdefault(email.lower(), user)
        return Identity(participant_id, user, user, key(profile) if profile else None)
    own = key(profile or id_ or uuid7())
    if id_ and key(id_) != own:
        raise bad(line, "pm_profile_id", "of a member without an email is its id")
    if user_id and (found := users.by_id.get(key(user_id))) and found.email:
        raise bad(line, "user_id", "is a user with an email, and the line has none")
    return Identity(participant_id, own, key(user_id or uuid7()), own)


def bad(line: MemberLine, field: str, reason: str) -> BadLines:
    return BadLines([BadLine(line.number, field, reason)])


async def _users(call: Write, lines: Sequence[MemberLine]) -> Users:
    """The users that lines name by an id or an email."""
    emails = {email.lower() for line in lines if (email := given(line.values.email))}
    ids = {key(id_) for line in lines for id_ in (given(line.values.id), given(line.values.user_id)) if id_}
    rows = await named_users(call.tx, call.plan_manager_id, sorted(ids), sorted(emails))
    return Users(
        {key(each.id): each for each in rows}, {each.email.lower(): key(each.id) for each in rows if each.email}
    )


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
