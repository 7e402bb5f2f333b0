"""The list of participants over HTTP: its items and its filters."""

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from uuid_utils.compat import uuid7

from support.client import Client
from support.resources import assert_changed

Import = Callable[..., Any]


def list_names(api: Client, **filters: Any) -> list[str]:
    """The first names that a filter finds, in both modes, with the total that it states."""
    page = api.get("/participants", **filters)
    assert page.status_code == 200, page.text
    by_cursor = api.get("/participants", **filters, after="0").json()
    assert by_cursor["data"] == page.json()["data"]
    names = [each["first_name"] for each in page.json()["data"]]
    assert page.json()["pagination"]["total"] == len(names)
    return names


def field_errors(api: Client, **filters: Any) -> list[tuple[str, str]]:
    response = api.get("/participants", **filters)
    assert (response.status_code, response.json()["error"]) == (400, "invalid_request"), response.text
    return [(each["field"], each["message"]) for each in response.json()["errors"]]


def import_managers(api: Client, import_rows: Import, *names: str) -> list[str]:
    rows = [{"id": str(uuid7()), "first_name": name} for name in names]
    assert not import_rows(api, "account-managers", rows).errors
    return [row["id"] for row in rows]


def test_an_empty_list_has_no_items(api: Client) -> None:
    response = api.get("/participants")
    meta = {"limit": 20, "offset": 0, "has_more": False, "total": 0, "next_cursor": None}
    assert (response.status_code, response.json()) == (200, {"data": [], "pagination": meta})


def test_an_item_equals_the_resource(api: Client) -> None:
    made = api.post("/participants", {"first_name": "Ann", "status": "Lead", "state": "vic"}).json()
    meta = {"limit": 20, "offset": 0, "has_more": False, "total": 1, "next_cursor": None}
    assert api.get("/participants").json() == {"data": [made], "pagination": meta}
    assert api.get(f"/participants/{made['id']}").json() == made


def test_the_status_filter_accepts_one_or_several_statuses(api: Client) -> None:
    for status in ("Active", "Inactive", "Lead"):
        api.create("/participants", {"first_name": status, "status": status})
    for status in ("Active", "Inactive", "Lead"):
        assert list_names(api, status=status) == [status]
    assert list_names(api, status="Lead,Active") == ["Active", "Lead"]
    assert list_names(api, status="Inactive, Active") == ["Active", "Inactive"]
    assert list_names(api, status="Lead,Lead") == ["Lead"]
    for wrong in ("active", "Gone", "Active Lead"):
        assert field_errors(api, status=wrong) == [("status[0]", "must be one of Active, Inactive, Lead")]
    assert field_errors(api, status="Lead,") == [("status[1]", "must be one of Active, Inactive, Lead")]
    assert field_errors(api, status="") == [("status", "must not be empty")]
    assert field_errors(api, status=",".join(["Lead"] * 21)) == [("status", "must have at most 20 items")]
    [error] = api.get("/participants", status="Lead,Gone").json()["errors"]
    assert error == {
        "in": "query", "field": "status[1]", "code": "not_allowed",
        "message": "must be one of Active, Inactive, Lead", "allowed": ["Active", "Inactive", "Lead"],
    }  # fmt: skip


def test_several_statuses_and_states_are_paged_sorted_and_counted(api: Client) -> None:
    people = [
        {
            "first_name": f"{number:02}", "last_name": f"{12 - number:02}", "city": "Perth" if number < 6 else "Hobart",
            "status": ("Active", "Inactive", "Lead")[number % 3], "state": ("NSW", "QLD", "VIC", None)[number % 4],
        }
        for number in range(12)
    ]  # fmt: skip
    api.post("/participants/bulk", {"items": people}).raise_for_status()

    def matches(status: str, state: str) -> list[str]:
        statuses, states = status.split(","), state.upper().split(",")
        return [
            f"{number:02}"
            for number in range(12)
            if (not status or ("Active", "Inactive", "Lead")[number % 3] in statuses)
            and (not state or ("NSW", "QLD", "VIC", None)[number % 4] in states)
        ]

    for status in ("", "Lead", "Lead,Active", "Active,Inactive,Lead"):
        for state in ("", "nsw", "QLD,nsw", "nsw,NSW", "vic,nsw,qld"):
            params = {name: value for name, value in (("status", status), ("state", state)) if value}
            expected = matches(status, state)
            assert list_names(api, **params) == expected, params
            part = api.get("/participants", **params, offset=1, limit=2).json()["data"]
            assert [each["first_name"] for each in part] == expected[1:3]
            assert list_names(api, **params, sort="last_name") == expected[::-1]
            walked, after = [], "0"
            while after:
                page = api.get("/participants", **params, sort="-last_name", limit=2, after=after).json()
                walked += [each["first_name"] for each in page["data"]]
                after = page["pagination"]["next_cursor"]
            assert walked == expected
            since = {"updated_since": "2020-01-01T00:00:00Z"}
            assert api.get("/participants", **params, **since).json()["pagination"]["total"] == len(expected)


@pytest.mark.parametrize("state", ["nsw", "qld", "vic", "sa", "wa", "tas", "act", "nt"])
def test_the_state_filter_ignores_case(api: Client, state: str) -> None:
    api.create("/participants", {"first_name": "here", "state": state})
    api.create("/participants", {"first_name": "elsewhere", "state": "NSW" if state != "nsw" else "QLD"})
    api.create("/participants", {"first_name": "nowhere"})
    assert list_names(api, state=state) == list_names(api, state=state.upper()) == ["here"]


@pytest.mark.parametrize("invalid", ["XX", "New South Wales", "nsw vic", "Nſw"])
def test_the_state_filter_rejects_other_values(api: Client, invalid: str) -> None:
    [(field, message)] = field_errors(api, state=invalid)
    assert field == "state[0]"
    assert message == "must be one of act, nsw, nt, qld, sa, tas, vic, wa"


def test_the_account_manager_filter_matches_any_given_id(api: Client, import_rows: Import) -> None:
    first, second, idle = import_managers(api, import_rows, "one", "two", "idle")
    for name, manager in (("a", first), ("b", second), ("c", first), ("d", None)):
        api.create("/participants", {"first_name": name, "account_manager_id": manager})
    assert list_names(api, account_manager=first) == ["a", "c"]
    assert list_names(api, account_manager=f"{second.upper()},{first}") == ["a", "b", "c"]
    assert list_names(api, account_manager=f"{second},{second},{uuid7()}") == ["b"]
    assert list_names(api, account_manager=idle) == []


def test_the_account_manager_filter_accepts_at_most_100_ids(api: Client) -> None:
    ids = [str(uuid7()) for _ in range(101)]
    assert list_names(api, account_manager=",".join(ids[:100])) == []
    assert field_errors(api, account_manager=",".join(ids)) == [("account_manager", "must have at most 100 items")]
    expected = "must be a UUID with hyphens, or none"
    for wrong in ("abc", uuid7().hex, "None"):
        assert field_errors(api, account_manager=wrong) == [("account_manager[0]", expected)]
    assert list_names(api, account_manager=f"{ids[0]}, {ids[1]}") == []
    assert field_errors(api, account_manager=f"{ids[0]},") == [("account_manager[1]", expected)]


def test_participants_without_an_account_manager_can_be_listed(api: Client, import_rows: Import) -> None:
    manager, other = import_managers(api, import_rows, "one", "two")
    managers = (("a", manager, "Lead"), ("b", None, "Lead"), ("c", None, "Active"), ("d", other, "Lead"))
    for name, id_, status in managers:
        api.create("/participants", {"first_name": name, "account_manager_id": id_, "status": status})
    assert list_names(api, account_manager="none") == ["b", "c"]
    assert list_names(api, account_manager="none", status="Active,Inactive") == ["c"]
    assert list_names(api, account_manager="none", sort="-id") == ["c", "b"]
    page = api.get("/participants", account_manager="none", limit=1).json()["pagination"]
    assert (page["total"], page["has_more"]) == (2, True)
    assert list_names(api, account_manager="none,none") == ["b", "c"]
    assert list_names(api, account_manager=f"none,{other}") == ["b", "c", "d"]
    assert list_names(api, account_manager=f"{other},none,{manager}", status="Lead", sort="-id") == ["d", "b", "a"]
    page = api.get("/participants", account_manager=f"none,{other}", limit=1).json()["pagination"]
    assert (page["total"], page["has_more"]) == (3, True)


def test_the_number_filter_is_exact_but_for_what_separates_9_digits(api: Client) -> None:
    for name, number in (("a", "431234567"), ("b", "4312345678"), ("c", None), ("d", "431234567"), ("e", "x 1")):
        api.create("/participants", {"first_name": name, "participant_number": number})
    assert list_names(api, participant_number="431234567") == ["a", "d"]
    assert list_names(api, participant_number="x 1") == ["e"]
    assert list_names(api, participant_number="X 1") == []
    assert list_names(api, participant_number="43123%") == []
    assert list_names(api, participant_number="x1") == []
    api.create("/participants", {"first_name": "f", "participant_number": "431 234 567"})
    for number in ("431234567", "431 234 567", "4312 34567", "431-234-567"):
        assert list_names(api, participant_number=number) == ["a", "d", "f"]
    assert list_names(api, participant_number="4312345678") == ["b"]
    assert list_names(api, participant_number="431 234 5678") == []


def test_the_email_filter_ignores_case_and_accepts_any_text(api: Client) -> None:
    for name, email in (("a", "Ann@Example.com"), ("b", "ann@example.com.au"), ("c", None)):
        api.create("/participants", {"first_name": name, "email": email})
    assert list_names(api, email="aNN@example.COM") == ["a"]
    assert list_names(api, email="ann") == []
    assert list_names(api, email="%") == []


def test_filters_combine_with_and(api: Client, import_rows: Import) -> None:
    [manager] = import_managers(api, import_rows, "one")
    whole = {"status": "Lead", "state": "TAS", "participant_number": "1", "email": "a@example.com"}
    api.create("/participants", whole | {"first_name": "all", "account_manager_id": manager})
    for name, other in (
        ("status", "Active"), ("state", "NT"), ("participant_number", "2"), ("email", "b@example.com"),
    ):  # fmt: skip
        api.create("/participants", whole | {"first_name": name, name: other, "account_manager_id": manager})
    api.create("/participants", whole | {"first_name": "account_manager"})
    assert list_names(api, **whole, account_manager=manager, updated_since="2020-01-01T00:00:00Z") == ["all"]
    assert list_names(api, **whole) == ["all", "account_manager"]


def test_updated_since_finds_changed_rows_and_not_rows_rewritten_unchanged(api: Client) -> None:
    made = {name: api.create("/participants", {"first_name": name, "participant_number": "1"}) for name in "abc"}
    clock = api.post("/participants", {}).json()["created_at"]
    assert list_names(api, updated_since=clock, participant_number="1") == []
    assert api.put(f"/participants/{made['b']['id']}", {"last_name": "Lee"}).status_code == 200
    assert api.put(f"/participants/{made['c']['id']}", made["c"]).status_code == 200
    assert list_names(api, updated_since=clock, participant_number="1") == ["b"]


def test_updated_since_includes_new_participants(api: Client) -> None:
    made = api.post("/participants", {"first_name": "a"}).json()
    assert list_names(api, updated_since=made["created_at"]) == ["a"]


def test_updated_since_accepts_any_time_zone_but_requires_one(api: Client) -> None:
    api.create("/participants", {"first_name": "a"})
    moment = datetime.fromisoformat(api.get("/participants").json()["data"][0]["created_at"]) - timedelta(seconds=5)
    eastern = moment.astimezone(timezone(timedelta(hours=10)))
    for text in (eastern.isoformat(), moment.isoformat(), moment.isoformat().replace("+00:00", "Z")):
        assert list_names(api, updated_since=text) == ["a"]
    unescaped = api.request("GET", f"/participants?updated_since={eastern.isoformat()}")
    assert [each["first_name"] for each in unescaped.json()["data"]] == ["a"]
    assert list_names(api, updated_since="2999-01-01T00:00:00.000001-03:30") == []
    for wrong in ("2026-01-01", "2026-01-01T00:00:00", "yesterday", "0", "2026-02-30T00:00:00Z"):
        [(field, message)] = field_errors(api, updated_since=wrong)
        assert (field, message) == ("updated_since", "must be a datetime with a time zone, YYYY-MM-DDTHH:MM:SSZ")


def test_unknown_filters_are_rejected(api: Client) -> None:
    for name in ("first_name", "Status", "account_manager_id", "since"):
        [(field, message)] = field_errors(api, **{name: "x"})
        assert field == name
        assert message.startswith(
            ("is unknown; expected one of limit, offset, after, updated_since", "is unknown; did you mean")
        )


def test_created_at_is_utc_to_the_microsecond(api: Client) -> None:
    made = api.post("/participants", {}).json()
    assert made["created_at"].endswith("Z")
    assert datetime.fromisoformat(made["created_at"]).utcoffset() == timedelta(0)
    changed = api.put(f"/participants/{made['id']}", {"city": "Perth"}).json()
    assert_changed(made, {"city": "Perth"}, changed)
