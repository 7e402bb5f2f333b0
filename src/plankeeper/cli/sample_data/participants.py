"""Random participants and account managers, and the exit reasons and note types."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from random import Random

from plankeeper.cli.sample_data import addresses, names
from plankeeper.cli.sample_data.random_values import (
    LAST_DAY,
    Row,
    chance,
    days_ago,
    email_local_part,
    format_datetime,
    parse_datetime,
    random_date,
    random_datetime,
    unique_email,
    uuid7,
)

_FIRST_DATETIME = datetime(2021, 7, 1, 1, tzinfo=UTC)
_OPERATOR_DOMAIN = "plankeeper.example"
_EXIT_REASONS = {
    "Changed how the plan is managed": (
        "Moved to self-management",
        "Moved to agency management",
        "Moved to another plan manager",
    ),
    "Left the scheme": ("No longer eligible", "Moved overseas", "Moved to aged care", "Deceased"),
    "Dissatisfied": ("Payments too slow", "Hard to reach", "Errors in statements"),
    "Other": ("No contact", "Prefers not to say"),
}
_LEAVING_NOTES = {
    "Moved to self-management": "Daughter will manage the plan from now on.",
    "Moved to agency management": "New plan has no plan management budget.",
    "Moved to another plan manager": "Wants one plan manager for the whole family.",
    "Moved overseas": "Asked for all statements to be sent before closing.",
    "Payments too slow": "Two providers had complained to the family.",
    "Hard to reach": "Would rather have had a name and a direct number.",
}
_PREFERRED_NAMES = ("Alex", "Sam", "Kit", "Ash", "Jo", "Max", "Sunny", "Bee", "Charlie", "Mim")
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


def generate_exit_reasons(rng: Random) -> list[Row]:
    """Generate the exit reasons, each category before its subcategories."""
    rows: list[Row] = []
    for category, reasons in _EXIT_REASONS.items():
        parent_id = None
        for name in (category, *reasons):
            row_id = uuid7(rng, _FIRST_DATETIME + timedelta(seconds=len(rows)))
            rows.append({"id": row_id, "name": name, "parent_id": parent_id})
            parent_id = parent_id or row_id
    return rows


def generate_account_managers(rng: Random, domain: str) -> list[Row]:
    """Generate six visible account managers, two of them inactive, and one hidden for each reason to hide one."""
    visible = {"active": True, "is_internal": False, "deleted": False}
    kinds = [visible] * 4 + [
        visible | {"active": False},
        visible | {"active": False},
        visible | {"is_internal": True},
        visible | {"active": False, "deleted": True},
    ]
    used_emails: set[str] = set()
    rows: list[Row] = []
    for number, kind in enumerate(kinds):
        person = names.random_name(rng)
        rows.append(
            {
                "id": uuid7(rng, _FIRST_DATETIME + timedelta(days=30 * number)),
                "first_name": person.first,
                "last_name": person.last,
                "email": unique_email(used_emails, email_local_part(person.first, person.last), domain),
                **kind,
            }
        )
    operator = {"first_name": "Operations", "last_name": "Desk", "email": f"ops@{_OPERATOR_DOMAIN}", **visible}
    return [*rows, {"id": uuid7(rng, _FIRST_DATETIME + timedelta(days=300)), **operator}]


def assignable_managers(managers: Sequence[Row]) -> list[Row]:
    """The account managers that a participant can have: active and not hidden."""
    return [
        row
        for row in managers
        if row["active"]
        and not row["is_internal"]
        and not row["deleted"]
        and not row["email"].endswith(_OPERATOR_DOMAIN)
    ]


def generate_participants(rng: Random, count: int, managers: Sequence[Row], reasons: Sequence[Row]) -> list[Row]:
    """Generate `count` participants in order of creation: 85 % Active, 10 % Inactive, 5 % Lead."""
    inactive, leads = count // 10, count // 20
    statuses = ["Inactive"] * inactive + ["Lead"] * leads + ["Active"] * (count - inactive - leads)
    numbers = rng.sample(range(430_000_000, 440_000_000), count)
    used_emails: set[str] = set()
    managers = assignable_managers(managers)
    rows = [
        _lifecycle_fields(rng, status, reasons)
        | _personal_fields(rng, number, used_emails)
        | {"account_manager_id": None if chance(rng, 8) else rng.choice(managers)["id"]}
        for number, status in zip(numbers, statuses, strict=True)
    ]
    for row in rows:
        row["participant_receives_statements"] = row["email"] is not None and chance(rng, 70)
    return sorted(rows, key=lambda row: row["id"])


def _personal_fields(rng: Random, number: int, used_emails: set[str]) -> Row:
    person, address = names.random_name(rng), addresses.random_address(rng)
    email = unique_email(used_emails, email_local_part(person.first, person.last), "example.com")
    phone_type = rng.choices(("mobile", "landline", "none"), (70, 22, 8))[0]
    phones = {
        "mobile": addresses.random_mobile(rng),
        "landline": addresses.random_landline(rng, address.state),
        "none": None,
    }
    return {
        "first_name": person.first,
        "middle_name": names.random_middle_name(rng, person.gender) if chance(rng, 25) else None,
        "last_name": person.last,
        "preferred_name": rng.choice(_PREFERRED_NAMES) if chance(rng, 10) else None,
        "participant_number": str(number),
        "email": email if chance(rng, 85) else None,
        "phone_number": phones[phone_type],
        "date_of_birth": _date_of_birth(rng).isoformat(),
        "gender": person.gender if chance(rng, 95) else None,
        "pronouns": _PRONOUNS[person.gender] if chance(rng, 35) else None,
        "state": address.state,
        "postcode": address.postcode,
        "address_line_1": address.line_1,
        "address_line_2": address.line_2,
        "city": address.city,
        "service_region_id": address.region,
        "approval_required": chance(rng, 15),
        "is_pace_plan": chance(rng, 70),
        "postal_statement": chance(rng, 10),
    }


def _date_of_birth(rng: Random) -> date:
    youngest, oldest = rng.choices(((3, 17), (18, 64), (65, 74)), (38, 54, 8))[0]
    return days_ago(rng.randint(youngest * 366, oldest * 365))


def _lifecycle_fields(rng: Random, status: str, reasons: Sequence[Row]) -> Row:
    first_day = _FIRST_DATETIME.date()
    joining_periods = {
        "Active": (first_day, days_ago(75)),
        "Inactive": (first_day, days_ago(500)),
        "Lead": (days_ago(60), days_ago(1)),
    }
    joined_on = random_date(rng, *joining_periods[status])
    created_at = random_datetime(rng, joined_on)
    row: Row = {
        "id": uuid7(rng, created_at),
        "status": status,
        "onboard_date": (joined_on + timedelta(days=rng.randint(1, 21))).isoformat(),
        "created_at": format_datetime(created_at),
        "date_ceased": None,
        "reason_for_leaving": None,
        "exit_reason_category_id": None,
        "exit_reason_subcategory_id": None,
    }
    if status == "Lead":
        return row | {"onboard_date": None, "plan_start_date": None, "plan_end_date": None}
    last_day = LAST_DAY
    if status == "Inactive":
        last_day = random_date(rng, days_ago(400), days_ago(10))
        row |= _exit_fields(rng, last_day, reasons)
    plan_start = last_day - timedelta(days=rng.randint(20, 340))
    plan_end = plan_start + timedelta(days=365 * rng.choices((1, 2, 3), (75, 15, 10))[0] - 1)
    return row | {"plan_start_date": plan_start.isoformat(), "plan_end_date": plan_end.isoformat()}


def shorten_plans(rng: Random, participants: Sequence[Row], invoices: Sequence[Row]) -> None:
    """End some plans of Active participants early, as a reassessment does: none before the last invoice.

    Those of 3 % of all participants ended in the last 30 days, and those of 6 % end in the next 30.
    """
    last_invoices = {row["participant_id"]: parse_datetime(row["created_at"]).date() for row in invoices}
    active = [row for row in participants if row["status"] == "Active"]
    idle = [row for row in active if last_invoices.get(row["id"], LAST_DAY) < days_ago(5)]
    for row in rng.sample(idle, len(participants) * 3 // 100):
        row["plan_end_date"] = random_date(rng, max(last_invoices[row["id"]], days_ago(30)), days_ago(1)).isoformat()
    ongoing = [row for row in active if row["plan_end_date"] > LAST_DAY.isoformat()]
    for row in rng.sample(ongoing, len(participants) * 6 // 100):
        row["plan_end_date"] = random_date(rng, LAST_DAY, days_ago(-30)).isoformat()


def _exit_fields(rng: Random, last_day: date, reasons: Sequence[Row]) -> Row:
    reason = rng.choice([row for row in reasons if row["parent_id"]])
    return {
        "date_ceased": last_day.isoformat(),
        "reason_for_leaving": _LEAVING_NOTES.get(reason["name"]) if chance(rng, 70) else None,
        "exit_reason_category_id": reason["parent_id"],
        "exit_reason_subcategory_id": reason["id"] if chance(rng, 80) else None,
    }


def generate_note_types(first_id: int) -> list[Row]:
    """Generate the note types, with ids from `first_id` on, because all plan managers share one id sequence."""
    return [
        {"id": number, "note_type": note_type, "badge_color": badge, "highlight_color": highlight}
        for number, (note_type, badge, highlight) in enumerate(_NOTE_TYPES, first_id)
    ]
