"""The server's clock is set back by an hour while it serves: ids, lists, cursors and the feed are still right.

The clock is the server's own, as its code sees it: what gives the time and what makes ids of it. PostgreSQL's goes on.
"""

import sys
from collections.abc import Iterator
from datetime import datetime, timedelta, tzinfo
from typing import Any
from uuid import UUID, uuid4

import pytest
from uuid_utils.compat import uuid7

from support.client import Client
from support.server import wait_until

HOUR = timedelta(hours=1)


class _EarlierMeta(type):
    """Still the type of every moment."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, datetime)


class Earlier(datetime, metaclass=_EarlierMeta):
    """The time an hour ago."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        return datetime.now(tz) - HOUR


def earlier_uuid7() -> UUID:
    # An id begins with its milliseconds, in 48 of 128 bits.
    return UUID(int=uuid7().int - (int(HOUR.total_seconds() * 1000) << 80))


@pytest.fixture
def set_clock_back(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets the clock back when it is called."""

    def work() -> None:
        for name, module in list(sys.modules.items()):
            if name.startswith("plankeeper.") and getattr(module, "uuid7", None) is uuid7:
                monkeypatch.setattr(module, "uuid7", earlier_uuid7)
            if name.startswith("plankeeper.") and getattr(module, "datetime", None) is datetime:
                monkeypatch.setattr(module, "datetime", Earlier)

    return work


def list_ids(client: Client, path: str, limit: int, after: str = "0") -> Iterator[str]:
    at: str | None = after
    while at:
        page = client.get(path, limit=limit, after=at).json()
        yield from (each["id"] for each in page["data"])
        at = page["pagination"]["next_cursor"]


def create_participants(client: Client, count: int) -> list[str]:
    return [client.create("/participants", {"first_name": f"Person {number}"})["id"] for number in range(count)]


def read_feed(client: Client, after: str = "0", limit: int = 3) -> list[tuple[str, str]]:
    """The feed of participants from a position on: event and participant."""
    events: list[tuple[str, str]] = []
    for event in list_ids(client, "/events", limit, after):
        event_body = client.get(f"/events/{event}").json()
        if event_body["resource"]["kind"] == "participant":
            events.append((event, event_body["resource"]["id"]))
    return events


def test_ids_lists_and_cursors_are_correct_after_the_clock_is_set_back(api: Client, set_clock_back: Any) -> None:
    before = create_participants(api, 7)
    set_clock_back()
    after = create_participants(api, 7)
    assert max(after) < min(before)  # the clock was really set back
    made = set(before + after)
    assert len(made) == 14
    by_offset = [
        each["id"] for start in (0, 5, 10) for each in api.get("/participants", limit=5, offset=start).json()["data"]
    ]
    assert (sorted(by_offset), len(by_offset)) == (sorted(made), 14)
    by_cursor = list(list_ids(api, "/participants", 3))
    assert by_cursor == sorted(made)
    # A walk that had begun meets each that was there when it began, and none twice.
    begun = list(list_ids(api, "/participants", 2, after=before[2]))
    assert begun == sorted(before[3:])


def test_the_feed_stays_in_commit_order_after_the_clock_is_set_back(api: Client, set_clock_back: Any) -> None:
    before = create_participants(api, 4)
    wait_until(lambda: len(read_feed(api)) == 4)
    seen = read_feed(api)
    set_clock_back()
    after = create_participants(api, 4)
    wait_until(lambda: len(read_feed(api)) == 8)
    # A client that follows from its last event gets the later ones, although their ids are lower.
    more = read_feed(api, after=seen[-1][0])
    assert max(event for event, _ in more) < min(event for event, _ in seen)
    assert [participant for _, participant in seen + more] == before + after
    assert read_feed(api) == seen + more
    updated = api.put(f"/participants/{before[0]}", {"first_name": "Changed"})
    assert updated.status_code == 200
    wait_until(lambda: len(read_feed(api)) == 9)
    assert [participant for _, participant in read_feed(api, after=more[-1][0])] == [before[0]]


def test_keys_and_stored_responses_are_correct_after_the_clock_is_set_back(
    api: Client, new_client: Any, set_clock_back: Any
) -> None:
    again = {"Idempotency-Key": str(uuid4())}
    first = api.post("/participants", {"first_name": "Once"}, headers=again)
    set_clock_back()
    second = api.post("/participants", {"first_name": "Once"}, headers=again)
    assert (second.json(), second.headers["idempotent-replayed"]) == (first.json(), "true")
    # A key that is made now begins an hour ago, and is taken.
    fresh = new_client(UUID(api.plan_manager_id), lasts=timedelta(minutes=5))
    assert fresh.get("/participants").json()["pagination"]["total"] == 1
