"""Plans of participants over the API, and the participant's fields that show the current one."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from plankeeper.core.settings import Settings
from plankeeper.resources.participants import plans
from plankeeper.resources.upsert import RowError
from support.client import Client
from support.import_samples import Import, assert_imported
from support.server import RunningServer, wait_until

EventTypes = Callable[[str], list[str]]
FIELDS = ("is_pace_plan", "plan_start_date", "plan_end_date")
YEAR = timedelta(days=365)
CORE = {"name": "Core supports", "kind": "flexible", "categories": [1, 4], "amount": 1000.5}
THERAPY = {"name": "Therapy", "kind": "stated", "categories": [15], "amount": 600}


@pytest.fixture
def today(server: RunningServer) -> date:
    return datetime.now(server.settings.time_zone).date()


@pytest.fixture
def participant_id(api: Client) -> str:
    return api.create("/participants", {"first_name": "Ann"})["id"]


@pytest.fixture
def path(participant_id: str) -> str:
    return f"/participants/{participant_id}/plans"


def dates(start: date, days: int = 364) -> dict[str, str]:
    return {"start_date": str(start), "end_date": str(start + timedelta(days=days))}


def fields_of(api: Client, participant_id: str) -> tuple[Any, ...]:
    participant = api.get(f"/participants/{participant_id}").json()
    return tuple(participant[name] for name in FIELDS)


def errors_of(response: Any) -> list[tuple[str, str, str]]:
    assert response.status_code == 400, response.text
    return [(each["field"], each["code"], each["message"]) for each in response.json()["errors"]]


@pytest.fixture
def event_types(server: RunningServer, api: Client) -> Callable[[str], list[str]]:
    """The types of a kind's events, the oldest first."""
    statement = "select type from events where plan_manager_id = $1 and resource_kind = $2 order by id"
    return lambda kind: server.run(server.db.rows(str, statement, UUID(api.plan_manager_id), kind))


def test_a_plan_is_created_changed_and_deleted(
    api: Client, path: str, participant_id: str, today: date, event_types: EventTypes
) -> None:
    body = dates(today) | {"is_pace_plan": True, "external_id": "P-1", "components": [CORE, THERAPY]}
    made = api.post(path, body)
    assert made.status_code == 201
    plan = made.json()
    numbers = {"paid": 0, "pending": 0, "waiting": 0, "periods": [], "spent_elsewhere": None}
    shown = [
        each | numbers | {"id": stored["id"], "released": each["amount"], "available": each["amount"]}
        for each, stored in zip((CORE, THERAPY), plan["components"], strict=True)
    ]
    kept = {name: plan[name] for name in ("id", "created_at", "updated_at")}
    assert plan == body | kept | {"participant_id": participant_id, "components": shown}
    own = f"{path}/{plan['id']}"
    assert api.get(own).json() == plan
    assert api.get(path).json()["data"] == [plan]
    assert api.get(path, external_id="P-2").json()["data"] == []
    assert fields_of(api, participant_id) == (True, body["start_date"], body["end_date"])
    assert api.put(own, plan).json() == plan  # what a client received changes nothing
    core = plan["components"][0]
    changed = api.put(own, {"components": [{"id": core["id"], "amount": 900}], "external_id": None}).json()
    assert (changed["external_id"], len(changed["components"])) == (None, 1)
    assert changed["components"][0] == core | {"amount": 900, "released": 900, "available": 900}
    assert changed["updated_at"] > plan["updated_at"]
    assert api.delete(own).json() == {}
    assert api.get(own).status_code == 404
    assert fields_of(api, participant_id) == (False, None, None)
    assert event_types("plan") == ["plan.created", "plan.updated", "plan.deleted"]
    changes = ["participant.created", "participant.updated", "participant.updated"]
    assert event_types("participant") == changes


def test_unknown_plans_and_participants_are_404(api: Client, path: str, today: date) -> None:
    other = api.create("/participants", {"first_name": "Bea"})["id"]
    plan_id = api.create(path, dates(today))["id"]
    for missing in (f"{path}/{uuid4()}", f"/participants/{other}/plans/{plan_id}"):
        assert {api.get(missing).status_code, api.put(missing, {}).status_code, api.delete(missing).status_code} == {
            404
        }
    nobody = f"/participants/{uuid4()}/plans"
    assert (api.get(nobody).status_code, api.post(nobody, dates(today)).status_code) == (404, 404)


def test_invalid_plans_name_the_fields(api: Client, path: str, today: date) -> None:
    api.create(path, dates(date(2026, 7, 1)))
    own = dates(date(2030, 7, 1))
    period = {"start_date": "2030-07-01", "end_date": "2031-07-01", "amount": 600}
    cases = [
        (
            dates(date(2027, 6, 30)),
            "start_date",
            "inconsistent",
            "30 Jun 2027 to 28 Jun 2028 overlaps the plan 1 Jul 2026 to 30 Jun 2027",
        ),
        (dates(date(2030, 7, 1), -1), "end_date", "inconsistent", "is before the start date, 1 Jul 2030"),
        ({"start_date": "2030-07-01"}, "end_date", "required", "is required"),
        (own | {"components": [{"name": "No amount"}]}, "components[0].kind", "required", "is required"),
        (
            own | {"components": [THERAPY | {"id": str(uuid4())}]},
            "components[0].id",
            "not_found",
            "must be the id of a component of this plan",
        ),
        (
            own | {"components": [THERAPY | {"periods": [period]}]},
            "components[0].periods[0].start_date",
            "inconsistent",
            "1 Jul 2030 to 1 Jul 2031 must lie in the plan, 1 Jul 2030 to 30 Jun 2031",
        ),
        (own | {"components": [CORE, CORE]}, "components[1].categories", "inconsistent", None),
        (own | {"components": [CORE | {"amount": -1}]}, "components[0].amount", "too_small", "must be 0 or more"),
    ]
    for body, field, code, message in cases:
        first = errors_of(api.post(path, body))[0]
        assert first[:2] == (field, code), body
        assert message in (None, first[2])
    assert len(api.get(path).json()["data"]) == 1


def test_the_participant_shows_the_plan_in_force_else_the_next_else_the_latest(
    api: Client, path: str, participant_id: str, today: date
) -> None:
    def shown() -> Any:
        return fields_of(api, participant_id)[1]

    past = api.create(path, dates(today - 3 * YEAR, 30))
    assert shown() == past["start_date"]
    later = api.create(path, dates(today + 2 * YEAR))
    assert shown() == later["start_date"]
    sooner = api.create(path, dates(today + timedelta(days=1), 30))
    assert shown() == sooner["start_date"]
    current = api.create(path, dates(today, 0) | {"is_pace_plan": True})
    assert fields_of(api, participant_id) == (True, str(today), str(today))
    api.delete(f"{path}/{current['id']}")
    api.put(f"{path}/{sooner['id']}", dates(today + 4 * YEAR))
    assert shown() == later["start_date"]


def test_the_fields_of_the_contract_create_and_edit_the_current_plan(
    api: Client, path: str, participant_id: str, today: date, event_types: EventTypes
) -> None:
    own = f"/participants/{participant_id}"
    assert api.get(path).json()["data"] == []
    api.put(own, {"plan_start_date": str(today)})
    [plan] = api.get(path).json()["data"]
    assert (plan["start_date"], plan["end_date"]) == (str(today), None)
    api.put(own, {"plan_end_date": str(today - YEAR), "is_pace_plan": True})  # accepted, in force on no day
    api.put(own, {"plan_end_date": str(today + YEAR)})
    [edited] = api.get(path).json()["data"]
    assert edited["id"] == plan["id"]
    assert (edited["end_date"], edited["is_pace_plan"]) == (str(today + YEAR), True)
    api.put(f"{path}/{plan['id']}", {"components": [THERAPY]})
    later = api.create(path, dates(today + 2 * YEAR))
    [error] = errors_of(api.put(own, {"plan_end_date": later["start_date"]}))
    assert error[:2] == ("plan_end_date", "inconsistent")
    assert "overlaps the plan" in error[2]
    cleared = api.put(own, {"plan_start_date": None, "plan_end_date": None, "is_pace_plan": False}).json()
    assert cleared["plan_start_date"] == later["start_date"]  # the next plan is the current one now
    kinds = ["plan.created", "plan.updated", "plan.updated", "plan.updated", "plan.created", "plan.updated"]
    assert event_types("plan") == kinds


def test_clearing_the_fields_deletes_a_plan_without_a_budget(api: Client) -> None:
    made = api.create("/participants", {"plan_start_date": "2026-07-01"})
    path = f"/participants/{made['id']}/plans"
    assert len(api.get(path).json()["data"]) == 1
    api.put(f"/participants/{made['id']}", {"plan_start_date": None})
    assert api.get(path).json()["data"] == []


def test_bulk_changes_write_plans(api: Client, path: str, participant_id: str, today: date) -> None:
    api.create(path, dates(today + 2 * YEAR))
    api.create(path, dates(today))
    body = {"items": [{"plan_end_date": "2030-01-01"}, {"id": participant_id, "plan_end_date": str(today + 2 * YEAR)}]}
    [error] = errors_of(api.post("/participants/bulk", body))
    assert error[:2] == ("items[1].plan_end_date", "inconsistent")
    body["items"][1]["plan_end_date"] = str(today + timedelta(days=9))
    created, updated = api.post("/participants/bulk", body).json()["data"]
    [plan] = api.get(f"/participants/{created['id']}/plans").json()["data"]
    assert (plan["start_date"], plan["end_date"]) == (None, "2030-01-01")
    assert updated["plan_end_date"] in {each["end_date"] for each in api.get(path).json()["data"]}


HALVES = [
    {"start_date": "2026-07-01", "end_date": "2026-12-31", "amount": 400},
    {"start_date": "2027-01-01", "end_date": "2027-06-30", "amount": 200},
]
SPENT_ELSEWHERE = {"amount": 50, "as_of": "2026-08-01", "source": "Agency"}


def line(day: str, price: float, status: str = "new", **more: Any) -> dict[str, Any]:
    item = "15_056_0128_1_3"
    values = {"service_date_from": day, "service_item_number": item, "total_price": price, "claim_status": status}
    return values | more


def test_numbers_come_from_the_lines_of_invoices(
    api: Client, path: str, participant_id: str, import_rows: Import
) -> None:
    therapy_budget = THERAPY | {"periods": HALVES, "spent_elsewhere": SPENT_ELSEWHERE}
    plan = api.create(path, dates(date(2026, 7, 1)) | {"components": [CORE, therapy_budget]})
    core, therapy = (each["id"] for each in plan["components"])
    lines = [
        line("2026-07-02", 100, "paid", paid_amount=90),
        line("2026-07-03", 30, "pending") | {"service_date_from": None, "service_date_to": "2026-07-03"},
        line("2026-07-04", 10.5),
        line("2026-07-05", 7, component_id=core),
        line("2026-12-31", 1, "rejected"),
        line("2026-12-31", 1000, is_deleted=True),
        line("2026-06-30", 1000),
        line("2026-07-06", 20, "cancelled"),
    ]
    # The tax is one cent more than the tenths.
    lines_with_tax = [line("2026-07-07", price, gst_code="P1") for price in (10, 10)]
    taxed = {"subtotal": 20, "tax": 2.01, "total": 22.01, "line_items": lines_with_tax}
    unclaimed = {"wont_claim": True, "line_items": [line("2026-07-02", 500)]}
    row = {"participant_id": participant_id, "invoice_date": "2026-07-09"}
    import_rows(api, "invoices", [row | each for each in ({"line_items": lines}, taxed, unclaimed)])

    def shown(component_id: str, on: str) -> list[float]:
        found = api.get(f"{path}/{plan['id']}", on=on).json()
        assert api.get(path, on=on).json()["data"] == [found]
        [own] = [each for each in found["components"] if each["id"] == component_id]
        return [own[name] for name in ("released", "paid", "pending", "waiting", "available")]

    assert shown(therapy, "2026-07-03") == [400, 140, 30, 0, 230]
    assert shown(therapy, "2026-12-30") == [400, 140, 30, 32.51, 197.49]
    assert shown(therapy, "2027-01-01") == [600, 140, 30, 33.51, 396.49]
    assert shown(core, "2027-01-01") == [1000.5, 0, 0, 7, 993.5]


def test_a_plan_with_claimed_lines_stays(api: Client, path: str, participant_id: str, import_rows: Import) -> None:
    plan = api.create(path, dates(date(2026, 7, 1)) | {"components": [CORE, THERAPY]})
    line = {"service_date_from": "2026-09-01", "total_price": 10, "component_id": plan["components"][0]["id"]}
    row = {"id": str(uuid4()), "participant_id": participant_id}
    import_rows(api, "invoices", [row | {"line_items": [line | {"claim_status": "pending"}]}])
    refused = api.delete(f"{path}/{plan['id']}")
    assert (refused.status_code, refused.json()["error"]) == (409, "plan_in_use")
    assert refused.json()["resource"] == {"kind": "plan", "id": plan["id"]}
    assert api.put(f"{path}/{plan['id']}", {"components": plan["components"][1:]}).status_code == 409
    assert api.put(f"{path}/{plan['id']}", {"components": plan["components"][:1]}).status_code == 200
    own = {"id": plan["id"], "participant_id": participant_id}
    message = "must contain each component to which a claimed line of an invoice belongs"
    report = import_rows(api, "plans", [own | {"components": []}])
    assert report.errors == [RowError(1, "components", message)]
    assert_imported(import_rows(api, "plans", [own | {"components": plan["components"]}]), changed=1)
    assert_imported(import_rows(api, "plans", [own | {"components": plan["components"][:1]}]), changed=1)
    import_rows(api, "invoices", [row | {"line_items": [line | {"claim_status": "new"}]}])
    assert_imported(import_rows(api, "plans", [own | {"components": []}]), changed=1)
    assert api.delete(f"{path}/{plan['id']}").status_code == 200


def test_of_two_overlapping_plans_at_the_same_time_one_is_created(api: Client, path: str, today: date) -> None:
    with ThreadPoolExecutor(4) as pool:
        statuses = list(pool.map(lambda number: api.post(path, dates(today, number)).status_code, range(4)))
    assert sorted(statuses) == [201, 400, 400, 400]


def test_an_import_of_plans_finds_them_by_id_or_dates(api: Client, import_rows: Import, today: date) -> None:
    plan_fields = {f"plan_{name}": value for name, value in dates(today).items()}
    ann = api.create("/participants", {"participant_number": "430000001"} | plan_fields)
    own = dates(today) | {"participant_number": "430000001", "components": [CORE]}
    path = f"/participants/{ann['id']}/plans"
    [placeholder] = api.get(path).json()["data"]
    assert_imported(import_rows(api, "plans", [own]), changed=1)
    assert_imported(import_rows(api, "plans", [own]), unchanged=1)
    [plan] = api.get(path).json()["data"]
    assert (plan["id"], plan["components"][0]["name"]) == (placeholder["id"], "Core supports")
    later = dates(today + YEAR) | {"participant_id": ann["id"], "id": str(uuid4()), "components": [THERAPY]}
    assert_imported(import_rows(api, "plans", [later, later | {"is_pace_plan": True}]), created=1, changed=1)
    overlapping = later | {"id": str(uuid4())}
    unknown = later | {"participant_id": str(uuid4()), "id": str(uuid4())}
    moved = {"id": plan["id"], "participant_id": str(uuid4())}
    negative = own | {"components": [CORE | {"amount": -1}]}
    for row, field in (
        (overlapping, "start_date"),
        (unknown, "participant_id"),
        (moved, "participant_id"),
        (negative, "components[0].amount"),
    ):
        report = import_rows(api, "plans", [row])
        assert [each.field for each in report.errors] == [field], row


def test_an_imported_plan_takes_the_place_of_the_one_that_the_participants_fields_made(
    api: Client, import_rows: Import, today: date
) -> None:
    row = {"id": str(uuid4()), "plan_start_date": str(today), "plan_end_date": str(today + YEAR)}
    import_rows(api, "participants", [row])
    plan = {"id": str(uuid4()), "participant_id": row["id"], **dates(today, 365), "components": [THERAPY]}
    assert_imported(import_rows(api, "plans", [plan]), created=1)
    assert [each["id"] for each in api.get(f"/participants/{row['id']}/plans").json()["data"]] == [plan["id"]]


def test_at_midnight_the_next_plan_becomes_the_current_one(
    server: RunningServer,
    api: Client,
    path: str,
    participant_id: str,
    today: date,
    event_types: EventTypes,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    api.create(path, dates(today, 5))
    later = api.create(path, dates(today + timedelta(days=6)) | {"is_pace_plan": True})
    assert fields_of(api, participant_id)[1] == str(today)
    server.run(plans.switch_due(server.db, server.settings))
    assert fields_of(api, participant_id)[1] == str(today)
    monkeypatch.setattr(Settings, "today", today + timedelta(days=30))  # after a long outage
    server.run(plans.switch_due(server.db, server.settings))
    # The server's own task may be at it at the same time.
    wait_until(lambda: fields_of(api, participant_id) == (True, later["start_date"], later["end_date"]))
    changes = ["participant.created", "participant.updated", "participant.updated"]
    assert event_types("participant") == changes
    server.run(plans.switch_due(server.db, server.settings))
    assert event_types("participant") == changes


def test_a_deleted_participant_has_no_plans_left(
    server: RunningServer, api: Client, path: str, participant_id: str, today: date, event_types: EventTypes
) -> None:
    api.create(path, dates(today))
    api.delete(f"/participants/{participant_id}")
    statement = "select count(*) from plans where plan_manager_id = $1"
    assert server.run(server.db.one(int, statement, UUID(api.plan_manager_id))) == 0
    assert event_types("plan") == ["plan.created", "plan.deleted"]
