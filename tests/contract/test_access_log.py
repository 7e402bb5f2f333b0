"""Every response with data of a participant or an invoice is in the access log, with exactly the records it shows."""

import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from html import unescape
from typing import Any
from urllib.parse import urlencode
from uuid import UUID, uuid4

import pytest

from contract.operations import BODIES, LISTS, OPERATIONS, content_of, ids_of, send
from plankeeper.access.access_log import store
from plankeeper.access.access_log.schemas import AccessRecord, AccessRecordFilter
from plankeeper.access.api_keys import service
from plankeeper.console.lists import selection
from plankeeper.console.lists.definition import ListDefinition
from plankeeper.console.lists.filters import ChoiceFilter, DateRangeFilter
from plankeeper.console.views import pages as views
from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.events.schemas import list_disclosed
from plankeeper.events.store import get_many
from plankeeper.http.routing import PREFIX, Operation
from support.client import Client
from support.console import Browser
from support.factories import (
    PAGES,
    SeededPlanManager,
    Tenant,
    create_client,
    filled,
    route_name,
    seed_plan_manager,
)
from support.importing import import_records
from support.server import RunningServer, wait_until

pytestmark = pytest.mark.usefixtures("soon_written")

KINDS = ("participant", "invoice")
UUIDS = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# Reads of the API that show neither participants nor invoices.
WITHOUT_PERSONAL_DATA = {
    "GET /account-managers", "GET /account-managers/{account_manager_id}", "GET /exit-reasons",
    "GET /exit-reasons/{exit_reason_id}", "GET /note-types", "GET /note-types/{note_type_id}", "GET /providers",
    "GET /providers/{provider_id}/bank-details",
    "GET /providers/{provider_id}", "GET /invoice-view-sessions", "GET /invoice-view-sessions/{session_id}",
    "GET /webhook-endpoints", "GET /webhook-endpoints/{webhook_endpoint_id}",
    "GET /webhook-endpoints/{webhook_endpoint_id}/deliveries", "GET /webhook-deliveries/{webhook_delivery_id}",
    "GET /statement-runs", "GET /statement-runs/{statement_run_id}",
    "GET /payment-runs", "GET /payment-runs/{payment_run_id}",
    "GET /fee-takings", "GET /fee-takings/{fee_taking_id}",
    "GET /claim-batches", "GET /claim-batches/{claim_batch_id}", "GET /claim-batches/{claim_batch_id}/receipts",
    "GET /support-items", "GET /error-catalogue",
}  # fmt: skip
# Pages that show a name and are no reads of records.
NAMES_ONLY = {
    "/console/settings/access": "the access log itself",
    "/console/settings/access.csv": "likewise",
}


class RecordReader:
    """Waits for the access records of requests."""

    def __init__(self, server: RunningServer, plan_manager_id: UUID) -> None:
        self._server, self._plan_manager_id = server, plan_manager_id

    def all(self) -> list[AccessRecord]:
        listed = store.list_newest(self._server.db, self._plan_manager_id, AccessRecordFilter(), 5000)
        return self._server.run(listed)

    def by_request(self, last_request_id: str) -> dict[str, list[AccessRecord]]:
        """All records, as soon as those of the last request are there."""
        statement = "select exists (select from access_records where plan_manager_id = $1 and request_id = $2)"
        wait_until(
            lambda: self._server.run(self._server.db.one(bool, statement, self._plan_manager_id, last_request_id))
        )
        found = dict[str, list[AccessRecord]]()
        for each in self.all():
            found.setdefault(each.request_id or "", []).append(each)
        return found


def shown_ids(records: list[AccessRecord], kind: str, known: list[str]) -> set[str]:
    """The ids of a kind that records name; `known` are all that exist."""
    ids = set[str]()
    for each in records:
        if each.resource_kind == kind:
            ids |= {str(id_) for id_ in (each.resource_ids or ([each.resource_id] if each.resource_id else []))}
            if each.first_id:
                ids |= {id_ for id_ in known if str(each.first_id) <= id_ <= str(each.last_id)}
    return ids


@pytest.fixture(scope="module")
def office(server: RunningServer) -> Iterator[tuple[Client, dict[str, list[str]]]]:
    """A plan manager with some participants and invoices, and their ids by list. Names are not in order of the ids."""
    client = server.run(create_client(server))
    with closing(client.http):
        filled(server, client)
        names = ("Ng", "Akech", "Zhou", "Barker", "Akech")
        created = [client.create("/participants", {"last_name": name, "state": "NSW"})["id"] for name in names]
        rows = [
            {"id": str(uuid4()), "participant_id": id_, "total": 100 - n, "invoice_number": f"N{n % 2}"}
            for n, id_ in enumerate(created)
        ]
        assert not server.run(import_records(server, UUID(client.plan_manager_id), "invoices", rows)).errors
        tables = {"participant": "participants", "invoice": "invoices"}
        statements = {
            kind: f"select id::text from {table} where plan_manager_id = $1" for kind, table in tables.items()
        }
        plan_manager_id = UUID(client.plan_manager_id)
        yield (
            client,
            {kind: sorted(server.run(server.db.rows(str, text, plan_manager_id))) for kind, text in statements.items()},
        )


def test_each_read_of_the_api_is_recorded_or_shows_no_personal_data() -> None:
    silent = {name for name, each in OPERATIONS.items() if not each.writes and not each.access_log}
    missing = silent - WITHOUT_PERSONAL_DATA
    assert not missing, f"set access_log= for {missing}, or add it to WITHOUT_PERSONAL_DATA, with the reason"
    assert silent == WITHOUT_PERSONAL_DATA


def list_queries(operation: Operation, item: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """Pages of a list: from the start and from the middle, in each order, and with each filter that an item meets."""
    assert operation.query
    yield {}
    yield {"limit": "2", "offset": "1"}
    if "sort" in operation.query.__struct_fields__:
        yield from ({"sort": each, "limit": "3"} for each in ("id", "-id", "updated_at", "-updated_at"))
        more = ("last_name", "-plan_end_date") if "/participants" in operation.path else ("total", "-invoice_date")
        yield from ({"sort": each, "limit": "3"} for each in more)
    values = {"q": "Akech", "updated_since": "2020-01-01T00:00:00Z", "total_min": "98", "account_manager": "none"}
    for name in operation.query.__struct_fields__:
        value = values.get(name, item.get(name))
        if name not in ("limit", "offset", "after", "sort") and isinstance(value, str):
            yield {name: value}


@pytest.mark.parametrize(
    "name", [each for each in LISTS if OPERATIONS[each].access_log in KINDS and not OPERATIONS[each].path_ids]
)
def test_a_page_of_a_list_is_recorded_with_exactly_its_records(
    server: RunningServer, office: tuple[Client, dict[str, list[str]]], name: str
) -> None:
    client, ids = office
    operation = OPERATIONS[name]
    kind, path = str(operation.access_log), operation.path.removeprefix(PREFIX)
    item = client.get(path, limit=1).json()["data"][0]
    pages: dict[str, tuple[dict[str, str], set[str]]] = {}
    for query in list_queries(operation, item):
        response = client.get(path, **query)
        if response.is_success and (data := response.json()["data"]):
            pages[response.headers["x-request-id"]] = (query, {each["id"] for each in data})
    assert len(pages) >= 12
    assert any(len(shown) < len(ids[kind]) and "sort" in query for query, shown in pages.values())
    found = RecordReader(server, UUID(client.plan_manager_id)).by_request([*pages][-1])
    wrong = {
        urlencode(query): (shown, shown_ids(found.get(request_id, []), kind, ids[kind]))
        for request_id, (query, shown) in pages.items()
        if shown_ids(found.get(request_id, []), kind, ids[kind]) != shown
    }
    assert wrong == {}


def test_the_feed_is_recorded_by_the_records_of_its_events(
    server: RunningServer, office: tuple[Client, dict[str, list[str]]]
) -> None:
    client, ids = office
    wait_until(lambda: len(client.get("/events", limit=1000).json()["data"]) > 10)
    response = client.get("/events", limit=1000, type="participant.*,team_member.*")
    shown = {each["resource"]["id"] for each in response.json()["data"] if each["resource"]["kind"] == "participant"}
    request_id = response.headers["x-request-id"]
    found = RecordReader(server, UUID(client.plan_manager_id)).by_request(request_id)[request_id]
    assert shown_ids(found, "participant", []) == shown
    assert shown >= set(ids["participant"][:1])
    assert shown_ids(found, "invoice", []) == set()


def personal_texts(texts: Mapping[str, str]) -> dict[str, str]:
    """The texts of participants, team members and invoices."""
    return {
        name: text
        for name, text in texts.items()
        if name.split(".")[0] in ("participant", "member", "invoice", "line") and len(text) > 8
    }


def test_every_request_that_shows_personal_data_leaves_an_event_or_an_access_record(server: RunningServer) -> None:
    """Also writes that change nothing. Each operation has a key of its own, because repeated reads count once."""
    client = server.run(create_client(server))
    with closing(client.http):
        world = filled(server, client)
        texts = {"participant.first_name", "member.first_name", "member.role", "invoice.invoice_number"}
        bodies = {name: {} for name in OPERATIONS if name.startswith("PUT ")}
        bodies["POST /participants/bulk"] = {"items": [{"id": world.ids["participant_id"]}]}
        expected: dict[str, str] = {}
        for name, operation in sorted(OPERATIONS.items(), key=lambda each: (each[1].method == "DELETE", -len(each[0]))):
            headers = new_key(server, world)
            body = bodies.get(name, BODIES.get(name))
            path = operation.path.removeprefix(PREFIX).format(**ids_of(name, world.ids))
            more = {"json": body} if operation.body else content_of(name)
            response = client.send(operation.method, path, headers=headers, **more)
            if any(text in response.text for text in texts):
                expected[response.headers["x-request-id"]] = name
        assert {"PUT /participants/{participant_id}", "POST /participants/bulk", "GET /events"} <= {*expected.values()}
        last = send(client, "GET /invoices/{invoice_id}", world.ids, new_key(server, world)).headers["x-request-id"]
        recorded = {*RecordReader(server, world.plan_manager_id).by_request(last)}
        statement = "select distinct request_id from events where plan_manager_id = $1 and request_id is not null"
        recorded |= {*server.run(server.db.rows(str, statement, world.plan_manager_id))}
        silent = [name for request_id, name in expected.items() if request_id not in recorded]
        assert silent == []


def new_key(server: RunningServer, world: Tenant) -> dict[str, str]:
    async def create() -> str:
        async with server.db.transaction() as tx:
            ctx = WriteContext(tx, world.plan_manager_id, server.settings, SYSTEM)
            return await service.create(ctx, "test", [world.plan_manager_id], ["read", "write"], None)

    return {"Authorization": f"Bearer {server.run(create())}", "X-Plan-Manager-Id": str(world.plan_manager_id)}


@pytest.fixture(scope="module")
def browser(seeded: SeededPlanManager) -> Iterator[Browser]:
    signed_in = seeded.browser()
    yield signed_in
    signed_in.http.close()


@pytest.fixture(scope="module")
def seeded(server: RunningServer) -> Iterator[SeededPlanManager]:
    created = seed_plan_manager(server, lambda name: f"{name.replace('_', ' ')} text")
    yield created
    created.client.http.close()


def test_every_page_that_shows_personal_data_leaves_an_access_record(
    server: RunningServer, seeded: SeededPlanManager, browser: Browser
) -> None:
    texts = personal_texts(seeded.texts)
    expected: dict[str, tuple[str, list[str]]] = {}
    for entry in PAGES:
        response = browser.get(seeded.path(entry))
        page = unescape(response.text)
        shown = [name for name, text in texts.items() if text in page]
        if shown and entry.path not in NAMES_ONLY:
            expected[response.headers["x-request-id"]] = (route_name(entry), shown)
    last = browser.get(f"/console/participants/{seeded.ids['participant_id']}").headers["x-request-id"]
    found = RecordReader(server, seeded.plan_manager_id).by_request(last)
    assert len(expected) > 20
    assert {name: shown for request_id, (name, shown) in expected.items() if request_id not in found} == {}


def console_queries(definition: ListDefinition) -> Iterator[dict[str, str]]:
    """Pages of a list: in each order, and with each view and each filter that has choices."""
    yield {}
    for sort in sorted(definition.sorts):
        yield {"sort": sort}
        yield {"sort": f"-{sort}"}
    yield from (dict(each.params) for each in definition.views)
    for each in definition.filters:
        if isinstance(each, ChoiceFilter):
            yield from ({each.name: choice} for choice in list(each.choices)[:3])
        elif isinstance(each, DateRangeFilter):
            yield from ({each.name: preset} for preset in each.presets)


def rows_of(page: str) -> str:
    return page.partition("<main")[2].partition("<tbody>")[2].partition("</tbody>")[0]


@pytest.mark.parametrize("kind", [kind for kind, each in views.LISTS.items() if each.accessed_kind])
def test_a_page_and_a_file_of_a_list_of_the_console_are_recorded_with_exactly_their_records(
    server: RunningServer, seeded: SeededPlanManager, browser: Browser, kind: str
) -> None:
    definition = views.LISTS[kind]
    accessed = str(definition.accessed_kind)
    rows = [{"id": str(uuid4()), "first_name": name, "status": "Active"} for name in ("Zoe", "Ada", "Mia")]
    assert not server.run(import_records(server, seeded.plan_manager_id, "participants", rows)).errors
    pages: dict[str, tuple[str, set[str]]] = {}
    for query in console_queries(definition):
        url = f"{definition.path}?{urlencode(query)}"
        response = browser.get(url)
        shown = {*re.findall(rf"{definition.path}/({UUIDS.pattern})", rows_of(response.text))}
        pages[response.headers["x-request-id"]] = (url, shown)
        text = browser.get(f"{definition.path}.csv?{urlencode(query)}")
        pages[text.headers["x-request-id"]] = (f"file of {url}", shown)
    last = browser.get(f"/console/participants/{seeded.ids['participant_id']}").headers["x-request-id"]
    found = RecordReader(server, seeded.plan_manager_id).by_request(last)
    seen = {request_id: shown_ids(found.get(request_id, []), accessed, []) for request_id in pages}
    assert {url: (shown, seen[id_]) for id_, (url, shown) in pages.items() if shown != seen[id_]} == {}
    assert any(shown for _, shown in pages.values())


def test_pages_about_all_that_match_a_list_are_recorded_with_exactly_the_records_that_they_name(
    server: RunningServer, seeded: SeededPlanManager, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selection, "MAX_SHOWN", 2)
    people = [{"id": str(uuid4()), "last_name": name, "state": "TAS"} for name in ("Ng", "Zhou", "Akech", "Barker")]
    invoices = [{"id": str(uuid4()), "invoice_number": f"T{n}", "total": 7, "claim_status": "flagged"} for n in "abcd"]
    managers = [{"id": str(uuid4()), "first_name": "Kit", "last_name": "Ro", "email": "kit@example.com"}]
    for resource, rows in (("account-managers", managers), ("participants", people), ("invoices", invoices)):
        assert not server.run(import_records(server, seeded.plan_manager_id, resource, rows)).errors
    code = seeded.client.get(f"/invoices/{invoices[0]['id']}").json()["state_management"]["errors"][0]
    values = {"account_manager": managers[0]["id"], "code": code, "reason": "Known here"}
    pages: dict[str, tuple[str, str, set[str]]] = {}
    for kind, action, filter_ in (
        ("participants", "account-manager", "state=TAS"),
        ("invoices", "ignore-warning", "claim_status=flagged"),
    ):
        path = f"/console/{kind}/selected/{action}"
        shown = browser.get(path, params={"all": "1", "list": filter_})
        [matched] = re.findall(r'name="matched" value="([^"]+)"', shown.text)
        form = {"all": "1", "list": filter_, "matched": matched, **values}
        for response in (shown, browser.submit(path, {**form, "matched": ""}), browser.submit(path, form)):
            ids = {*re.findall(rf'class="lead"><a href="/console/{kind}/({UUIDS.pattern})"', response.text)}
            pages[response.headers["x-request-id"]] = (kind.removesuffix("s"), str(response.status_code), ids)
    last = browser.get(f"/console/participants/{seeded.ids['participant_id']}").headers["x-request-id"]
    found = RecordReader(server, seeded.plan_manager_id).by_request(last)
    assert [(each, status, len(ids)) for each, status, ids in pages.values()] == [
        (kind, status, 2) for kind in KINDS for status in ("200", "409", "200")
    ]
    for request_id, (kind, _, ids) in pages.items():
        assert shown_ids(found.get(request_id, []), kind, []) == ids


def test_the_pages_of_the_activity_are_recorded_with_the_records_of_their_events(
    server: RunningServer, seeded: SeededPlanManager, browser: Browser
) -> None:
    definition = views.LISTS["activity"]
    pages: dict[str, tuple[str, dict[str, set[str]]]] = {}
    for query in console_queries(definition):
        url = f"{definition.path}?{urlencode(query)}"
        response = browser.get(url)
        ids = [UUID(each) for each in dict.fromkeys(re.findall(rf"/activity/({UUIDS.pattern})", response.text))]
        events = server.run(get_many(server.db, seeded.plan_manager_id, ids))
        shown = {kind: {str(each) for each in found} for kind, found in list_disclosed(events).items()}
        pages[response.headers["x-request-id"]] = (url, shown)
    last = browser.get(f"/console/participants/{seeded.ids['participant_id']}").headers["x-request-id"]
    found = RecordReader(server, seeded.plan_manager_id).by_request(last)
    for request_id, (url, shown) in pages.items():
        for kind in ("participant", "invoice"):
            assert shown_ids(found.get(request_id, []), kind, []) == shown.get(kind, set()), url
    assert any(shown for _, shown in pages.values())


def test_every_list_of_the_console_says_what_it_discloses() -> None:
    disclosing = {kind for kind, each in views.LISTS.items() if each.accessed_kind or each.list_disclosed}
    assert set(views.LISTS) - disclosing == {"claims", "payments", "providers", "requests", "access-log"}
