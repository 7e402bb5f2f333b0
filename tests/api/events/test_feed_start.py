"""Where the feed starts, and the types that it is limited to."""

import time
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from support.client import Client
from support.server import RunningServer, wait_until
from support.sweeps import sweep


def wait_for_feed(api: Client, count: int) -> list[dict[str, Any]]:
    """The events of the feed with that of the key, once there are as many."""
    return wait_until(lambda: len(found := api.get("/events", limit=1000).json()["data"]) == count and found)


def messages(response: Any) -> dict[str, str]:
    assert response.status_code == 400
    return {each["field"]: each["message"] for each in response.json()["errors"]}


def assert_expired(response: Any) -> None:
    assert (response.status_code, response.json()["error"]) == (400, "cursor_expired")
    assert "`since`" in response.json()["detail"]


def test_a_cursor_must_be_an_event_of_the_plan_manager(api: Client, other: Client) -> None:
    participant = api.create("/participants", {})["id"]
    own = wait_for_feed(api, 2)
    foreign = wait_until(lambda: other.get("/events").json()["data"])[0]["id"]
    assert api.get("/events", after=own[-1]["id"]).json()["data"] == []
    assert api.get("/events", after=own[-1]["id"].upper()).json()["data"] == []
    for cursor in (participant, foreign, uuid7(), UUID(int=2**128 - 1)):
        for filters in ({}, {"type": "participant.created"}, {"resource_id": participant}):
            assert_expired(api.get("/events", after=cursor, **filters))
    assert "an event" in messages(api.get("/events", after="later"))["after"]


def test_an_event_that_has_been_deleted_is_no_cursor(server: RunningServer, api: Client) -> None:
    api.create("/providers", {})
    first, _ = wait_for_feed(api, 2)
    server.execute_as_owner(
        "delete from event_order where plan_manager_id = $1 and event_id = $2", UUID(api.plan_manager_id),
        UUID(first["id"]),
    )  # fmt: skip
    assert_expired(api.get("/events", after=first["id"]))


def test_now_is_the_newest_event(api: Client) -> None:
    api.create("/providers", {})
    newest = wait_for_feed(api, 2)[-1]["id"]
    page = api.get("/events", after="now").json()
    assert page["data"] == []
    assert page["pagination"] == {
        "limit": 20, "offset": 0, "has_more": False, "total": None, "next_cursor": newest
    }  # fmt: skip
    created = api.create("/providers", {})["id"]
    [event] = wait_until(lambda: api.get("/events", after=newest).json()["data"])
    assert event["resource"]["id"] == created


def test_now_of_an_empty_feed_is_the_beginning(server: RunningServer, api: Client) -> None:
    wait_for_feed(api, 1)
    server.execute_as_owner("delete from event_order where plan_manager_id = $1", UUID(api.plan_manager_id))
    assert api.get("/events", after="now").json()["pagination"]["next_cursor"] == "0"


def keep_first_mark(server: RunningServer, api: Client) -> None:
    """If a minute ended while the events were made, there are two."""
    delete = """
        delete from event_marks mark using event_marks earlier
        where mark.plan_manager_id = $1 and earlier.plan_manager_id = $1 and earlier.position < mark.position
    """
    server.execute_as_owner(delete, UUID(api.plan_manager_id))


def test_since_starts_with_the_minute(server: RunningServer, api: Client) -> None:
    for _ in range(3):
        api.create("/providers", {})
    ids = [each["id"] for each in wait_for_feed(api, 4)]
    minute = datetime(2026, 5, 1, 10, 30, tzinfo=UTC)
    move = "update event_marks set minute = $2 where plan_manager_id = $1"
    keep_first_mark(server, api)
    server.execute_as_owner(move, UUID(api.plan_manager_id), minute)
    add = """
        insert into event_marks (plan_manager_id, minute, position)
        select $1, $2, max(position) - 1 from event_order where plan_manager_id = $1
    """
    server.execute_as_owner(add, UUID(api.plan_manager_id), minute + timedelta(minutes=5))

    def since(moment: datetime, **more: Any) -> list[str]:
        return [each["id"] for each in api.get("/events", since=moment.isoformat(), **more).json()["data"]]

    assert since(minute - timedelta(days=1)) == ids
    assert since(minute + timedelta(seconds=59)) == ids
    assert since(minute + timedelta(minutes=1)) == ids[2:]
    assert since(minute + timedelta(minutes=5, seconds=30)) == ids[2:]
    assert since(minute + timedelta(minutes=1), limit=1) == ids[2:3]
    assert since(minute + timedelta(minutes=6)) == []
    assert since(datetime(1, 1, 1, tzinfo=UTC)) == ids
    assert "after" in messages(api.get("/events", since=minute.isoformat(), after="0"))["since"]
    assert "time zone" in messages(api.get("/events", since="2026-01-01"))["since"]


def test_the_newest_events_come_first(api: Client, other: Client) -> None:
    participant = api.create("/participants", {})["id"]
    for _ in range(3):
        api.create("/providers", {})
    api.put(f"/participants/{participant}", {"last_name": "Ng"}).raise_for_status()
    newest_first = [each["id"] for each in wait_for_feed(api, 6)][::-1]
    for filters, expected in (
        ({}, newest_first),
        ({"type": "participant.*,provider.*"}, newest_first[:5]),
        ({"resource_id": participant}, [newest_first[0], newest_first[4]]),
        ({"resource_id": participant, "type": "participant.updated"}, newest_first[:1]),
    ):
        walked: list[str] = []
        cursor: dict[str, str] = {}
        while cursor or not walked:
            page = api.get("/events", sort="-sequence", limit=2, **filters, **cursor).json()
            walked += [each["id"] for each in page["data"]]
            after = page["pagination"]["next_cursor"]
            cursor = {"after": after} if after else {}
            assert page["pagination"] == {
                "limit": 2, "offset": 0, "has_more": after is not None, "total": None, "next_cursor": after
            }  # fmt: skip
            assert after in (None, page["data"][-1]["id"])
        assert walked == expected
    first = api.get("/events", sort="-sequence", after="0", limit=1).json()
    assert [each["id"] for each in first["data"]] == newest_first[:1]
    forward = api.get("/events", sort="sequence", limit=1).json()
    assert forward["pagination"]["next_cursor"] == newest_first[-1]
    assert api.get("/events", sort="-sequence", after=newest_first[-1]).json()["data"] == []
    foreign = wait_until(lambda: other.get("/events").json()["data"])[0]["id"]
    assert_expired(api.get("/events", sort="-sequence", after=foreign))
    assert "-sequence" in messages(api.get("/events", sort="-sequence", after="now"))["after"]
    assert "created_since" in messages(api.get("/events", sort="-sequence", since="2026-01-01T00:00:00Z"))["since"]
    assert api.get("/events", sort="created_at").status_code == 400


def test_events_of_a_time(server: RunningServer, api: Client) -> None:
    participant = api.create("/participants", {})["id"]
    for _ in range(3):
        api.create("/providers", {})
    events = wait_for_feed(api, 5)
    ids = [each["id"] for each in events]
    times = [each["created_at"] for each in events]

    def found(**query: Any) -> list[str]:
        forward = api.get("/events", **query).json()["data"]
        assert api.get("/events", sort="-sequence", **query).json()["data"] == forward[::-1]
        return [each["id"] for each in forward]

    assert found(created_since=times[2]) == ids[2:]
    assert found(created_until=times[2]) == ids[:2]
    assert found(created_since=times[1], created_until=times[3]) == ids[1:3]
    assert found(created_since=times[1], created_until=times[1]) == []
    assert found(created_since=times[1], type="provider.created") == ids[2:]
    assert found(created_until=times[3], type="provider.created") == ids[2:3]
    assert found(created_since=times[1], resource_id=participant) == ids[1:2]
    assert found(created_until=times[1], resource_id=participant) == []
    assert found(created_since="2099-01-01T00:00:00Z") == found(created_until="2001-01-01T00:00:00Z") == []
    assert found(created_since="0001-01-01T00:00:00Z", created_until="9999-12-31T23:59:59Z") == ids
    assert found(created_until="0001-01-01T00:00:00Z") == found(created_since="9999-12-31T23:59:59Z") == []
    page = api.get("/events", created_since=times[1], created_until=times[4], limit=2, after=ids[1]).json()
    assert ([each["id"] for each in page["data"]], page["pagination"]["has_more"]) == (ids[2:4], False)
    keep_first_mark(server, api)
    # However late an event got its position: the first mark after the time may be that of the event itself.
    server.execute_as_owner(
        "update event_marks set minute = date_trunc('minute', now()) + interval '3 days' where plan_manager_id = $1",
        UUID(api.plan_manager_id),
    )
    assert found(created_until=times[2]) == ids[:2]
    assert "time zone" in messages(api.get("/events", created_since="2026-01-01"))["created_since"]


def test_several_types_and_wildcards(api: Client) -> None:
    participant = api.create("/participants", {})["id"]
    api.create("/providers", {})
    api.put(f"/participants/{participant}", {"last_name": "Ng"}).raise_for_status()
    wait_for_feed(api, 4)

    def types(selected: str, **more: Any) -> list[str]:
        return [each["type"] for each in api.get("/events", type=selected, **more).json()["data"]]

    assert types("participant.*") == ["participant.created", "participant.updated"]
    assert types("participant.updated,provider.*") == ["provider.created", "participant.updated"]
    assert types("*") == ["api_key.created", "participant.created", "provider.created", "participant.updated"]
    assert types("*", limit=2) == ["api_key.created", "participant.created"]
    assert types("note_type.*") == []
    assert types("participant.*,provider.created", resource_id=participant) == [
        "participant.created", "participant.updated"
    ]  # fmt: skip


@sweep(
    "selected, message",
    [
        ("participants.updated", "did you mean participant.updated?"),
        ("participant.create", "did you mean participant.created?"),
        ("participant", "not an event type"),
        ("participant.created,", "not an event type"),
        ("Participant.created", "did you mean participant.created?"),
        ("x" * 255, "participant.created"),
    ],
)
def test_an_unknown_type_is_rejected(api: Client, selected: str, message: str) -> None:
    [said] = [text for field, text in messages(api.get("/events", type=selected)).items() if field.startswith("type[")]
    assert message in said


def test_an_unknown_type_of_an_endpoint_or_of_deliveries_is_rejected(api: Client) -> None:
    body = {"url": "https://example.com/hooks", "event_types": ["*", "participants.*", "participant.create"]}
    assert messages(api.post("/webhook-endpoints", body)) == {
        "event_types[1]": "'participants.*' is not an event type; did you mean participant.*?",
        "event_types[2]": "'participant.create' is not an event type; did you mean participant.created?",
    }
    body["event_types"] = ["participant.*", "api_key.expiring"]
    endpoint = api.create("/webhook-endpoints", body)["id"]
    update = api.put(f"/webhook-endpoints/{endpoint}", {"event_types": ["note_types.created"]})
    assert messages(update)["event_types[0]"].endswith("did you mean note_type.created?")
    deliveries = f"/webhook-endpoints/{endpoint}/deliveries"
    assert messages(api.get(deliveries, event_type="nosuch")) == {
        "event_type": "'nosuch' is not an event type: expected for example participant.created"
    }
    assert api.get(deliveries, event_type="participant.created").status_code == 200


def test_an_event_whose_server_was_interrupted_counts_from_its_time(
    api: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Events since a time are searched by their ids: none may be older than its event says."""

    def uuid7_before_a_pause() -> UUID:
        made = uuid7()
        time.sleep(0.01)
        return made

    monkeypatch.setattr("plankeeper.events.recorder.uuid7", uuid7_before_a_pause)
    api.create("/providers", {})
    event = wait_for_feed(api, 2)[-1]
    assert api.get("/events", created_since=event["created_at"]).json()["data"] == [event]
