"""The days on which a plan manager manages a plan, and the date of death: what they must fulfil."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from support.client import Client

UNTIL = "must be on or after the first managed day, 1 Jul 2026"
FUTURE = "must not be in the future"


def errors_of(response: Any) -> list[tuple[str, str, str]]:
    assert response.status_code == 400
    return [(each["field"], each["code"], each["message"]) for each in response.json()["errors"]]


def date_in(days: int) -> str:
    return str(datetime.now(ZoneInfo("Australia/Sydney")).date() + timedelta(days=days))


def test_the_management_ends_on_its_first_day_or_later(api: Client) -> None:
    dates = {"managed_from": "2026-07-01", "managed_until": "2026-06-30"}
    wrong = [("managed_until", "inconsistent", UNTIL)]
    assert errors_of(api.post("/participants", dates)) == wrong
    made = api.create("/participants", dates | {"managed_until": "2026-07-01"})
    path = f"/participants/{made['id']}"
    assert errors_of(api.put(path, {"managed_until": "2026-06-30"})) == wrong
    later = [("managed_until", "inconsistent", UNTIL.replace("1 Jul", "2 Jul"))]
    assert errors_of(api.put(path, {"managed_from": "2026-07-02"})) == later
    assert api.get(path).json() == made
    assert api.put(path, {"managed_from": None, "managed_until": "2020-01-01"}).json()["managed_until"] == "2020-01-01"


def test_a_death_is_today_or_earlier(api: Client) -> None:
    wrong = [("deceased_on", "inconsistent", FUTURE)]
    assert errors_of(api.post("/participants", {"deceased_on": date_in(2)})) == wrong
    made = api.create("/participants", {"deceased_on": date_in(0)})
    assert errors_of(api.put(f"/participants/{made['id']}", {"deceased_on": date_in(2)})) == wrong
    assert api.put(f"/participants/{made['id']}", {"deceased_on": None}).json()["deceased_on"] is None


def test_a_remoteness_is_one_of_the_areas_with_their_own_price_limits(api: Client) -> None:
    message = "must be one of remote, very_remote"
    [(field, code, text)] = errors_of(api.post("/participants", {"remoteness": "outback"}))
    assert (field, code, text) == ("remoteness", "not_allowed", message)
    for value in ("remote", "very_remote", None):
        assert api.create("/participants", {"remoteness": value})["remoteness"] == value


def test_all_errors_of_a_bulk_are_listed(api: Client) -> None:
    made = api.create("/participants", {"managed_from": "2026-07-01"})
    items = [
        {"id": made["id"], "managed_until": "2026-06-30"},
        {"first_name": "Ann"},
        {"deceased_on": date_in(2), "plan_start_date": "2026-07-01"},
    ]
    assert errors_of(api.post("/participants/bulk", {"items": items})) == [
        ("items[0].managed_until", "inconsistent", UNTIL),
        ("items[2].deceased_on", "inconsistent", FUTURE),
    ]
    assert api.get("/participants").json()["data"] == [made]


def test_an_import_reports_the_lines_with_wrong_dates(api: Client, import_rows: Callable[..., Any]) -> None:
    made = api.create("/participants", {"managed_from": "2026-07-01"})
    rows = [
        {"id": made["id"], "managed_until": "2026-06-30"},
        {"first_name": "Ann", "remoteness": "very_remote"},
        {"deceased_on": date_in(2)},
    ]
    errors = import_rows(api, "participants", rows).errors
    assert [(each.line_number, each.field, each.message) for each in errors] == [
        (1, "managed_until", UNTIL), (3, "deceased_on", FUTURE),
    ]  # fmt: skip
    assert api.get("/participants").json()["data"] == [made]
