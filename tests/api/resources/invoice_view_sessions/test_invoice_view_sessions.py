"""Invoice view sessions over HTTP: list and get, as they were recorded."""

from collections.abc import Callable
from typing import Any

import pytest
from uuid_utils.compat import uuid7

from support.client import Client
from support.resources import times_of, without_updated_at

Put = Callable[..., dict[str, Any]]


@pytest.fixture
def import_session(api: Client, import_rows: Callable[..., Any]) -> Put:
    """Import one session, and return the expected resource of the API."""

    def import_one(**values: Any) -> dict[str, Any]:
        row = {
            "id": str(uuid7()), "invoice_id": str(uuid7()), "user_id": "someone", "user_name": "Ann Lee",
            "session_started": "2026-03-01T00:00:00Z",
        } | values  # fmt: skip
        assert not import_rows(api, "invoice-view-sessions", [row]).errors
        unset = dict.fromkeys(
            ("session_ended", "duration_seconds", "active_duration_seconds", "engaged_duration_seconds", "idle_count")
        )
        started = {"last_heartbeat": row["session_started"], "created_at": row["session_started"]}
        return unset | started | row

    return import_one


def list_ids(api: Client, **filters: Any) -> list[str]:
    """The ids that a filter finds, in both modes, with the total that it states."""
    page = api.get("/invoice-view-sessions", **filters)
    assert page.status_code == 200, page.text
    assert api.get("/invoice-view-sessions", **filters, after="0").json()["data"] == page.json()["data"]
    ids = [each["id"] for each in page.json()["data"]]
    assert page.json()["pagination"]["total"] == len(ids)
    return ids


def test_an_open_session_is_listed_and_can_be_read(api: Client, import_session: Put) -> None:
    session = import_session()
    response = api.get(f"/invoice-view-sessions/{session['id']}")
    session |= times_of(response.json())
    assert (response.status_code, response.json()) == (200, session)
    assert list(response.json()) == [
        "id", "invoice_id", "user_id", "user_name", "session_started", "session_ended", "last_heartbeat",
        "duration_seconds", "created_at", "active_duration_seconds", "engaged_duration_seconds", "idle_count",
        "updated_at",
    ]  # fmt: skip
    meta = {"limit": 20, "offset": 0, "has_more": False, "total": 1, "next_cursor": None}
    assert api.get("/invoice-view-sessions").json() == {"data": [session], "pagination": meta}
    assert api.get(f"/invoice-view-sessions/{session['id'].upper()}").json() == session


def test_an_ended_session_has_durations_and_microsecond_timestamps(api: Client, import_session: Put) -> None:
    session = import_session(
        session_ended="2026-03-01T00:10:00.000001Z", last_heartbeat="2026-03-01T00:09:59.5Z",
        created_at="2026-02-28T23:59:59Z", duration_seconds=600, active_duration_seconds=0,
        engaged_duration_seconds=2**40, idle_count=3,
    )  # fmt: skip
    shown = session | {"last_heartbeat": "2026-03-01T00:09:59.500000Z"}
    assert without_updated_at(api.get(f"/invoice-view-sessions/{session['id']}").json()) == shown


def test_timestamps_are_returned_in_utc(api: Client, import_session: Put) -> None:
    session = import_session(session_started="2026-03-01T10:00:00+10:00")
    shown = api.get(f"/invoice-view-sessions/{session['id']}").json()
    assert shown["session_started"] == shown["created_at"] == "2026-03-01T00:00:00Z"


def test_the_user_is_as_recorded_and_the_invoice_may_be_missing(api: Client, import_session: Put) -> None:
    session = import_session(user_id="Émile / 7", user_name="")
    assert without_updated_at(api.get(f"/invoice-view-sessions/{session['id']}").json()) == session


def test_the_filters_are_exact_and_combine_with_and(api: Client, import_session: Put) -> None:
    first, second = str(uuid7()), str(uuid7())
    ids = [
        import_session(invoice_id=invoice, user_id=user)["id"]
        for invoice, user in ((first, "ann"), (first, "bo"), (second, "ann"), (second, "Ann"))
    ]
    assert list_ids(api) == ids
    assert list_ids(api, invoice_id=first.upper()) == ids[:2]
    assert list_ids(api, user_id="ann") == [ids[0], ids[2]]
    assert list_ids(api, invoice_id=second, user_id="ann") == [ids[2]]
    assert list_ids(api, user_id="%") == list_ids(api, invoice_id=str(uuid7())) == []


def test_an_invalid_filter_is_reported(api: Client) -> None:
    for name, value, message in (
        ("invoice_id", "abc", "must be a UUID with hyphens"),
        ("invoice_id", uuid7().hex, "must be a UUID with hyphens"),
        ("invoice_id", "", "must not be empty"),
        ("user_id", "", "must not be empty"),
        ("user_id", "x" * 256, "must be at most 255 characters long"),
    ):
        response = api.get("/invoice-view-sessions", **{name: value})
        assert response.status_code == 400
        assert [(each["field"], each["message"]) for each in response.json()["errors"]] == [(name, message)]
    unknown = api.get("/invoice-view-sessions", user_name="Ann")
    assert [each["field"] for each in unknown.json()["errors"]] == ["user_name"]


def test_the_list_is_paginated_by_id(api: Client, import_session: Put) -> None:
    ids = [import_session()["id"] for _ in range(3)]
    first = api.get("/invoice-view-sessions", limit=2, after="0").json()
    meta = {"limit": 2, "offset": 0, "has_more": True, "total": None, "next_cursor": ids[1]}
    assert ([each["id"] for each in first["data"]], first["pagination"]) == (ids[:2], meta)
    rest = api.get("/invoice-view-sessions", limit=2, after=ids[1]).json()
    assert [each["id"] for each in rest["data"]] == ids[2:]
    assert rest["pagination"] == meta | {"has_more": False, "next_cursor": None}


def test_sessions_cannot_be_written_over_http(api: Client, import_session: Put) -> None:
    session = import_session()
    one = f"/invoice-view-sessions/{session['id']}"
    for method, path in (("POST", "/invoice-view-sessions"), ("PUT", one), ("DELETE", one)):
        response = api.request(method, path)
        assert (response.status_code, response.headers["allow"]) == (405, "GET, HEAD, OPTIONS")
    assert without_updated_at(api.get(one).json()) == session
