"""Webhook endpoints over HTTP: their operations and events."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_network
from typing import Any

import pytest
from uuid_utils.compat import uuid7

from support.client import Client
from support.receiver import Receiver
from support.resources import assert_changed, times_of
from support.server import RunningServer
from support.sweeps import sweep
from support.webhooks import (
    NewEndpoint,
    emit_events,
    list_deliveries,
    poll_once,
    received_subject_ids,
    wait_for_deliveries,
    wait_for_events,
)

PATH = "/webhook-endpoints"
NEW_BODY = {"url": "https://example.com/hooks"}


@pytest.fixture(scope="module")
def limited_server(server: RunningServer) -> Iterator[RunningServer]:
    """A server that allows three endpoints."""
    loopback = (ip_network("127.0.0.0/8"),)
    running = RunningServer(server.dsn, max_webhook_endpoints=3, webhook_allowed_networks=loopback).start()
    yield running
    running.stop()


def client_of(server: RunningServer, api: Client) -> Client:
    return Client(server.url, api.key, api.plan_manager_id)


def test_a_create_returns_the_endpoint_with_its_secret(api: Client) -> None:
    response = api.post(PATH, NEW_BODY)
    made = response.json()
    assert response.status_code == 201
    assert made == {
        "id": made["id"], "url": "https://example.com/hooks", "description": None, "event_types": ["*"],
        "payload": "thin", "active": True, "disabled_reason": None, "secret": made["secret"],
        **times_of(made),
    }  # fmt: skip
    assert made["secret"].startswith("whsec_")
    full = {
        "url": "http://127.0.0.1:8080/x?y=1", "description": "d", "payload": "full",
        "event_types": ["participant.*", "invoice.updated"],
    }  # fmt: skip
    second = api.create(PATH, full)
    assert {name: second[name] for name in full} == full
    assert second["secret"] != made["secret"]


def test_the_secret_is_in_no_other_response_but_a_rotation(api: Client, new_endpoint: NewEndpoint) -> None:
    made = new_endpoint()
    one = f"{PATH}/{made['id']}"
    rotated = api.request("POST", f"{one}/rotate-secret").json()
    assert_changed(made, {"secret": rotated["secret"]}, rotated)
    assert rotated["secret"] != made["secret"]
    responses = [
        api.get(one), api.get(PATH), api.put(one, {"description": "x"}), api.request("POST", f"{one}/test"),
        api.post(f"{one}/replay", {"since": "2020-01-01T00:00:00Z"}), api.get(f"{one}/deliveries"), api.delete(one),
    ]  # fmt: skip
    assert [each.status_code for each in responses] == [200] * 7
    assert not [each.text for each in responses if "secret" in each.text or "whsec_" in each.text]


INVALID_BODIES: list[tuple[dict[str, Any], str]] = [
    ({"url": None}, "url"), ({"url": 5}, "url"), ({"url": ""}, "url"), ({"url": "example.com"}, "url"),
    ({"url": "https://e.com/" + "x" * 2000}, "url"), ({"url": "http://example.com"}, "url"),
    ({"url": "ftp://example.com"}, "url"), ({"url": "https://10.0.0.1/"}, "url"), ({"url": "https://a:b@e.com"}, "url"),
    ({"url": "https://e.com:22/"}, "url"), ({"description": 5}, "description"),
    ({"description": "x" * 10_001}, "description"), ({"event_types": []}, "event_types"),
    ({"event_types": None}, "event_types"), ({"event_types": "*"}, "event_types"),
    ({"event_types": ["*"] * 51}, "event_types"), ({"event_types": ["participant"]}, "event_types[0]"),
    ({"event_types": ["*", "A.b"]}, "event_types[1]"), ({"event_types": ["a.*b"]}, "event_types[0]"),
    ({"event_types": [5]}, "event_types[0]"), ({"payload": "fat"}, "payload"), ({"payload": None}, "payload"),
    ({"secret": "whsec_x"}, "secret"), ({"id": str(uuid7())}, "id"), ({"active": "yes"}, "active"),
]  # fmt: skip


@pytest.fixture
def made(api: Client) -> dict[str, Any]:
    """An endpoint."""
    return api.create(PATH, NEW_BODY)


@sweep("wrong, field", INVALID_BODIES)
def test_an_invalid_field_is_reported(api: Client, made: dict[str, Any], wrong: dict[str, Any], field: str) -> None:
    for response in (api.post(PATH, NEW_BODY | wrong), api.put(f"{PATH}/{made['id']}", wrong)):
        assert (response.status_code, response.json()["error"]) == (400, "invalid_request")
        assert [each["field"] for each in response.json()["errors"]] == [field]
    assert api.get(PATH).json()["data"] == [{name: made[name] for name in made if name != "secret"}]


def test_all_errors_of_an_endpoint_are_reported_at_once(api: Client) -> None:
    body = {"url": "http://example.com", "event_types": ["*", "participant.nosuch"]}
    path = f"{PATH}/{api.create(PATH, NEW_BODY)['id']}"
    for response in (api.post(PATH, body), api.put(path, body), api.put(f"{PATH}/{uuid7()}", body)):
        assert [each["field"] for each in response.json()["errors"]] == ["url", "event_types[1]"]


def test_a_create_requires_a_url(api: Client) -> None:
    response = api.post(PATH, {})
    assert (response.status_code, [each["field"] for each in response.json()["errors"]]) == (400, ["url"])


def test_an_endpoint_can_be_created_paused(api: Client) -> None:
    made = api.create(PATH, NEW_BODY | {"active": False})
    assert not made["active"]
    api.create("/participants", {})
    assert api.put(f"{PATH}/{made['id']}", {"active": True}).json()["active"]
    assert api.get(f"{PATH}/{made['id']}/deliveries").json()["data"] == []


def test_list_get_update_and_delete(api: Client) -> None:
    made = [api.create(PATH, NEW_BODY | {"description": f"{n}"}) for n in range(3)]
    shown = [{name: value for name, value in each.items() if name != "secret"} for each in made]
    assert api.get(PATH).json() == {
        "data": shown,
        "pagination": {"limit": 20, "offset": 0, "has_more": False, "total": 3, "next_cursor": None},
    }
    page = api.get(PATH, limit=2, after=shown[0]["id"]).json()
    assert (page["data"], page["pagination"]["has_more"]) == (shown[1:], False)
    one = f"{PATH}/{shown[1]['id']}"
    assert api.get(one).json() == shown[1]
    changed = api.put(one, {"payload": "full"}).json()
    assert_changed(shown[1], {"payload": "full"}, changed)
    every = {"url": "https://e.org", "description": None, "event_types": ["note_type.created"], "active": False}
    again = api.put(one, every).json()
    assert_changed(changed, every, again)
    assert api.put(one, {}).json() == api.get(one).json() == again
    assert (api.delete(one).status_code, api.get(one).status_code, api.delete(one).status_code) == (200, 404, 404)
    assert api.get(PATH).json()["data"] == [shown[0], shown[2]]


def test_the_number_of_endpoints_is_limited(limited_server: RunningServer, api: Client) -> None:
    client = client_of(limited_server, api)
    with client.http:
        made = [client.create(PATH, NEW_BODY) for _ in range(3)]
        rejected = client.post(PATH, NEW_BODY)
        assert (rejected.status_code, rejected.json()["error"]) == (409, "too_many_webhook_endpoints")
        # One that is paused counts; one that is deleted does not.
        client.put(f"{PATH}/{made[0]['id']}", {"active": False})
        assert client.post(PATH, NEW_BODY).status_code == 409
        client.delete(f"{PATH}/{made[0]['id']}")
        assert client.post(PATH, NEW_BODY).status_code == 201


def test_concurrent_creates_do_not_exceed_the_limit(limited_server: RunningServer, api: Client) -> None:
    def create(_: int) -> int:
        client = client_of(limited_server, api)
        with client.http:
            return client.post(PATH, NEW_BODY).status_code

    with ThreadPoolExecutor(30) as pool:
        statuses = list(pool.map(create, range(30)))
    assert api.get(PATH).json()["pagination"]["total"] == 3
    assert statuses.count(201) == 3
    assert set(statuses) <= {201, 409, 503}


def test_every_write_records_an_event_without_the_secret(
    server: RunningServer, api: Client, new_endpoint: NewEndpoint
) -> None:
    made = new_endpoint()
    one = f"{PATH}/{made['id']}"
    shown = api.get(one).json()
    changed = api.put(one, {"description": "x"}).json()
    api.put(one, {"description": "x"})  # changes nothing
    rotated = api.request("POST", f"{one}/rotate-secret").json()
    tested = api.request("POST", f"{one}/test").json()
    api.post(f"{one}/replay", {"since": "2020-01-01T00:00:00Z"})
    [delivery] = wait_for_deliveries(api, made, 1)
    poll_once(server)
    retried = api.request("POST", f"/webhook-deliveries/{delivery['id']}/retry").json()
    api.delete(one)
    [deleted] = wait_for_events(api, "webhook_endpoint.deleted")
    reported = api.get("/events", limit=1000).json()["data"]
    rotation, test, replay = (each["data"] for each in reported[3:6])
    for before, after in ((changed, rotation), (test, replay)):
        assert_changed(before, {}, after)
    assert [(each["type"], each["data"], each["previous"]) for each in reported[1:]] == [
        ("webhook_endpoint.created", shown, None),
        ("webhook_endpoint.updated", changed, {"description": None}),
        ("webhook_endpoint.secret_rotated", rotation, None),
        ("webhook_endpoint.tested", rotation, None),
        ("webhook_endpoint.replayed", replay, None),
        ("webhook_delivery.retried", retried, None),
        ("webhook_endpoint.deleted", None, replay),
    ]
    assert reported[4]["id"] == tested["event_id"]
    assert {each["resource"]["id"] for each in reported[1:]} == {made["id"], delivery["id"]}
    assert {each["actor"]["kind"] for each in reported[1:]} == {"api_key"}
    assert reported[-1] == deleted
    assert "whsec_" not in str(reported)
    assert made["secret"] not in str(reported)
    assert rotated["secret"] not in str(reported)


def test_events_go_only_to_endpoints_of_their_plan_manager(
    server: RunningServer, api: Client, other: Client, new_endpoint: NewEndpoint, receiver: Receiver
) -> None:
    made = new_endpoint()
    emit_events(server, other)
    [own] = emit_events(server, api)
    wait_for_deliveries(api, made, 1)
    poll_once(server)
    assert received_subject_ids(receiver) == [own]


def test_events_during_a_pause_are_sent_only_by_a_replay(
    server: RunningServer, api: Client, new_endpoint: NewEndpoint, receiver: Receiver
) -> None:
    made = new_endpoint()
    one = f"{PATH}/{made['id']}"
    [waiting] = emit_events(server, api)
    wait_for_deliveries(api, made, 1)
    assert api.put(one, {"active": False}).json()["active"] is False
    [cancelled] = list_deliveries(api, made)
    assert (cancelled["status"], cancelled["next_attempt_at"], cancelled["attempts"]) == ("cancelled", None, [])
    [paused] = emit_events(server, api)
    wait_for_events(api, "note_type.created", 2)
    shown = {name: made[name] for name in made if name != "secret"}
    assert_changed(shown, {}, api.put(one, {"active": True}).json())
    [later] = emit_events(server, api)
    wait_for_deliveries(api, made, 2)
    assert poll_once(server) == 1
    assert received_subject_ids(receiver) == [later]
    assert api.post(f"{one}/replay", {"since": made["created_at"]}).json() == {"events": 3}
    wait_for_deliveries(api, made, 5)
    assert poll_once(server) == 3
    assert sorted(received_subject_ids(receiver)) == sorted([later, waiting, paused, later])


def test_a_disabled_endpoint_is_reactivated_with_active(
    server: RunningServer, api: Client, new_endpoint: NewEndpoint
) -> None:
    made = new_endpoint()
    one = f"{PATH}/{made['id']}"
    statement = "update webhook_endpoints set active = false, disabled_reason = 'why', failing_since = now()"
    server.run(server.db.execute(statement))
    assert api.get(one).json()["disabled_reason"] == "why"
    assert api.put(one, {"description": "x"}).json()["disabled_reason"] == "why"
    again = api.put(one, {"active": True}).json()
    assert (again["active"], again["disabled_reason"]) == (True, None)
    failing = server.run(server.db.one(bool, "select failing_since is not null from webhook_endpoints"))
    assert failing is False


def test_an_endpoint_supports_if_match(api: Client) -> None:
    one = f"{PATH}/{api.create(PATH, NEW_BODY)['id']}"
    old = api.get(one).headers["etag"]
    assert api.request("GET", one, headers={"If-None-Match": old}).status_code == 304
    assert api.put(one, {"description": "x"}, headers={"If-Match": old}).status_code == 200
    for method, more in (("PUT", {"json": {"description": "y"}}), ("DELETE", {})):
        rejected = api.request(method, one, headers={"If-Match": old}, **more)
        assert (rejected.status_code, rejected.json()["error"]) == (412, "precondition_failed")
    assert api.get(one).json()["description"] == "x"
    assert api.request("DELETE", one, headers={"If-Match": api.get(one).headers["etag"]}).status_code == 200


def test_a_repeated_create_returns_the_same_secret(api: Client) -> None:
    first, again = (api.post(PATH, NEW_BODY, headers={"Idempotency-Key": "one"}) for _ in range(2))
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert again.headers["idempotent-replayed"] == "true"
    assert api.get(PATH).json()["pagination"]["total"] == 1
