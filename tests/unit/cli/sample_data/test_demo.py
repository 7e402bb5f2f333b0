import re
from collections import Counter
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import cache
from itertools import pairwise
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec
import pytest
from email_validator import validate_email
from msgspec.structs import replace
from stdnum.au import abn

from plankeeper.cli.sample_data import DemoPlanManager, plan_managers, records
from plankeeper.cli.sample_data.addresses import SERVICE_REGIONS, SUBURBS
from plankeeper.resources.invoices.checks import CheckLine, find_facts, is_item_code
from support.checks import VALID_INVOICE, plan

Rows = list[dict[str, Any]]
Dataset = dict[str, Rows]

LAST_DATE = date(2026, 10, 30)
# The flaws of the sample invoices. Others follow from the providers, such as one with an invalid ABN.
PLANNED = {
    "missing_invoice_number", "missing_participant", "missing_provider", "inactive_participant", "check_total",
    "check_dates", "check_item_code", "possible_duplicate",
}  # fmt: skip
KEYS = {
    "exit-reasons": "id name parent_id",
    "account-managers": "id first_name last_name email active is_internal deleted",
    "participants": (
        "id first_name middle_name last_name preferred_name participant_number email phone_number "
        "date_of_birth gender pronouns state postcode address_line_1 address_line_2 city service_region_id "
        "status approval_required onboard_date created_at date_ceased reason_for_leaving "
        "exit_reason_category_id exit_reason_subcategory_id account_manager_id is_pace_plan "
        "plan_start_date plan_end_date postal_statement participant_receives_statements"
    ),
    "plans": "id participant_id start_date end_date is_pace_plan created_at components",
    "providers": (
        "id entity_name abn email active primary_phone_number address city state postcode "
        "ndis_provider_number created_at"
    ),
    "note-types": "id note_type badge_color highlight_color",
    "team-members": (
        "participant_id id user_id pm_profile_id first_name last_name email role phone_number note "
        "secondary_email secondary_phone_number address_line_1 city state postcode contact_priority "
        "permissions"
    ),
    "invoices": (
        "id invoice_number invoice_date total tax subtotal participant_id claim_status approval_status "
        "created_at pm_provider_id s3_key email_message_id state_management is_deleted wont_claim "
        "is_reimbursement due_date held_at held_by hold_reason line_items"
    ),
    "invoice-view-sessions": (
        "id invoice_id user_id user_name session_started session_ended last_heartbeat duration_seconds "
        "created_at active_duration_seconds engaged_duration_seconds idle_count"
    ),
    "notes": ("id resource_kind resource_id note_type_id alert text pinned author_kind author_name created_at"),
}
LINE_KEYS = (
    "id description service_item_number service_date_from service_date_to quantity unit_price total_price gst_code "
    "claim_status claim_batch_ref claim_number paid_amount rejection_reason payment_ref is_deleted created_at"
)
CLAIM_STATUSES = {
    *("new", "flagged", "pending", "payment_ready", "partially_ready"),
    *("partially_paid", "paid", "rejected", "on_hold", "cancelled"),
}
LENGTHS = {
    "email": 254,
    "secondary_email": 254,
    "phone_number": 50,
    "secondary_phone_number": 50,
    "primary_phone_number": 50,
    "address_line_1": 500,
    "address_line_2": 500,
    "postcode": 20,
    "participant_number": 50,
    "abn": 50,
    "note": 10_000,
    "reason_for_leaving": 10_000,
}
MOBILE = re.compile(
    r"0491 57(0 (006|15[6-9]|110)|1 (266|491|804)|2 (549|665|983)|3 (770|087)|4 (118|632)|5 (254|789)"
    r"|6 (398|801)|7 (426|644)|8 (957|148|888))"
)
LANDLINE = re.compile(r"\(0[2378]\) 5550 [0-9]{4}")


def dataset_of(plan_manager: DemoPlanManager, seed: int = 1) -> Dataset:
    return {resource: list(rows) for resource, rows in records(plan_manager.id, seed)}


@cache
def datasets() -> list[Dataset]:
    return [dataset_of(plan_manager) for plan_manager in plan_managers()]


@pytest.fixture
def dataset(request: pytest.FixtureRequest) -> Dataset:
    return datasets()[["larger", "smaller"].index(request.param)]


both_datasets = pytest.mark.parametrize("dataset", ["larger", "smaller"], indirect=True)


def by_id(rows: Rows) -> dict[str, dict[str, Any]]:
    rows_by_id = {row["id"]: row for row in rows}
    assert len(rows_by_id) == len(rows)
    return rows_by_id


def check_values(value: Any, check: Callable[[str, Any], None], key: str = "") -> None:
    if isinstance(value, dict):
        for name, field in value.items():  # pyright: ignore[reportUnknownVariableType]
            check_values(field, check, str(name))  # pyright: ignore[reportUnknownArgumentType]
    elif isinstance(value, list):
        for item in value:  # pyright: ignore[reportUnknownVariableType]
            check_values(item, check, key)
    else:
        check(key, value)


def expected_warnings(dataset: Dataset) -> dict[str, list[str]]:
    """Run the rules over every invoice, finding twins as the server does: in the order of their ids."""
    participants, providers = by_id(dataset["participants"]), by_id(dataset["providers"])
    seen: set[tuple[str, str]] = set()
    warnings: dict[str, list[str]] = {}
    for row in dataset["invoices"]:
        person = participants.get(row["participant_id"], {})
        twin = (row["pm_provider_id"], row["invoice_number"])
        start, end = parse_date(person.get("plan_start_date")), parse_date(person.get("plan_end_date"))
        facts = replace(
            VALID_INVOICE,
            **{name: row[name] for name in ("invoice_number", "total", "tax", "subtotal", "pm_provider_id")},
            invoice_date=parse_date(row["invoice_date"]),
            participant_status=person.get("status"),
            plans=[plan(start, end)],
            provider_exists=row["pm_provider_id"] in providers,
            has_earlier_duplicate=twin in seen,
            lines=[msgspec.convert(line, CheckLine, strict=False) for line in row["line_items"]],
        )
        warnings[row["id"]] = [code for code in find_facts(facts, LAST_DATE) if code in PLANNED]
        if None not in twin and not row["is_deleted"]:
            seen.add(twin)
    return warnings


def parse_date(text: str | None) -> date | None:
    return None if text is None else date.fromisoformat(text)


def test_the_two_plan_managers_are_fixed() -> None:
    assert [(str(one.id), one.name) for one in plan_managers()] == [
        ("017a5f00-0000-7000-8000-00000000da7a", "Wattlebird Plans (demonstration)"),
        ("017a5f00-0000-7000-8000-00000000da7b", "Saltbush Plans (demonstration)"),
    ]


def test_other_plan_managers_have_no_sample_data() -> None:
    with pytest.raises(ValueError, match="is not a plan manager of the sample data"):
        next(records(UUID(int=1)))


def test_rows_depend_only_on_the_seed() -> None:
    smaller = plan_managers()[1]
    assert dataset_of(smaller) == datasets()[1]
    other = dataset_of(smaller, seed=2)
    for resource in KEYS.keys() - {"note-types"}:
        assert not {row["id"] for row in other[resource]} & {row["id"] for row in datasets()[1][resource]}


@pytest.mark.parametrize("day", [date(2025, 12, 31), date(2027, 2, 28)], ids=str)
def test_another_day_moves_dates_and_nothing_else(day: date) -> None:
    now = datetime.combine(day, time(10, 30), ZoneInfo("Australia/Sydney"))
    days = day - LAST_DATE
    for plan_manager, original in zip(plan_managers(), datasets(), strict=True):
        moved = {resource: list(rows) for resource, rows in records(plan_manager.id, now=now)}
        for resource, rows in original.items():
            for before, after in zip(rows, moved[resource], strict=True):
                assert after.keys() == before.keys()
                assert {name: value for name, value in after.items() if not is_moved(name)} == {
                    name: value for name, value in before.items() if not is_moved(name)
                }
                for name in filter(is_moved, before):
                    check_moved(name, before[name], after[name], days, now)
        require_work(moved, day)


MOVED = re.compile("date|_at$|started|ended|heartbeat|line_items|components|periods|ceased")


def is_moved(name: str) -> bool:
    return name != "date_of_birth" and MOVED.search(name) is not None


def check_moved(name: str, before: Any, after: Any, days: timedelta, now: datetime) -> None:
    """A date or datetime is as many days later, and a time of today is before `now`."""
    if name in ("line_items", "components", "periods"):
        for one, other in zip(before, after, strict=True):
            assert other == one | {name: value for name, value in other.items() if is_moved(name)}
            for each in filter(is_moved, one):
                check_moved(each, one[each], other[each], days, now)
    elif before is None:
        assert after is None
    elif "T" in before:
        expected, moved = datetime.fromisoformat(before) + days, datetime.fromisoformat(after)
        if expected.astimezone(now.tzinfo).date() < now.date():
            assert moved == expected
        else:
            assert moved.astimezone(now.tzinfo).date() == now.date()
            assert moved <= min(expected, now)
    else:
        assert date.fromisoformat(after) == date.fromisoformat(before) + days


def require_work(dataset: Dataset, day: date) -> None:
    """Something for each chart and each line of the console's home page."""
    active = [row for row in dataset["participants"] if row["status"] == "Active"]
    left = [(date.fromisoformat(row["plan_end_date"]) - day).days for row in active]
    for first, last in ((-30, -1), (0, 30), (31, 90)):
        assert any(first <= days <= last for days in left), (first, last)
    assert any(row["account_manager_id"] is None for row in active)
    invoices = [row for row in dataset["invoices"] if not row["is_deleted"]]
    assert set(range(11)) <= weeks_before(invoices, day - timedelta(days=day.weekday()))
    assert any(received_on(row) == day for row in invoices)
    unpaid = [row for row in invoices if row["claim_status"] not in {"paid", "rejected", "cancelled"}]
    for first, last in ((0, 7), (8, 14), (15, 30), (31, 9999)):
        assert any(first <= (day - received_on(row)).days <= last for row in unpaid), (first, last)
    assert any(row["approval_status"] == "pending" for row in unpaid)


def weeks_before(invoices: Rows, monday: date) -> set[int]:
    return {(monday - received_on(row)).days // 7 for row in invoices if received_on(row) < monday}


@both_datasets
def test_there_are_invoices_of_eleven_weeks_on_each_weekday(dataset: Dataset) -> None:
    """Whatever the day, as it moves all dates alike."""
    invoices = [row for row in dataset["invoices"] if not row["is_deleted"]]
    for days in range(7):
        assert set(range(11)) <= weeks_before(invoices, LAST_DATE - timedelta(days=days)), days


def received_on(row: dict[str, Any]) -> date:
    return datetime.fromisoformat(row["created_at"]).astimezone(ZoneInfo("Australia/Sydney")).date()


def test_the_plan_managers_share_no_ids() -> None:
    for resource in KEYS:
        assert not {row["id"] for row in datasets()[0][resource]} & {row["id"] for row in datasets()[1][resource]}


@pytest.mark.parametrize(
    "dataset,counts",
    [
        ("larger", {"participants": 400, "providers": 60, "invoices": 2000, "invoice-view-sessions": 200}),
        ("smaller", {"participants": 100, "providers": 20, "invoices": 400, "invoice-view-sessions": 40}),
    ],
    indirect=["dataset"],
)
def test_resources_are_in_import_order_with_the_expected_counts(dataset: Dataset, counts: dict[str, int]) -> None:
    assert list(dataset) == list(KEYS)
    assert {resource: len(dataset[resource]) for resource in counts} == counts
    statuses = Counter(row["status"] for row in dataset["participants"])
    people = counts["participants"]
    assert statuses == {"Active": people * 85 // 100, "Inactive": people // 10, "Lead": people // 20}
    assert all(1 <= len(row["line_items"]) <= 4 for row in dataset["invoices"])


@both_datasets
def test_rows_have_the_fields_of_the_import_format_and_no_others(dataset: Dataset) -> None:
    for resource, keys in KEYS.items():
        for row in dataset[resource]:
            assert row.keys() == set(keys.split())
    for row in dataset["invoices"]:
        assert row["state_management"].keys() == {"ignored_errors"}
        assert row["claim_status"] in CLAIM_STATUSES
        for line in row["line_items"]:
            assert line.keys() == set(LINE_KEYS.split())
            assert line["claim_status"] in CLAIM_STATUSES


@both_datasets
def test_values_are_json_exact_and_within_their_lengths(dataset: Dataset) -> None:
    def check(key: str, value: Any) -> None:
        assert value is None or isinstance(value, str | int | bool | Decimal)
        if isinstance(value, Decimal):
            assert value == round(value, 2)
        if not isinstance(value, str):
            return
        assert 0 < len(value) <= LENGTHS.get(key, 255)
        if "phone" in key:
            assert MOBILE.fullmatch(value) or LANDLINE.fullmatch(value)
        if key in {"email", "secondary_email"}:
            validate_email(value, check_deliverability=False)
            assert re.search(r"[@.]example\.(com|org|net)$", value) or value == "ops@plankeeper.example"

    check_values(dataset, check)
    assert msgspec.json.Encoder(decimal_format="number").encode(dataset)


@both_datasets
def test_ids_are_of_version_7_and_ascend_with_creation(dataset: Dataset) -> None:
    for resource in ("participants", "providers", "invoices", "invoice-view-sessions"):
        for row in dataset[resource]:
            check_id(row)
            for one, other in pairwise(row.get("line_items", ())):
                assert one["id"] < other["id"]
            for line in row.get("line_items", ()):
                check_id(line)
        for one, other in pairwise(dataset[resource]):
            assert one["id"] < other["id"]
            assert one["created_at"] <= other["created_at"]
        assert dataset[resource][-1]["created_at"] < "2026-10-31"


def check_id(row: dict[str, Any]) -> None:
    assert str(UUID(row["id"])) == row["id"]
    assert UUID(row["id"]).version == 7
    assert datetime.strptime(row["created_at"], "%Y-%m-%dT%H:%M:%S%z").timestamp() == (
        (UUID(row["id"]).int >> 80) // 1000
    )


@both_datasets
def test_every_reference_resolves(dataset: Dataset) -> None:
    reasons, managers = by_id(dataset["exit-reasons"]), by_id(dataset["account-managers"])
    participants, providers = by_id(dataset["participants"]), by_id(dataset["providers"])
    invoices = by_id(dataset["invoices"])
    for row in dataset["exit-reasons"]:
        assert row["parent_id"] is None or reasons[row["parent_id"]]["parent_id"] is None
    for row in dataset["participants"]:
        if row["account_manager_id"] is not None:
            assert is_assignable(managers[row["account_manager_id"]])
        if row["exit_reason_subcategory_id"] is not None:
            assert reasons[row["exit_reason_subcategory_id"]]["parent_id"] == row["exit_reason_category_id"]
    assert {row["participant_id"] for row in dataset["team-members"]} <= participants.keys()
    assert {row["participant_id"] for row in dataset["invoices"]} - {None} <= participants.keys()
    assert {row["pm_provider_id"] for row in dataset["invoices"]} - {None} <= providers.keys()
    for row in dataset["invoice-view-sessions"]:
        manager = managers[row["user_id"]]
        assert row["user_name"] == f"{manager['first_name']} {manager['last_name']}"
        assert row["created_at"] > invoices[row["invoice_id"]]["created_at"]


def is_assignable(manager: dict[str, Any]) -> bool:
    hidden = manager["is_internal"] or manager["deleted"] or "plankeeper" in manager["email"].split("@")[1]
    return manager["active"] and not hidden


@both_datasets
def test_account_managers_cover_every_reason_for_being_hidden(dataset: Dataset) -> None:
    rows = dataset["account-managers"]
    assert sum(row["is_internal"] for row in rows) == 1
    assert sum(row["deleted"] for row in rows) == 1
    assert sum("plankeeper" in row["email"] for row in rows) == 1
    assert sum(not row["active"] and not row["deleted"] for row in rows) == 2
    assert sum(is_assignable(row) for row in rows) == 4
    assert len({row["email"] for row in rows}) == len(rows)


@both_datasets
def test_participants_are_unique_with_consistent_addresses(dataset: Dataset) -> None:
    rows = dataset["participants"]
    numbers = {row["participant_number"] for row in rows}
    assert len(numbers) == len(rows)
    assert all(re.fullmatch("43[0-9]{7}", number) for number in numbers)
    emails = [row["email"] for row in rows if row["email"]]
    assert len(set(emails)) == len(emails)
    for row in (*rows, *dataset["providers"]):
        assert (row["city"], row["postcode"]) in SUBURBS[row["state"]]
        if "service_region_id" in row:
            assert row["service_region_id"] == SERVICE_REGIONS.get(row["postcode"])
    assert 0 < sum(row["service_region_id"] is not None for row in rows) < len(rows) / 10


@both_datasets
def test_a_participant_s_dates_agree_with_their_status(dataset: Dataset) -> None:
    ended = 0
    for row in dataset["participants"]:
        is_lead, left = row["status"] == "Lead", row["status"] == "Inactive"
        assert (row["plan_start_date"] is None) == (row["plan_end_date"] is None) == is_lead
        assert (row["onboard_date"] is None) == is_lead
        assert (row["date_ceased"] is not None) == (row["exit_reason_category_id"] is not None) == left
        if not is_lead:
            until = row["date_ceased"] or LAST_DATE.isoformat()
            assert row["plan_start_date"] < min(until, row["plan_end_date"])
            assert row["created_at"][:10] < row["onboard_date"] < until
            ended += row["plan_end_date"] < until
        if row["participant_receives_statements"]:
            assert row["email"]
    assert ended == len(dataset["participants"]) * 3 // 100  # and still active


@both_datasets
def test_one_abn_is_invalid_and_names_are_unique(dataset: Dataset) -> None:
    rows = dataset["providers"]
    assert sum(not abn.is_valid(row["abn"]) for row in rows) == 1
    for field in ("abn", "entity_name", "email"):
        assert len({row[field] for row in rows}) == len(rows)
    assert {row["active"] for row in rows} == {True, False}


@both_datasets
def test_team_members_are_users_of_their_plan_manager(dataset: Dataset) -> None:
    rows = dataset["team-members"]
    others = {row["email"] for row in (*dataset["participants"], *dataset["account-managers"])}
    users: dict[str, str] = {}
    for row in rows:
        if row["email"] is None:
            assert row["id"] == row["pm_profile_id"] != row["user_id"]
            assert row["permissions"] == ["no_access"]
        else:
            assert (row["id"], row["pm_profile_id"]) == (row["user_id"], None)
            assert row["email"] not in others
            assert users.setdefault(row["email"].lower(), row["user_id"]) == row["user_id"]
        assert len(set(row["permissions"])) == len(row["permissions"]) > 0
    assert len(set(users.values())) == len(users)
    assert any(row["email"] is None for row in rows)


@both_datasets
def test_teams_are_small_and_share_their_coordinators(dataset: Dataset) -> None:
    rows = dataset["team-members"]
    sizes = Counter(row["participant_id"] for row in rows)
    assert set(sizes.values()) == {1, 2, 3}
    assert len(dataset["participants"]) * 0.8 < len(sizes) < len(dataset["participants"])
    assert len({(row["participant_id"], row["id"]) for row in rows}) == len(rows)
    held = [(row["participant_id"], row["contact_priority"]) for row in rows if row["contact_priority"]]
    assert len(set(held)) == len(held)
    assert {rank for _, rank in held} == {1, 2}
    assert max(Counter(row["id"] for row in rows).values()) > 2


@both_datasets
def test_every_warning_occurs_and_most_invoices_have_none(dataset: Dataset) -> None:
    found = expected_warnings(dataset)
    assert sum(not codes for codes in found.values()) > len(found) * 0.85
    # Who has left has no plan for later services.
    several = {tuple(codes) for codes in found.values() if len(codes) > 1}
    assert several <= {("inactive_participant", "check_dates")}
    assert {code for codes in found.values() for code in codes} == PLANNED
    ignoring = [row for row in dataset["invoices"] if row["state_management"]["ignored_errors"]]
    assert ignoring
    for row in ignoring:
        assert row["state_management"]["ignored_errors"] == found[row["id"]][:1]
    on_hold = {row["id"] for row in dataset["invoices"] if row["claim_status"] == "on_hold" and row not in ignoring}
    for code in PLANNED:
        assert sum(codes == [code] for codes in found.values()) >= 4
        assert any(codes == [code] for id_, codes in found.items() if id_ in on_hold), code


@both_datasets
def test_item_codes_are_well_formed_unless_warned_about(dataset: Dataset) -> None:
    found = expected_warnings(dataset)
    for row in dataset["invoices"]:
        if found[row["id"]] != ["check_item_code"]:
            assert all(is_item_code(line["service_item_number"]) for line in row["line_items"])


@both_datasets
def test_view_sessions_are_consistent_and_a_few_are_open(dataset: Dataset) -> None:
    open_ones = 0
    for row in dataset["invoice-view-sessions"]:
        assert row["session_started"] == row["created_at"] <= row["last_heartbeat"]
        rest = [row[f"{name}_seconds"] for name in ("duration", "active_duration", "engaged_duration")]
        if row["session_ended"] is None:
            open_ones += 1
            assert [*rest, row["idle_count"]] == [None] * 4
            continue
        started, ended = (datetime.fromisoformat(row[f"session_{name}"]) for name in ("started", "ended"))
        assert row["last_heartbeat"] <= row["session_ended"]
        assert (ended - started).total_seconds() == row["duration_seconds"]
        assert rest[0] >= rest[1] >= rest[2] > 0
        assert (row["idle_count"] == 0) == (rest[0] == rest[1])
    assert 2 <= open_ones < 10
