"""Random team members: family, nominees, support coordinators, and contacts without an email."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from random import Random

from plankeeper.cli.sample_data import addresses, names
from plankeeper.cli.sample_data.random_values import (
    Row,
    chance,
    days_ago,
    email_local_part,
    parse_datetime,
    unique_email,
    uuid7,
)

_FIRST_DATETIME = datetime(2021, 7, 1, 2, tzinfo=UTC)
_PERMISSIONS = ("view_budget", "view_invoices", "approve_invoices", "email_statements", "view_documents")
_FAMILY_ROLES = ("Sibling", "Partner", "Plan nominee", "Parent", "Carer")
_CHILD_ROLES = ("Parent", "Parent", "Child representative", "Guardian")
_CONTACT_ROLES = ("Neighbour", "Grandparent", "Support worker", "Public guardian", "Emergency contact")
_COORDINATOR_ROLES = ("Support coordinator", "Recovery coach", "Local area coordinator")
_NOTES = (
    "Call after 3 pm.",
    "Prefers text messages.",
    "Needs an interpreter.",
    "Ask before sharing anything about the budget.",
    "Away every second week.",
)


def generate_team_members(rng: Random, participants: Sequence[Row]) -> list[Row]:
    """Generate one to three team members for most participants.

    A coordinator has the same id on all teams. The email domains differ from those of participants and account
    managers.
    """
    used_emails: set[str] = set()
    coordinators = [_coordinator(rng, used_emails) for _ in range(max(3, len(participants) // 20))]
    rows: list[Row] = []
    for participant in participants:
        if chance(rng, 90):
            rows += _team(rng, participant, coordinators, used_emails)
    return rows


def _team(rng: Random, participant: Row, coordinators: Sequence[Row], used_emails: set[str]) -> list[Row]:
    size = rng.choices((1, 2, 3), (45, 38, 17))[0]
    kinds = rng.sample(("family", "coordinator", "contact"), size, counts=(4, 3, 1))
    team: list[Row] = []
    for kind in kinds:
        if kind == "contact":
            team.append(_contact(rng, participant))
        elif kind == "coordinator" and not any(member["role"] in _COORDINATOR_ROLES for member in team):
            team.append(dict(rng.choice(coordinators)))
        else:
            team.append(_family_member(rng, participant, used_emails))
    priorities = (1, 2 if chance(rng, 70) else None, None) if chance(rng, 92) else (None, None, None)
    reference = {"participant_id": participant["id"]}
    return [
        reference | member | {"contact_priority": priority} for member, priority in zip(team, priorities, strict=False)
    ]


def _member(rng: Random, created: datetime, person: names.Name, role: str, email: str | None) -> Row:
    user_id = uuid7(rng, created)
    pm_profile_id = None if email else uuid7(rng, created)
    return {
        "id": pm_profile_id or user_id,
        "user_id": user_id,
        "pm_profile_id": pm_profile_id,
        "first_name": person.first,
        "last_name": person.last,
        "email": email,
        "role": role,
        "phone_number": addresses.random_mobile(rng) if chance(rng, 85) else None,
        "note": rng.choice(_NOTES) if chance(rng, 12) else None,
        "secondary_email": None,
        "secondary_phone_number": None,
        "address_line_1": None,
        "city": None,
        "state": None,
        "postcode": None,
        "permissions": ["no_access"],
    }


def _coordinator(rng: Random, used_emails: set[str]) -> Row:
    person, address = names.random_name(rng), addresses.random_address(rng)
    created = _FIRST_DATETIME + timedelta(seconds=rng.randrange(30 * 86_400))
    email = unique_email(used_emails, email_local_part(person.first, person.last), "coordination.example.org")
    return _member(rng, created, person, rng.choice(_COORDINATOR_ROLES), email) | {
        "secondary_email": "intake@coordination.example.org" if chance(rng, 40) else None,
        "secondary_phone_number": addresses.random_landline(rng, address.state),
        "address_line_1": address.line_1,
        "city": address.city,
        "state": address.state,
        "postcode": address.postcode,
        "permissions": ["view_budget", "view_invoices", *(["view_documents"] if chance(rng, 50) else [])],
    }


def _family_member(rng: Random, participant: Row, used_emails: set[str]) -> Row:
    person = names.random_name(rng)._replace(last=participant["last_name"])
    if chance(rng, 25):
        person = names.random_name(rng)
    email = unique_email(used_emails, email_local_part(person.first, person.last), "example.net")
    is_child = date.fromisoformat(participant["date_of_birth"]) > days_ago(18 * 365)
    role = rng.choice(_CHILD_ROLES if is_child else _FAMILY_ROLES)
    row = _member(rng, parse_datetime(participant["created_at"]), person, role, email)
    if chance(rng, 70):
        row |= {key: participant[key] for key in ("address_line_1", "city", "state", "postcode")}
    if chance(rng, 10):
        row["secondary_phone_number"] = addresses.random_landline(rng, participant["state"])
    if chance(rng, 90):
        can_approve = participant["approval_required"]
        granted = {slug for slug in _PERMISSIONS if chance(rng, 75)} | {"view_invoices"}
        granted = granted | {"approve_invoices"} if can_approve else granted - {"approve_invoices"}
        row["permissions"] = [slug for slug in _PERMISSIONS if slug in granted]
    return row


def _contact(rng: Random, participant: Row) -> Row:
    person = names.random_name(rng)
    return _member(rng, parse_datetime(participant["created_at"]), person, rng.choice(_CONTACT_ROLES), None)
