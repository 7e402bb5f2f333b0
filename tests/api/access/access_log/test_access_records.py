"""Access records of the API: single reads once per key and hour, pages of lists, and nothing else."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from plankeeper.access.access_log import store
from plankeeper.access.access_log.buffer import AccessRecordBuffer
from plankeeper.access.access_log.schemas import AccessRecord, AccessRecordFilter
from plankeeper.core.context import Access, Actor
from plankeeper.events.retention import AgeRetention
from support.client import Client
from support.importing import import_records
from support.server import RunningServer, wait_until

ReadRecords = Callable[..., list[AccessRecord]]

pytestmark = pytest.mark.usefixtures("soon_written")


@pytest.fixture
def records(server: RunningServer, api: Client) -> ReadRecords:
    """Waits for a number of records of the plan manager, and returns them, the oldest first."""

    def read(count: int, filters: AccessRecordFilter = AccessRecordFilter()) -> list[AccessRecord]:  # noqa: B008
        listed = lambda: server.run(  # noqa: E731
            store.list_newest(server.db, UUID(api.plan_manager_id), filters, 100)
        )
        wait_until(lambda: len(listed()) >= count)
        found = listed()
        assert len(found) == count, found
        return found[::-1]

    return read


@pytest.fixture
def invoice(server: RunningServer, api: Client) -> dict[str, Any]:
    row = {"id": str(uuid7()), "participant_id": api.create("/participants", {})["id"]}
    assert not server.run(import_records(server, UUID(api.plan_manager_id), "invoices", [row])).errors
    return row


def test_single_reads_are_recorded_once_for_each_record(
    api: Client, invoice: dict[str, Any], records: ReadRecords
) -> None:
    participant = invoice["participant_id"]
    member = api.create(f"/participants/{participant}/team-members", {"first_name": "Bo"})["id"]
    for path in (
        f"/participants/{participant}",
        f"/participants/{participant}",
        f"/participants/{participant}/team-members",
        f"/participants/{participant}/team-members/{member}",
        f"/invoices/{invoice['id']}",
        f"/invoices/{invoice['id']}",
    ):
        api.get(path).raise_for_status()
    found = records(2)
    assert {(each.action, each.resource_kind, str(each.resource_id)) for each in found} == {
        ("viewed", "participant", participant),
        ("viewed", "invoice", invoice["id"]),
    }
    assert {(each.actor.kind, each.actor.name) for each in found} == {("api_key", "test")}
    assert all(datetime.now(UTC) - each.accessed_at < timedelta(minutes=5) for each in found)
    assert all(each.request_id and each.query is None for each in found)


def test_a_page_of_a_list_is_one_record(api: Client, records: ReadRecords) -> None:
    ids = sorted(api.create("/participants", {"last_name": f"Ng {n}"})["id"] for n in range(3))
    api.get("/participants", limit=2, offset=0).raise_for_status()
    api.get("/participants", limit=2, after=ids[1]).raise_for_status()
    api.get("/participants", after=ids[2]).raise_for_status()  # empty
    first, second = records(2)
    assert (first.action, first.resource_id, first.query) == ("listed", None, "limit=2&offset=0")
    assert [str(first.first_id), str(first.last_id)] == ids[:2]
    assert [str(second.first_id), str(second.last_id)] == [ids[2], ids[2]]
    assert [each.id for each in records(1, AccessRecordFilter([UUID(ids[1])]))] == [first.id]
    assert [each.id for each in records(1, AccessRecordFilter([UUID(ids[2])]))] == [second.id]


def test_a_filtered_or_sorted_page_is_recorded_with_its_records(api: Client, records: ReadRecords) -> None:
    ids = sorted(api.create("/participants", {"last_name": name})["id"] for name in ("Zhou", "Ng", "Akech"))
    shown = [each["id"] for each in api.get("/participants", sort="last_name", limit=2).json()["data"]]
    api.get("/participants", id=f"{ids[0]},{ids[2]}").raise_for_status()
    first, second = records(2)
    assert [str(each) for each in first.resource_ids or ()] == shown
    assert [str(each) for each in second.resource_ids or ()] == [ids[0], ids[2]]
    assert (first.first_id, second.first_id) == (None, None)
    [hidden] = set(ids) - set(shown)
    of_hidden = [second.id] if hidden in (ids[0], ids[2]) else []
    assert [each.id for each in records(len(of_hidden), AccessRecordFilter([UUID(hidden)]))] == of_hidden


def test_a_webhook_endpoint_that_sends_whole_records_is_recorded(api: Client, records: ReadRecords) -> None:
    thin = api.create("/webhook-endpoints", {"url": "https://example.com/thin"})["id"]
    full = api.create("/webhook-endpoints", {"url": "https://example.com/full", "payload": "full"})["id"]
    for each in (thin, full):
        api.post(f"/webhook-endpoints/{each}/replay", {"since": "2026-01-02T03:04:05Z"}).raise_for_status()
    api.put(f"/webhook-endpoints/{thin}", {"payload": "full"}).raise_for_status()
    found = records(3)
    assert {(each.action, each.resource_kind, each.actor.name) for each in found} == {
        ("exported", "webhook_endpoint", "test")
    }
    assert [(str(each.resource_id), each.query) for each in found] == [
        (full, "cause=created"),
        (full, "cause=replayed&since=2026-01-02T03:04:05+00:00"),
        (thin, "cause=changed"),
    ]


def test_a_write_that_changes_nothing_is_recorded_as_a_view(
    api: Client, invoice: dict[str, Any], records: ReadRecords
) -> None:
    participant, other = invoice["participant_id"], api.create("/participants", {})["id"]
    api.put(f"/participants/{participant}", {}).raise_for_status()
    items = [{"id": other}, {"id": participant, "last_name": "Ng"}]
    api.post("/participants/bulk", {"items": items}).raise_for_status()
    found = records(2)
    assert {(each.action, str(each.resource_id)) for each in found} == {("viewed", participant), ("viewed", other)}


def test_what_discloses_nothing_is_not_recorded(api: Client, invoice: dict[str, Any], records: ReadRecords) -> None:
    participant = f"/participants/{invoice['participant_id']}"
    tag = api.get(participant).headers["etag"]
    assert api.get(f"/participants/{uuid7()}").status_code == 404
    assert api.request("HEAD", f"/invoices/{invoice['id']}").status_code == 200
    assert api.request("GET", participant, headers={"If-None-Match": tag}).status_code == 304
    api.get("/providers").raise_for_status()
    api.put(participant, {"last_name": "Ng"}).raise_for_status()
    assert [str(each.resource_id) for each in records(1)] == [invoice["participant_id"]]


async def test_two_workers_record_a_read_once_an_hour(
    server: RunningServer, api: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    moment = 1_800_000_000.0
    monkeypatch.setattr("plankeeper.access.access_log.buffer.time.time", lambda: moment)
    plan_manager_id, participant_id = UUID(api.plan_manager_id), uuid7()
    key = Actor("api_key", str(uuid7()), "Nightly")
    access = Access(plan_manager_id, key, "viewed", "participant", "r", participant_id)
    person = access._replace(actor=Actor("user", str(uuid7()), "Robin"))

    async def read_in_two_workers() -> list[AccessRecord]:
        for buffer in (AccessRecordBuffer(server.db), AccessRecordBuffer(server.db)):
            for each in (access, access, person):
                buffer.append(each)
            await buffer.flush()
        return await store.list_newest(server.db, plan_manager_id, AccessRecordFilter([participant_id]), 100)

    found = server.run(read_in_two_workers())
    assert sorted(each.actor.name or "" for each in found) == ["Nightly", "Robin", "Robin"]
    moment += 3600
    assert len(server.run(read_in_two_workers())) == 6


def test_records_wait_while_the_database_is_unavailable(
    server: RunningServer, api: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan_manager_id = UUID(api.plan_manager_id)
    buffer = AccessRecordBuffer(server.db)
    key = Actor("api_key", str(uuid7()), "Nightly")
    ids = [uuid7() for _ in range(3)]
    insert = store.insert

    async def fail(*_arguments: object) -> None:
        raise ConnectionError

    for each in ids:
        buffer.append(Access(plan_manager_id, key, "viewed", "participant", "r", each))
    monkeypatch.setattr(store, "insert", fail)
    server.run(buffer.flush())
    monkeypatch.setattr(store, "insert", insert)
    server.run(buffer.flush())
    found = server.run(store.list_newest(server.db, plan_manager_id, AccessRecordFilter(), 10))
    assert {each.resource_id for each in found} == set(ids)


def test_old_records_are_deleted(server: RunningServer, api: Client) -> None:
    plan_manager_id = UUID(api.plan_manager_id)
    statement = """
        insert into access_records
            (plan_manager_id, id, accessed_at, actor_kind, action, resource_kind, resource_id)
        values ($1, $2, now(), 'system', 'viewed', 'participant', $2)
    """
    old, new = UUID("01900000-0000-7000-8000-000000000001"), uuid7()
    for each in (old, new):
        server.run(server.db.execute(statement, plan_manager_id, each))
    retention = AgeRetention(730, store.purge, 5000)

    def is_deleted() -> bool:
        server.run(retention(server.db))
        left = server.run(store.list_newest(server.db, plan_manager_id, AccessRecordFilter(), 10))
        assert new in [each.id for each in left]
        return old not in [each.id for each in left]

    wait_until(is_deleted)


def test_a_replayed_response_is_recorded(api: Client, invoice: dict[str, Any], records: ReadRecords) -> None:
    participant, other = invoice["participant_id"], api.create("/participants", {})["id"]
    call = api.create("/note-types", {"note_type": "Call"})["id"]
    writes: list[tuple[str, dict[str, Any]]] = [
        ("/participants", {"first_name": "Ari"}),
        ("/participants/bulk", {"items": [{"first_name": "Bo"}, {"first_name": "Cy"}]}),
        (f"/participants/{participant}/team-members", {"first_name": "Di"}),
        ("/invoices", {"invoice_number": "R-1"}),
        (f"/invoices/{invoice['id']}/hold", {"reason": "Wait"}),
        ("/notes", {"resource": {"kind": "participant", "id": other}, "text": "Call", "note_type_id": call}),
    ]
    headers = {"Idempotency-Key": "once"}
    created = [api.post(path, body, headers=headers).raise_for_status().json() for path, body in writes]
    records(0)
    for path, body in writes:
        assert api.post(path, body, headers=headers).headers["idempotent-replayed"] == "true"
    expected = [
        ("participant", created[0]["id"]),
        *(("participant", each["id"]) for each in created[1]["data"]),
        *(("participant", each) for each in (participant, other)),
        ("invoice", created[3]["id"]),
        ("invoice", invoice["id"]),
    ]
    shown = [(each.resource_kind, str(each.resource_id)) for each in records(len(expected))]
    assert sorted(shown) == sorted(expected)
