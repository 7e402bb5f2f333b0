"""Events over HTTP: the event of each write, and the feed."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from plankeeper.access.accounts import sessions
from plankeeper.access.accounts.credentials import LoginError
from plankeeper.access.api_keys import service
from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.events import store
from plankeeper.webhooks.messages import build_body
from support.client import Client
from support.console import create_account
from support.resources import assert_changed
from support.server import RunningServer, wait_until

pytestmark = pytest.mark.usefixtures("frequent_sweeps")

Import = Callable[..., Any]
REQUEST_ID_HEADER = {"X-Request-Id": "the-write"}
SYSTEM_ACTOR = {"kind": "system", "id": None, "name": "plankeeper"}


def wait_for_events(api: Client, count: int, **filters: Any) -> list[dict[str, Any]]:
    """The events of a plan manager, once they are as many, without that of the making of its key."""
    all_events = wait_until(
        lambda: len(events_so_far := api.get("/events", limit=1000, **filters).json()["data"]) > count and events_so_far
    )
    first, *events = all_events
    assert first["type"] == "api_key.created"
    assert len(events) == count, [each["type"] for each in events]
    return events


def client_actor(api: Client) -> dict[str, Any]:
    """The actor of what the client writes."""
    key = api.get("/events", limit=1).json()["data"][0]["resource"]["id"]
    return {"kind": "api_key", "id": key, "name": "test"}


def write(api: Client, method: str, path: str, body: Any = None) -> Any:
    """The response to a write with its own request id."""
    more = {} if body is None else {"json": body}
    response = api.request(method, path, headers=REQUEST_ID_HEADER, **more)
    assert response.status_code in (200, 201), response.text
    return response.json()


def expected_event(
    api: Client, type_: str, ident: Any, data: Any, previous: Any, template: dict[str, Any]
) -> dict[str, Any]:
    """An event as it should be, with the id, the moment and the position of another."""
    kind = type_.partition(".")[0]
    team = {"participant_id": (data or previous)["participant_id"]} if kind == "team_member" else {}
    return {
        "id": template["id"], "type": type_, "created_at": template["created_at"], "actor": client_actor(api),
        "resource": {"kind": kind, "id": str(ident)} | team, "data": data, "previous": previous,
        "request_id": "the-write", "sequence": template["sequence"],
    }  # fmt: skip


def test_creating_a_key_is_the_first_event(api: Client) -> None:
    [made] = wait_until(lambda: api.get("/events").json()["data"])
    assert made == {
        "id": made["id"], "type": "api_key.created", "created_at": made["created_at"], "actor": SYSTEM_ACTOR,
        "resource": {"kind": "api_key", "id": made["data"]["id"]}, "previous": None, "request_id": None,
        "sequence": 1, "data": {
            "id": made["data"]["id"], "name": "test", "last_four": api.key[-4:],
            "scopes": ["claims", "payments", "read", "write"],
            "plan_managers": [api.plan_manager_id], "created_by": "plankeeper", "expires_at": None, "revoked_at": None,
            "created_by_account_id": None,
            "created_at": made["data"]["created_at"], "rate_limit": None, "original_id": made["data"]["id"],
            "last_used_at": None,
        },
    }  # fmt: skip
    assert api.key not in str(made)


RESOURCES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "participant": ("/participants", {"first_name": "Ann", "state": "nsw"}, {"last_name": "Lee", "state": None}),
    "provider": ("/providers", {"entity_name": "Care", "abn": "1"}, {"abn": None, "active": False}),
    "note_type": ("/note-types", {"note_type": "Visit"}, {"badge_color": "red"}),
}


@pytest.mark.parametrize("kind", RESOURCES)
def test_each_write_records_previous_and_new_data(api: Client, kind: str) -> None:
    path, body, change = RESOURCES[kind]
    made = write(api, "POST", path, body)
    one = f"{path}/{made['id']}"
    changed = write(api, "PUT", one, change)
    assert write(api, "DELETE", one) == {}
    created, updated, deleted = wait_for_events(api, 3)
    assert created == expected_event(api, f"{kind}.created", made["id"], made, None, created)
    before = {name: made[name] for name in change}
    assert updated == expected_event(api, f"{kind}.updated", made["id"], changed, before, updated)
    assert deleted == expected_event(api, f"{kind}.deleted", made["id"], None, changed, deleted)
    assert len({created["id"], updated["id"], deleted["id"]}) == 3


def test_each_write_of_a_member_records_previous_and_new_data(api: Client) -> None:
    team = f"/participants/{write(api, 'POST', '/participants', {})['id']}/team-members"
    made = write(api, "POST", team, {"email": "bo@example.com", "permissions": ["view_budget"]})
    changed = write(api, "PUT", f"{team}/{made['id']}", {"permissions": [], "contact_priority": 1})
    write(api, "DELETE", f"{team}/{made['id']}")
    _, created, updated, deleted = wait_for_events(api, 4)
    assert created == expected_event(api, "team_member.created", made["id"], made, None, created)
    before = {"permissions": made["permissions"], "contact_priority": None}
    assert updated == expected_event(api, "team_member.updated", made["id"], changed, before, updated)
    assert deleted == expected_event(api, "team_member.deleted", made["id"], None, changed, deleted)


def test_deleting_a_participant_records_an_event_for_each_member(api: Client) -> None:
    made = write(api, "POST", "/participants", {"first_name": "Ann"})
    path = f"/participants/{made['id']}"
    team = [write(api, "POST", f"{path}/team-members", {"first_name": name}) for name in ("Bo", "Cy")]
    write(api, "DELETE", path)
    events = wait_for_events(api, 6)[3:]
    by_id = {each["resource"]["id"]: each for each in events}
    assert by_id == {
        made["id"]: expected_event(api, "participant.deleted", made["id"], None, made, by_id[made["id"]]),
        **{
            each["id"]: expected_event(api, "team_member.deleted", each["id"], None, each, by_id[each["id"]])
            for each in team
        },
    }
    assert {each["request_id"] for each in events} == {"the-write"}


def test_unset_references_are_null_in_the_previous_data(api: Client, import_rows: Import) -> None:
    manager, reason = str(uuid7()), str(uuid7())
    import_rows(api, "account-managers", [{"id": manager, "first_name": "Max"}])
    import_rows(api, "exit-reasons", [{"id": reason, "name": "Moved"}])
    made = api.create("/participants", {})
    change = {"account_manager_id": manager, "exit_reason_category_id": reason}
    changed = write(api, "PUT", f"/participants/{made['id']}", change)
    updated = wait_for_events(api, 4)[3]
    before = {"account_manager": {"id": None, "name": None}, "exit_reason_category": None}
    assert updated == expected_event(api, "participant.updated", made["id"], changed, before, updated)


def test_an_update_that_changes_nothing_records_no_event(api: Client) -> None:
    made = {kind: api.create(path, body) for kind, (path, body, _) in RESOURCES.items()}
    participant = f"/participants/{made['participant']['id']}"
    member = api.create(f"{participant}/team-members", {"email": "bo@example.com", "permissions": ["view_budget"]})
    for path, change in (
        (participant, made["participant"]), (participant, {}), (participant, {"state": "nsw", "status": "Active"}),
        (f"/providers/{made['provider']['id']}", made["provider"]),
        (f"/note-types/{made['note_type']['id']}", {"note_type": "Visit", "badge_color": None}),
        (f"{participant}/team-members/{member['id']}", {"permissions": ["view_budget", "view_budget"]}),
        (f"{participant}/team-members/{member['id']}", {"contact_priority": None, "id": member["id"]}),
    ):  # fmt: skip
        assert api.put(path, change).status_code == 200
    last = api.create("/note-types", {"note_type": "Last"})
    events = wait_for_events(api, 5)
    assert [each["type"] for each in events[:4]] == [
        "participant.created", "provider.created", "note_type.created", "team_member.created",
    ]  # fmt: skip
    assert events[4]["data"] == last


def test_errors_and_reads_record_no_event(api: Client) -> None:
    made = api.create("/participants", {"first_name": "Ann"})
    team = f"/participants/{made['id']}/team-members"
    holder = api.create(team, {"first_name": "Bo", "contact_priority": 1})
    rejected = [
        api.post("/participants", {"first_name": 5}), api.put(f"/participants/{made['id']}", {"email": "x"}),
        api.post(team, {"first_name": "Cy", "contact_priority": 1}), api.post(team, {}),
        api.delete(f"/participants/{uuid7()}"), api.put(f"{team}/{holder['id']}", {"permissions": ["view_budget"]}),
        api.put(f"/participants/{made['id']}", {"account_manager_id": str(uuid7())}),
        api.put(f"/participants/{made['id']}", {"exit_reason_category_id": str(uuid7())}),
    ]  # fmt: skip
    assert {each.status_code for each in rejected} == {400, 404, 409}
    assert api.get(team).status_code == api.get("/participants").status_code == 200
    assert api.post("/invoices/status", {"provider_email": "x", "invoice_number": "1"}).status_code == 404
    last = api.create("/note-types", {"note_type": "Last"})
    assert [each["data"] for each in wait_for_events(api, 3)[1:]] == [holder, last]


def test_an_event_can_be_read_by_its_id(api: Client) -> None:
    write(api, "POST", "/note-types", {"note_type": "Visit"})
    [made] = wait_for_events(api, 1)
    response = api.get(f"/events/{made['id'].upper()}")
    assert (response.status_code, response.json()) == (200, made)
    assert api.get(f"/events/{uuid7()}").status_code == 404


def test_an_event_has_the_request_id_of_its_response(api: Client) -> None:
    response = api.post("/note-types", {"note_type": "Visit"})
    [made] = wait_for_events(api, 1)
    assert made["request_id"] == response.headers["x-request-id"]


def test_the_feed_is_read_by_cursor_from_its_beginning(api: Client) -> None:
    names = [f"kind {n}" for n in range(5)]
    for name in names:
        api.create("/note-types", {"note_type": name})
    whole = wait_for_events(api, 5)
    walked: list[dict[str, Any]] = []
    after: dict[str, str] = {}
    while True:
        page = api.get("/events", limit=2, **after).json()
        walked += page["data"]
        more = len(walked) < 6
        following = walked[-1]["id"]  # also on the last page
        meta = {"limit": 2, "offset": 0, "has_more": more, "total": None, "next_cursor": following}
        assert page["pagination"] == meta
        if not more:
            break
        after = {"after": following}
    assert walked[1:] == whole
    assert [each["sequence"] for each in walked] == [1, 2, 3, 4, 5, 6]
    nothing = {"data": [], "pagination": meta | {"next_cursor": None}}
    assert api.get("/events", after=following, limit=2).json() == nothing
    assert api.get(f"/events/{walked[3]['id']}").json() == walked[3]
    assert [each["data"]["note_type"] for each in whole] == names
    assert api.get("/events", after="0", offset=0).json()["data"] == walked
    assert api.get("/events", after=walked[-1]["id"]).json()["data"] == []
    assert api.get("/events", after=walked[2]["id"].upper()).json()["data"] == walked[3:]


@pytest.mark.parametrize("query", ["offset=1", "offset=5&after=0"])
def test_the_feed_rejects_an_offset(api: Client, query: str) -> None:
    response = api.request("GET", f"/events?{query}")
    assert (response.status_code, response.json()["error"]) == (400, "invalid_request")
    assert [each["field"] for each in response.json()["errors"]] == ["offset"]


def test_the_filters_are_exact_and_combine_with_and(api: Client) -> None:
    first, second = (api.create("/providers", {"entity_name": name}) for name in "ab")
    for each in (first, second):
        api.put(f"/providers/{each['id']}", {"abn": "1"})
    events = wait_for_events(api, 4)
    assert api.get("/events", type="provider.updated").json()["data"] == events[2:]
    assert api.get("/events", resource_id=first["id"]).json()["data"] == [events[0], events[2]]
    both = api.get("/events", type="provider.updated", resource_id=second["id"]).json()
    assert both["data"] == [events[3]]
    page = api.get("/events", type="provider.updated", limit=1).json()
    assert page["pagination"]["next_cursor"] == events[2]["id"]
    assert api.get("/events", type="provider.updated", after=events[2]["id"]).json()["data"] == [events[3]]
    for nothing in ({"type": "provider.deleted"}, {"resource_id": "x"}):
        assert api.get("/events", **nothing).json()["data"] == []
    assert api.get("/events", type="").status_code == 400
    assert api.get("/events", kind="provider").status_code == 400


def test_key_events_are_recorded_for_each_of_its_plan_managers(
    server: RunningServer, api: Client, other: Client, new_key: Callable[..., str]
) -> None:
    own, theirs = UUID(api.plan_manager_id), UUID(other.plan_manager_id)
    new_key(own, theirs)
    made = wait_for_events(api, 1)[0]

    async def revoke() -> None:
        async with server.db.transaction() as tx:
            await service.revoke(WriteContext(tx, own, server.settings, SYSTEM), UUID(made["resource"]["id"]))

    server.run(revoke())
    for client in (api, other):
        created, revoked = wait_for_events(client, 2)
        assert [created["type"], revoked["type"]] == ["api_key.created", "api_key.revoked"]
        assert created["data"]["plan_managers"] == [client.plan_manager_id]
        assert revoked["previous"] == {"revoked_at": None}
        assert revoked["data"] == created["data"] | {"revoked_at": revoked["data"]["revoked_at"]}
        assert revoked["data"]["revoked_at"]


def test_an_import_records_one_system_event_per_row(api: Client, import_rows: Import) -> None:
    rows = [{"id": str(uuid7()), "first_name": name} for name in "ab"]
    import_rows(api, "participants", rows)
    import_rows(api, "participants", [rows[0], rows[1] | {"first_name": "c"}])
    first, second, changed = wait_for_events(api, 3)
    shown = api.get("/participants").json()["data"]
    for made, row in ((first, rows[0]), (second, rows[1])):
        assert made == {
            "id": made["id"], "type": "participant.created", "created_at": made["created_at"], "actor": SYSTEM_ACTOR,
            "resource": {"kind": "participant", "id": row["id"]}, "previous": None, "request_id": None,
            "sequence": made["sequence"], "data": next(each for each in shown if each["id"] == row["id"])
            | {"first_name": row["first_name"], "updated_at": made["data"]["updated_at"]},
        }  # fmt: skip
    assert (changed["type"], changed["resource"]["id"]) == ("participant.updated", rows[1]["id"])
    assert (changed["previous"], changed["data"]) == ({"first_name": "b"}, shown[1])


def test_view_sessions_record_start_and_end_events(api: Client, import_rows: Import) -> None:
    row = {"id": str(uuid7()), "invoice_id": str(uuid7()), "user_id": "u", "user_name": "U"}
    row |= {"session_started": "2026-01-01T00:00:00Z"}
    import_rows(api, "invoice-view-sessions", [row])
    import_rows(api, "invoice-view-sessions", [row | {"session_ended": "2026-01-01T01:00:00Z"}])
    started, ended = wait_for_events(api, 2)
    assert [started["type"], ended["type"]] == ["invoice_view_session.started", "invoice_view_session.ended"]
    assert ended["previous"] == {"session_ended": None}
    assert_changed(started["data"], {"session_ended": "2026-01-01T01:00:00Z"}, ended["data"])
    assert ended["data"] == api.get(f"/invoice-view-sessions/{row['id']}").json()


def test_an_invoice_that_becomes_a_duplicate_records_an_event(api: Client, import_rows: Import) -> None:
    provider = api.create("/providers", {})["id"]
    rows = [
        {
            "id": str(uuid7()),
            "invoice_number": "1",
            "pm_provider_id": provider,
            "created_at": f"2026-01-0{day}T00:00:00Z",
        }
        for day in (2, 1)
    ]
    for row in rows:
        import_rows(api, "invoices", [row])
    _, second, *both = wait_for_events(api, 4)
    assert (second["type"], second["data"]["is_duplicate"]) == ("invoice.created", False)
    reported = {each["resource"]["id"]: each for each in both}
    assert {ident: each["type"] for ident, each in reported.items()} == {
        rows[0]["id"]: "invoice.updated", rows[1]["id"]: "invoice.created",
    }  # fmt: skip
    became = reported[rows[0]["id"]]
    assert became["previous"] == {"is_duplicate": False, "state_management": second["data"]["state_management"]}
    assert became["data"] == api.get(f"/invoices/{rows[0]['id']}").json()


def test_the_feed_does_not_show_where_somebody_signed_in(server: RunningServer, api: Client) -> None:
    plan_manager_id = UUID(api.plan_manager_id)
    account = server.run(create_account(server, plan_manager_id, "viewer"))
    with suppress(LoginError):
        server.run(
            sessions.sign_in(server.db, server.settings, account.email, "wrong", "192.0.2.7", "A browser of 2026")
        )
    [event] = wait_until(lambda: api.get("/events", type="account.sign_in_failed").json()["data"])
    assert event["data"] == {"id": str(account.account_id), "email": account.email, "name": "Robin Hale"} | {
        "role": "viewer"
    }
    assert api.get(f"/events/{event['id']}").json() == event
    stored = server.run(store.get(server.db, plan_manager_id, UUID(event["id"])))
    assert stored
    assert b"192.0.2.7" in bytes(stored.data or b"")
    body = build_body(stored, plan_manager_id, "full")
    assert account.email.encode() in body
    assert b"192.0.2.7" not in body
    assert b"A browser of 2026" not in body


def test_a_person_on_two_teams_is_told_apart(api: Client) -> None:
    first, second = (api.create("/participants", {})["id"] for _ in range(2))
    for each in (first, second):
        api.create(f"/participants/{each}/team-members", {"email": "bo@example.com"})
    [member] = api.get(f"/participants/{first}/team-members").json()["data"]
    api.delete(f"/participants/{first}/team-members/{member['id']}")
    events = wait_for_events(api, 5)[2:]
    resource = {"kind": "team_member", "id": member["id"]}
    assert [(each["type"], each["resource"]) for each in events] == [
        ("team_member.created", resource | {"participant_id": first}),
        ("team_member.created", resource | {"participant_id": second}),
        ("team_member.deleted", resource | {"participant_id": first}),
    ]


def test_a_resource_id_is_found_in_either_case(api: Client) -> None:
    made = api.create("/participants", {})["id"]
    [event] = wait_for_events(api, 1)
    assert api.get("/events", resource_id=made.upper()).json()["data"] == [event]
