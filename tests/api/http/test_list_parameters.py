"""The common parameters of all lists of stored resources: `id`, `updated_since`, `sort` and `view`."""

from collections.abc import Callable, Iterator
from datetime import datetime
from functools import cache
from itertools import product
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from plankeeper.core.lists import SortableQuery
from plankeeper.http.routing import PREFIX
from plankeeper.server.app import operations
from support.claims import Office
from support.client import Client
from support.factories import create_client
from support.importing import import_records
from support.payments import PayingOffice
from support.server import RunningServer
from support.statement_runs import StatementOffice
from support.sweeps import sweep


class MadeList(NamedTuple):
    """A client, and the path of a list of its plan manager."""

    client: Client
    path: str


MakeList = Callable[[str], MadeList]

SORTABLE = [each for each in operations() if each.query and issubclass(each.query, SortableQuery)]
# Their own tests check these lists, by support.list_parameters: only the whole course of a claim makes their items.
CHECKED_ELSEWHERE = {
    "/claim-batches/{claim_batch_id}/receipts", "/fee-takings", "/fee-takings/{fee_taking_id}/lines", "/fees",
    "/invoices/{invoice_id}/adjustments", "/participants/{participant_id}/statements",
}  # fmt: skip
ALL_PATHS = [each.path.removeprefix(PREFIX) for each in SORTABLE]
PATHS = [each for each in ALL_PATHS if each not in CHECKED_ELSEWHERE]
# A change of a resource of each list that the API can change.
CHANGES = {
    "/participants": {"city": "Perth"},
    "/participants/{participant_id}/plans": {"is_pace_plan": True},
    "/participants/{participant_id}/team-members": {"role": "Sister"},
    "/exit-reasons": {"name": "Changed"},
    "/note-types": {"badge_color": "red"},
    "/notes": {"text": "Changed"},
    "/providers": {"entity_name": "Changed"},
    "/webhook-endpoints": {"description": "Changed"},
}
WITHOUT_ITEMS = {
    "/claim-batches/{claim_batch_id}/lines", "/payment-runs/{payment_run_id}/payments",
    "/statement-runs/{statement_run_id}/items",
}  # fmt: skip
# What a resource has by itself, and its items of lists don't have.
DETAILS = {"line_items", "left_out", "warned", "warnings"}
COUNT = 5


@pytest.fixture(scope="module")
def make_list(server: RunningServer) -> Iterator[MakeList]:
    """Makes a list with five resources, once for the tests of this module. Each has a plan manager of its own."""
    clients: list[Client] = []

    @cache
    def make(path: str) -> MadeList:
        clients.append(api := server.run(create_client(server)))
        return MadeList(api, fill(server, api, path))

    yield make
    for each in clients:
        each.http.close()


def fill(server: RunningServer, api: Client, path: str) -> str:
    """Make five resources of a list, and return its path."""
    if path.startswith("/claim-batches"):
        return make_claims(Office(server, api), path)
    if path.startswith("/payment-runs"):
        return make_payments(PayingOffice(server, api), path)
    if path.startswith("/statement-runs"):
        return make_statement_runs(StatementOffice(server, api), path)
    if "{participant_id}" in path:
        path = path.format(participant_id=api.create("/participants", {})["id"])
    for number in range(COUNT):
        make_one(server, api, path, number)
    return path


def make_one(server: RunningServer, api: Client, path: str, number: int) -> None:
    name = f"Number {number}"
    bodies: dict[str, dict[str, Any]] = {
        "team-members": {"first_name": name, "email": f"m{number}@example.com"},
        "exit-reasons": {"name": name},
        "plans": {"start_date": f"20{number + 20}-07-01", "end_date": f"20{number + 21}-06-30"},
        "note-types": {"note_type": name},
        "webhook-endpoints": {"url": f"https://example.com/{number}", "event_types": ["exit_reason.created"]},
    }
    rows: dict[str, dict[str, Any]] = {
        "account-managers": {"first_name": name},
        "invoices": {"invoice_number": name, "invoice_date": "2026-01-15", "total": number},
        "invoice-view-sessions": {"user_id": "u", "user_name": name, "session_started": "2026-01-02T03:04:05Z"},
    }
    resource = path.rpartition("/")[2]
    if resource == "notes":
        noted = {"kind": "participant", "id": api.create("/participants", {})["id"]}
        note_type = api.create("/note-types", {"note_type": f"Type of {name}"})["id"]
        bodies[resource] = {"resource": noted, "note_type_id": note_type, "text": name}
    if resource == "invoice-view-sessions":
        invoice = str(uuid7())
        import_row(server, api, "invoices", {"id": invoice})
        rows[resource]["invoice_id"] = invoice
    if resource in rows:
        import_row(server, api, resource, rows[resource])
    else:
        api.create(path, bodies.get(resource, {}))


def import_row(server: RunningServer, api: Client, resource: str, row: dict[str, Any]) -> None:
    assert not server.run(import_records(server, UUID(api.plan_manager_id), resource, [row])).errors


def make_claims(office: Office, path: str) -> str:
    invoices = [office.invoice(str(uuid7())) for _ in range(COUNT)]
    if path == "/claim-batches":
        for each in invoices:
            office.batch(each)
        return path
    return path.format(claim_batch_id=office.batch(*invoices)["id"])


def make_statement_runs(office: StatementOffice, path: str) -> str:
    if path == "/statement-runs":
        for number in range(COUNT):
            office.ended(office.start(f"2026-0{number + 1}"))
        return path
    for _ in range(COUNT):
        office.participant()
    return path.format(statement_run_id=office.ended(office.start())["id"])


def make_payments(office: PayingOffice, path: str) -> str:
    payees = [office.provider_with(f"Payee {number}") for number in range(COUNT)]
    invoices = [office.invoice("10.00", pm_provider_id=each) for each in payees]
    if path == "/payment-runs":
        for each in invoices:
            office.run(each)
        return path
    return path.format(payment_run_id=office.run(*invoices)["id"])


def without_details(resource: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in resource.items() if name not in DETAILS}


def get_ids(api: Client, path: str, **params: Any) -> list[Any]:
    response = api.get(path, **params)
    assert response.status_code == 200, response.text
    return [each["id"] for each in response.json()["data"]]


def walk_pages(api: Client, path: str, **params: Any) -> Iterator[dict[str, Any]]:
    after = "0"
    while after is not None:
        page = api.get(path, after=after, **params).json()
        yield page
        after = page["pagination"]["next_cursor"]


def test_the_lists_are_found() -> None:
    assert (len(PATHS), set(ALL_PATHS) - set(PATHS)) == (17, CHECKED_ELSEWHERE)


@sweep("path", PATHS)
def test_a_list_returns_the_resources_with_some_ids(make_list: MakeList, path: str) -> None:
    api, place = make_list(path)
    ids = get_ids(api, place)
    unknown = 999_999 if isinstance(ids[0], int) else str(uuid7())
    page = api.get(place, id=f"{ids[3]},{unknown}, {ids[1]},{ids[3]}").json()
    assert [each["id"] for each in page["data"]] == [ids[1], ids[3]]
    assert page["pagination"]["total"] == 2
    assert get_ids(api, place, id=",".join(map(str, ids)), limit=2, after=ids[0]) == ids[1:3]
    for wrong, field in (("x", "id[0]"), (f"{ids[0]},", "id[1]"), (",".join([str(ids[0])] * 101), "id")):
        response = api.get(place, id=wrong)
        assert (response.status_code, [each["field"] for each in response.json()["errors"]]) == (400, [field])


@sweep("path", [each for each in PATHS if each not in WITHOUT_ITEMS])
def test_an_item_is_the_resource(make_list: MakeList, path: str) -> None:
    api, place = make_list(path)
    listed = api.get(place).json()["data"]
    for each in listed:
        assert datetime.fromisoformat(each["updated_at"]).tzinfo
        one = api.get(f"{place}/{each['id']}").json()
        assert without_details(one) == without_details(each)
    assert [each for page in walk_pages(api, place, limit=2) for each in page["data"]] == listed


@sweep("path", PATHS)
def test_updated_since_finds_what_has_changed_since(make_list: MakeList, path: str) -> None:
    api, place = make_list(path)
    ids = get_ids(api, place)
    times = {each["id"]: each["updated_at"] for each in api.get(place).json()["data"]}
    newest = max(times.values())
    assert get_ids(api, place, updated_since=newest) == [each for each in ids if times[each] == newest]
    assert "synced-until" in api.get(place, updated_since=newest).headers
    if path in CHANGES:
        changed = f"{place}/{ids[1]}"
        assert api.put(changed, CHANGES[path]).status_code == 200
        moved = api.get(changed).json()["updated_at"]
        assert moved > newest
        assert get_ids(api, place, updated_since=moved) == [ids[1]]
        assert api.put(changed, CHANGES[path]).status_code == 200
        assert api.get(changed).json()["updated_at"] == moved


@sweep("path, sort", product(PATHS, ["-id", "updated_at", "-updated_at"]))
def test_a_sorted_walk_returns_every_resource_once(make_list: MakeList, path: str, sort: str) -> None:
    api, place = make_list(path)
    if path in CHANGES:
        first = get_ids(api, place)[0]
        assert api.put(f"{place}/{first}", CHANGES[path]).status_code == 200
    name = sort.removeprefix("-")
    rows = api.get(place).json()["data"]
    expected = sorted(rows, key=lambda each: (each[name], each["id"]), reverse=sort.startswith("-"))
    pages = list(walk_pages(api, place, sort=sort, limit=2))
    assert [each for page in pages for each in page["data"]] == expected
    assert [page["pagination"]["has_more"] for page in pages] == [True, True, False]
    assert api.get(place, sort=sort).json()["data"] == expected
    assert api.get(place, sort=sort, offset=1, limit=3).json() == {
        "data": expected[1:4],
        "pagination": {"limit": 3, "offset": 1, "has_more": True, "total": COUNT, "next_cursor": None},
    }
    filtered = [each["id"] for each in expected][:3]
    assert get_ids(api, place, sort=sort, id=",".join(map(str, filtered))) == filtered


@sweep("path", PATHS)
def test_unknown_orders_are_rejected(make_list: MakeList, path: str) -> None:
    api, place = make_list(path)
    for wrong in ("name", "ID", "+id", "id,updated_at", "updated_at desc"):
        [error] = api.get(place, sort=wrong).json()["errors"]
        assert error["field"] == "sort"
        assert error["message"].startswith("must be one of id, -id, updated_at, -updated_at")
    assert get_ids(api, place, sort="id", after="0") == get_ids(api, place)


def test_a_resource_that_was_got_can_be_put_back(make_list: MakeList) -> None:
    for path, change in CHANGES.items():
        api, place = make_list(path)
        [field] = change
        one = f"{place}/{get_ids(api, place)[2]}"  # which no other test changes
        got = api.get(one)
        assert api.put(one, got.json() | change, headers={"If-Match": got.headers["etag"]}).status_code == 200
        assert api.get(one).json()[field] == change[field]
