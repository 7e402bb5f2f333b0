"""Pagination: by offset with a total, by cursor without, and invalid parameters of both."""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from plankeeper.core.lists import ListQuery
from plankeeper.http.routing import PREFIX
from plankeeper.server.app import operations
from support.claims import Office
from support.client import Client
from support.factories import create_client
from support.fees import take_fee
from support.importing import import_records
from support.payments import PayingOffice
from support.server import RunningServer
from support.sweeps import sweep

LISTS = [each.path.removeprefix(PREFIX) for each in operations() if each.query and issubclass(each.query, ListQuery)]
UUID_LISTS = [
    path for path in LISTS if path not in ("/note-types", "/error-catalogue", "/support-items", "/team-members")
]
CURSOR_LISTS = {"/events", "/webhook-endpoints/{webhook_endpoint_id}/deliveries"}  # without offsets and totals
LISTS_WITH_TOTAL = [path for path in LISTS if path not in CURSOR_LISTS]
MAX_OFFSET = 2**63 - 1


@pytest.fixture(scope="module")
def reader(server: RunningServer) -> Iterator[Client]:
    """A client for tests that only read."""
    client = server.run(create_client(server))
    yield client
    client.http.close()


@pytest.fixture(scope="module")
def path_of(server: RunningServer, reader: Client) -> Callable[[str], str]:
    """The path of a list of the reader, with a resource of its own where it belongs to one."""
    offices = cache(lambda kind: kind(server, reader))

    @cache
    def list_path(path: str) -> str:  # noqa: PLR0911 - one for each kind of owner
        if "{participant_id}" in path:
            return path.format(participant_id=reader.create("/participants", {})["id"])
        if "{webhook_endpoint_id}" in path:
            endpoint = reader.create(
                "/webhook-endpoints", {"url": "https://example.com", "event_types": ["exit_reason.created"]}
            )
            return path.format(webhook_endpoint_id=endpoint["id"])
        if "{claim_batch_id}" in path:
            office = offices(Office)
            return path.format(claim_batch_id=office.batch(office.invoice(str(uuid7())))["id"])
        if "{statement_run_id}" in path:
            return path.format(statement_run_id=reader.create("/statement-runs", {"month": "2026-03"})["id"])
        if "{fee_taking_id}" in path:
            return path.format(fee_taking_id=take_fee(server, reader))
        if "{payment_run_id}" in path:
            office = offices(PayingOffice)
            return path.format(payment_run_id=office.run(office.invoice("10.00"))["id"])
        if "{invoice_id}" in path:
            invoice = str(uuid7())
            report = server.run(import_records(server, UUID(reader.plan_manager_id), "invoices", [{"id": invoice}]))
            assert not report.errors
            return path.format(invoice_id=invoice)
        return path

    return list_path


def query_errors(api: Client, path: str, query: str) -> list[tuple[str, str]]:
    """The fields that an error names, with their messages."""
    response = api.request("GET", f"{path}?{query}")
    assert (response.status_code, response.json()["error"]) == (400, "invalid_request"), (query, response.text)
    return [(each["field"], each["message"]) for each in response.json()["errors"]]


def cursor_pages(api: Client, path: str, limit: int, after: str | None = "0") -> Iterator[dict[str, Any]]:
    """The pages of a cursor walk."""
    while after is not None:
        page = api.get(path, limit=limit, after=after).json()
        yield page
        after = page["pagination"]["next_cursor"]


def numbered_names(count: int) -> list[str]:
    return [f"number {n}" for n in range(count)]


def test_the_lists_are_found() -> None:
    assert sorted(LISTS) == sorted(
        [
            "/participants", "/participants/{participant_id}/plans", "/participants/{participant_id}/statements",
            "/participants/{participant_id}/team-members", "/team-members", "/account-managers",
            "/exit-reasons", "/note-types", "/notes",
            "/providers", "/invoices", "/invoice-view-sessions", "/events", "/support-items",
            "/error-catalogue", "/webhook-endpoints",
            "/claim-batches", "/claim-batches/{claim_batch_id}/lines", "/claim-batches/{claim_batch_id}/receipts",
            "/statement-runs", "/statement-runs/{statement_run_id}/items",
            "/payment-runs", "/payment-runs/{payment_run_id}/payments",
            "/fees", "/fee-takings", "/fee-takings/{fee_taking_id}/lines",
            "/invoices/{invoice_id}/adjustments", "/recoveries",
            "/webhook-endpoints/{webhook_endpoint_id}/deliveries",
        ]
    )  # fmt: skip


INVALID_LIMITS = {
    "0": "must be at least 1",
    "-1": "must be at least 1",
    "1001": "must be at most 1000",
    "1" + "0" * 30: "must be at most 1000",
    "abc": "must be a whole number",
    "1.0": "must be a whole number",
    "%2B5": "must be a whole number",
    "0x10": "must be a whole number",
    "１": "must be a whole number",
    "9" * 50: "must be a whole number",
    "": "must not be empty",
    "%00": "must be a whole number",
}


@sweep("path", LISTS)
def test_a_limit_is_a_number_from_1_to_1000(reader: Client, path_of: Callable[[str], str], path: str) -> None:
    place = path_of(path)
    # All lists parse it alike: one is asked with each of them, the others with one for each bound and for the type.
    for limit in INVALID_LIMITS if path == LISTS[0] else ("0", "1001", "abc"):
        assert query_errors(reader, place, f"limit={limit}") == [("limit", INVALID_LIMITS[limit])]
    for limit in (1, 1000):
        assert reader.get(place, limit=limit).json()["pagination"]["limit"] == limit


@sweep("path", LISTS)
def test_an_offset_is_a_number_from_0_that_fits(reader: Client, path_of: Callable[[str], str], path: str) -> None:
    place, too_large = path_of(path), f"must be at most {MAX_OFFSET}"
    if path in CURSOR_LISTS:
        too_large = "must be 0: this list supports cursors only"
        assert query_errors(reader, place, "offset=1") == [("offset", too_large)]
        assert reader.get(place, offset=0).json()["pagination"]["total"] is None
    assert query_errors(reader, place, "offset=-1") == [("offset", "must be at least 0")]
    assert query_errors(reader, place, f"offset=1{'0' * 30}") == [("offset", too_large)]
    assert query_errors(reader, place, f"offset={MAX_OFFSET + 1}") == [("offset", too_large)]
    assert query_errors(reader, place, "offset=abc") == [("offset", "must be a whole number")]
    assert query_errors(reader, place, "offset=") == [("offset", "must not be empty")]


@sweep("path", LISTS_WITH_TOTAL)
def test_a_huge_valid_offset_returns_an_empty_page(reader: Client, path_of: Callable[[str], str], path: str) -> None:
    for limit in (20, 1000):
        page = reader.get(path_of(path), offset=MAX_OFFSET, limit=limit).json()
        assert page["data"] == []
        meta = {"limit": limit, "offset": MAX_OFFSET, "has_more": False, "next_cursor": None}
        assert page["pagination"] == meta | {"total": page["pagination"]["total"]}


CURSOR_MESSAGES = {
    "/events": "must be 0, now or the id of an event",
    "/webhook-endpoints/{webhook_endpoint_id}/deliveries": "must be 0 or a UUID with hyphens",
    "/recoveries": "must be 0 or a UUID with hyphens",
}


@sweep("path", UUID_LISTS)
def test_a_uuid_list_accepts_only_uuid_cursors(reader: Client, path_of: Callable[[str], str], path: str) -> None:
    place = path_of(path)
    sealed = "must be 0, a UUID with hyphens or, with `sort`, a `next_cursor`"
    expected = CURSOR_MESSAGES.get(path, sealed)
    says = [("after", expected)]
    for wrong in ("5", "abc", "-1", uuid7().hex, f"{{{uuid7()}}}", f"{uuid7()}0", "00"):
        assert query_errors(reader, place, f"after={wrong}") == says
    assert query_errors(reader, place, "after=") == [("after", "must not be empty")]
    if path != "/events":  # where a cursor has to exist: tests/api/events/test_feed_start.py
        assert reader.get(place, after=str(uuid7()).upper()).json()["data"] == []


def test_note_types_use_number_cursors_and_the_catalogue_code_cursors(api: Client) -> None:
    for wrong in ("abc", "-1", "1.5", str(uuid7()), "9" * 19):
        assert query_errors(api, "/note-types", f"after={wrong}") == [
            ("after", "must be 0, a whole number or, with `sort`, a `next_cursor`")
        ]
    for wrong in ("5", "Not_found", str(uuid7()), "not-found"):
        assert query_errors(api, "/error-catalogue", f"after={wrong}") == [("after", "must be 0 or an error code")]


@sweep("path", LISTS)
def test_a_cursor_cannot_be_combined_with_an_offset(reader: Client, path_of: Callable[[str], str], path: str) -> None:
    place = path_of(path)
    response = reader.get(place, after="0", offset=1)
    assert (response.status_code, response.json()["error"]) == (400, "invalid_request")
    assert [each["field"] for each in response.json()["errors"]] == ["offset"]
    allowed = reader.get(place, after="0", offset=0)
    assert (allowed.status_code, allowed.json()["pagination"]["offset"]) == (200, 0)


@sweep("path", LISTS)
def test_unknown_and_repeated_parameters_are_named(reader: Client, path_of: Callable[[str], str], path: str) -> None:
    place = path_of(path)
    [(field, message)] = query_errors(reader, place, "colour=red")
    assert field == "colour"
    assert message.startswith("is unknown; expected one of limit, offset, after")
    assert query_errors(reader, place, "limmit=5") == [("limmit", "is unknown; did you mean limit?")]
    assert query_errors(reader, place, "limit=5&limit=5") == [("limit", "must not be repeated")]
    assert {field for field, _ in query_errors(reader, place, f"limit=0&offset=-1&after={'!' * 61}&colour=red")} == {
        "limit", "offset", "after", "colour",
    }  # fmt: skip


def test_offset_pages_have_a_total(api: Client) -> None:
    made = [api.create("/providers", {"entity_name": name}) for name in numbered_names(5)]
    for offset, has_more in ((0, True), (2, True), (3, False), (4, False), (5, False), (99, False)):
        page = api.get("/providers", limit=2, offset=offset).json()
        meta = {"limit": 2, "offset": offset, "has_more": has_more, "total": 5, "next_cursor": None}
        assert page == {"data": made[offset : offset + 2], "pagination": meta}


def test_a_page_has_20_items_unless_asked_otherwise(api: Client) -> None:
    made = [api.create("/note-types", {"note_type": name}) for name in numbered_names(21)]
    meta = {"limit": 20, "offset": 0, "has_more": True, "total": 21, "next_cursor": None}
    assert api.get("/note-types").json() == {"data": made[:20], "pagination": meta}


def test_cursor_pages_have_a_next_cursor_and_no_total(api: Client) -> None:
    made = [api.create("/providers", {"entity_name": name}) for name in numbered_names(4)]
    first, second = cursor_pages(api, "/providers", 2)
    meta = {"limit": 2, "offset": 0, "total": None}
    assert first == {
        "data": made[:2], "pagination": meta | {"has_more": True, "next_cursor": made[1]["id"]},
    }  # fmt: skip
    # The last page is full, and yet nothing follows it.
    assert second == {"data": made[2:], "pagination": meta | {"has_more": False, "next_cursor": None}}


def test_both_modes_are_ordered_by_ascending_id(api: Client) -> None:
    ids = [api.create("/participants", {"first_name": name})["id"] for name in reversed(numbered_names(7))]
    assert ids == sorted(ids)
    by_offset = [each["id"] for at in (0, 3, 6) for each in api.get("/participants", limit=3, offset=at).json()["data"]]
    by_cursor = [each["id"] for page in cursor_pages(api, "/participants", 3) for each in page["data"]]
    assert by_offset == by_cursor == ids


def test_a_cursor_may_be_a_deleted_id(api: Client) -> None:
    made = [api.create("/providers", {"entity_name": name}) for name in numbered_names(4)]
    assert api.delete(f"/providers/{made[1]['id']}").status_code == 200
    assert api.get("/providers", after=made[1]["id"]).json()["data"] == made[2:]
    assert api.get("/providers", after=made[1]["id"].upper()).json()["data"] == made[2:]


def test_a_cursor_walk_returns_each_remaining_row_once_despite_changes(api: Client) -> None:
    made = [api.create("/providers", {"entity_name": name})["id"] for name in numbered_names(8)]
    seen: list[str] = []
    added: list[str] = []
    gone = {2: [made[0], made[1]], 4: [made[7]]}
    for page in cursor_pages(api, "/providers", 2):
        seen += [each["id"] for each in page["data"]]
        for each in gone.get(len(seen), []):
            assert api.delete(f"/providers/{each}").status_code == 200
        if len(added) < 2:
            added.append(api.create("/providers", {"entity_name": "late"})["id"])
    assert seen == [*made[:7], *added]


def test_a_filter_narrows_both_modes_and_the_total(api: Client) -> None:
    wanted = [
        api.create("/providers", {"entity_name": name, "abn": abn}) for name, abn in zip("abcd", "1212", strict=True)
    ]
    page = api.get("/providers", abn="2", limit=1).json()
    meta = {"limit": 1, "offset": 0, "has_more": True, "total": 2, "next_cursor": None}
    assert page == {"data": [wanted[1]], "pagination": meta}
    ends = api.get("/providers", abn="2", limit=1, after=wanted[1]["id"]).json()
    assert ends["data"] == [wanted[3]]
    assert ends["pagination"] == meta | {"has_more": False, "total": None}
