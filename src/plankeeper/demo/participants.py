"""The people of the demonstration: account managers and participants, and why participants leave."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from random import Random

from plankeeper.demo import addresses, names
from plankeeper.demo.random_values import (
    ANCHOR,
    Row,
    address_name,
    chance,
    day_between,
    days_before,
    moment,
    stamp,
    unused,
    uuid7,
)

_OPENED = datetime(2021, 7, 1, 1, tzinfo=UTC)
_OPERATOR_DOMAIN = "plankeeper.example"
_REASONS = {
    "Changed how the plan is managed": (
        "Moved to self-management",
        "Moved to agency management",
        "Moved to another plan manager",
    ),
    "Left the scheme": ("No longer eligible", "Moved overseas", "Moved to aged care", "Deceased"),
    "Dissatisfied": ("Payments too slow", "Hard to reach", "Errors in statements"),
    "Other": ("No contact", "Prefers not to say"),
}
_FAREWELLS = {
    "Moved to self-management": "Daughter will manage the plan from now on.",
    "Moved to agency management": "New plan has no plan management budget.",
    "Moved to another plan manager": "Wants one plan manager for the whole family.",
    "Moved overseas": "Asked for all statements to be sent before closing.",
    "Payments too slow": "Two providers had complained to the family.",
    "Hard to reach": "Would rather have had a name and a direct number.",
}
_SHORT_NAMES = ("Alex", "Sam", "Kit", "Ash", "Jo", "Max", "Sunny", "Bee", "Charlie", "Mim")
_NOTE_TYPES = (
    ("Phone call", "#1d4ed8", "#dbeafe"),
    ("Email", "#0f766e", "#ccfbf1"),
    ("Plan review", "#7c3aed", "#ede9fe"),
    ("Budget alert", "#b45309", "#fef3c7"),
    ("Complaint", "#b91c1c", "#fee2e2"),
    ("Provider query", "#4338ca", "#e0e7ff"),
    ("Statement sent", "#15803d", "#dcfce7"),
    ("Internal", None, None),
)
_PRONOUNS = {"Female": "she/her", "Male": "he/him", "Non-binary": "they/them"}


def exit_reasons(rng: Random) -> list[Row]:
    """Give every category before its own subcategories."""
    rows: list[Row] = []
    for category, reasons in _REASONS.items():
        parent_id = None
        for name in (category, *reasons):
            row_id = uuid7(rng, _OPENED + timedelta(seconds=len(rows)))
            rows.append({"id": row_id, "name": name, "parent_id": parent_id})
            parent_id = parent_id or row_id
    return rows


def account_managers(rng: Random, domain: str) -> list[Row]:
    """Give six that anyone may see, two of them inactive, and one hidden for each reason that there is."""
    shown = {"active": True, "is_internal": False, "deleted": False}
    kinds = [shown] * 4 + [
        shown | {"active": False},
        shown | {"active": False},
        shown | {"is_internal": True},
        shown | {"active": False, "deleted": True},
    ]
    taken: set[str] = set()
    rows: list[Row] = []
    for number, kind in enumerate(kinds):
        person = names.name(rng)
        rows.append(
            {
                "id": uuid7(rng, _OPENED + timedelta(days=30 * number)),
                "first_name": person.first,
                "last_name": person.last,
                "email": unused(taken, address_name(person.first, person.last), domain),
                **kind,
            }
        )
    operator = {"first_name": "Operations", "last_name": "Desk", "email": f"ops@{_OPERATOR_DOMAIN}", **shown}
    return [*rows, {"id": uuid7(rng, _OPENED + timedelta(days=300)), **operator}]


def assignable(managers: Sequence[Row]) -> list[Row]:
    """Keep the account managers that a participant can have: active and not hidden (decisions, section 5)."""
    return [
        row
        for row in managers
        if row["active"]
        and not row["is_internal"]
        and not row["deleted"]
        and not row["email"].endswith(_OPERATOR_DOMAIN)
    ]


def participants(rng: Random, count: int, managers: Sequence[Row], reasons: Sequence[Row]) -> list[Row]:
    """Give `count` participants in the order of their creation: 85 % Active, 10 % Inactive, 5 % Lead."""
    inactive, leads = count // 10, count // 20
    statuses = ["Inactive"] * inactive + ["Lead"] * leads + ["Active"] * (count - inactive - leads)
    numbers = rng.sample(range(430_000_000, 440_000_000), count)
    taken: set[str] = set()
    managers = assignable(managers)
    rows = [
        _life(rng, status, reasons)
        | _identity(rng, number, taken)
        | {"account_manager_id": None if chance(rng, 8) else rng.choice(managers)["id"]}
        for number, status in zip(numbers, statuses, strict=True)
    ]
    for row in rows:
        row["participant_receives_statements"] = row["email"] is not None and chance(rng, 70)
    return sorted(rows, key=lambda row: row["id"])


def _identity(rng: Random, number: int, taken: set[str]) -> Row:
    person, home = names.name(rng), addresses.address(rng)
    email = unused(taken, address_name(person.first, person.last), "example.com")
    by_phone = rng.choices(("mobile", "landline", "none"), (70, 22, 8))[0]
    phones = {"mobile": addresses.mobile(rng), "landline": addresses.landline(rng, home.state), "none": None}
    return {
        "first_name": person.first,
        "middle_name": names.middle_name(rng, person.gender) if chance(rng, 25) else None,
        "last_name": person.last,
        "preferred_name": rng.choice(_SHORT_NAMES) if chance(rng, 10) else None,
        "participant_number": str(number),
        "email": email if chance(rng, 85) else None,
        "phone_number": phones[by_phone],
        "date_of_birth": _birthday(rng).isoformat(),
        "gender": person.gender if chance(rng, 95) else None,
        "pronouns": _PRONOUNS[person.gender] if chance(rng, 35) else None,
        "state": home.state,
        "postcode": home.postcode,
        "address_line_1": home.line_1,
        "address_line_2": home.line_2,
        "city": home.city,
        "service_region_id": home.region,
        "approval_required": chance(rng, 15),
        "is_pace_plan": chance(rng, 70),
        "postal_statement": chance(rng, 10),
    }


def _birthday(rng: Random) -> date:
    youngest, oldest = rng.choices(((3, 17), (18, 64), (65, 74)), (38, 54, 8))[0]
    return days_before(rng.randint(youngest * 366, oldest * 365))


def _life(rng: Random, status: str, reasons: Sequence[Row]) -> Row:
    opened = _OPENED.date()
    spans = {
        "Active": (opened, days_before(75)),
        "Inactive": (opened, days_before(500)),
        "Lead": (days_before(60), days_before(1)),
    }
    joined = day_between(rng, *spans[status])
    when = moment(rng, joined)
    row: Row = {
        "id": uuid7(rng, when),
        "status": status,
        "onboard_date": (joined + timedelta(days=rng.randint(1, 21))).isoformat(),
        "created_at": stamp(when),
        "date_ceased": None,
        "reason_for_leaving": None,
        "exit_reason_category_id": None,
        "exit_reason_subcategory_id": None,
    }
    if status == "Lead":
        return row | {"onboard_date": None, "plan_start_date": None, "plan_end_date": None}
    last_day = ANCHOR
    if status == "Inactive":
        last_day = day_between(rng, days_before(400), days_before(10))
        row |= _departure(rng, last_day, reasons)
    starts = last_day - timedelta(days=rng.randint(20, 340))
    ends = starts + timedelta(days=365 * rng.choices((1, 2, 3), (75, 15, 10))[0] - 1)
    return row | {"plan_start_date": starts.isoformat(), "plan_end_date": ends.isoformat()}


def _departure(rng: Random, last_day: date, reasons: Sequence[Row]) -> Row:
    reason = rng.choice([row for row in reasons if row["parent_id"]])
    return {
        "date_ceased": last_day.isoformat(),
        "reason_for_leaving": _FAREWELLS.get(reason["name"]) if chance(rng, 70) else None,
        "exit_reason_category_id": reason["parent_id"],
        "exit_reason_subcategory_id": reason["id"] if chance(rng, 80) else None,
    }


def note_types(first_id: int) -> list[Row]:
    """Give the note types, numbered from `first_id`: one sequence numbers those of all plan managers."""
    return [
        {"id": number, "note_type": note_type, "badge_color": badge, "highlight_color": highlight}
        for number, (note_type, badge, highlight) in enumerate(_NOTE_TYPES, first_id)
    ]
