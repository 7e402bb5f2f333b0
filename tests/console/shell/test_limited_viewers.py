"""Limited viewers: no page, file, search or field shows anything of a participant outside their limit."""

import re
from collections.abc import Iterable, Iterator
from html import unescape
from typing import Any, ClassVar
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from plankeeper.access.accounts import members
from plankeeper.access.accounts.schemas import RoleDetails
from plankeeper.access.policy import ROLES
from plankeeper.console.application import page_routes
from plankeeper.console.components.record_picker import PICKER_KINDS
from plankeeper.console.shell import endpoint
from plankeeper.console.shell.forms import Form, parse_form
from plankeeper.console.shell.routing import PageRequest, PageRoute
from plankeeper.core.context import SYSTEM, WriteContext
from support.console import PASSWORD, Account, Browser
from support.factories import INVOICE_LINE, SeededPlanManager, seed_plan_manager, upload_document
from support.importing import import_records
from support.server import RunningServer

ROUTES = [each for each in page_routes() if each.role in ROLES]
PAGES = [each for each in ROUTES if each.method == "GET"]
LIMITED = {each.path for each in PAGES if each.is_limited}
# The pages that a limited viewer can't open: they are about all participants, or about programs.
CLOSED = {
    "/console/activity", "/console/activity/{event_id}/request", "/console/checks", "/console/trash",
    "/console/trash/{entry_id}", "/console/review", "/console/review/{invoice_id}",
    "/console/reports/service-standard", "/console/reports/service-standard.csv",
    "/console/reports/service-standard.xlsx",
    "/console/requests", "/console/requests.csv", "/console/requests.xlsx", "/console/requests/{logged_request_id}",
    "/console/settings/webhooks", "/console/settings/webhooks/{endpoint_id}",
    "/console/settings/webhooks/{endpoint_id}/deliveries", "/console/settings/webhooks/{endpoint_id}/deliveries.csv",
    "/console/settings/webhooks/{endpoint_id}/deliveries.xlsx",
    "/console/settings/webhooks/{endpoint_id}/deliveries/{delivery_id}",
    "/console/statements", "/console/statements/{statement_run_id}",
}  # fmt: skip
# The texts of the seeded records that aren't about a participant.
VISIBLE_KINDS = {
    "plan_manager", "api_key", "account", "account_manager", "exit_reason", "provider", "note_type", "noted_provider",
    "noted_type",
}  # fmt: skip
# The ids that a response may not contain unless the request has them.
HIDDEN_IDS = ("participant_id", "invoice_id", "team_member_id", "plan_id", "line_id", "event_id", "entry_id", "view_id")
MARKER = "zyxomma"  # of what is outside
AMOUNT = re.compile(r"98[789],?\d{3}\.\d\d")  # of the invoice outside, and of sums with it
INSIDE_NAME = "Indira"


class Office:
    """A plan manager with one of everything outside the limit, and one participant inside it."""

    def __init__(self, server: RunningServer) -> None:
        self.server = server
        self.seeded: SeededPlanManager = seed_plan_manager(server, lambda name: f"{MARKER} {name}")
        self.manager_id = str(uuid7())
        names = ("participant_id", "invoice_id", "team_member_id", "plan_id", "other_invoice_id")
        self.ids = {name: str(uuid7()) for name in names}
        self._import("account-managers", {"id": self.manager_id, "first_name": "Morgan", "email": "morgan@example.com"})
        self._import_inside()
        self._import_duplicate()
        for invoice_id in (self.ids["invoice_id"], self.ids["other_invoice_id"]):
            upload_document(self.seeded.client, invoice_id)  # the same document as that of the seeded invoice
        self.hidden = {text for name, text in self.seeded.texts.items() if name.partition(".")[0] not in VISIBLE_KINDS}
        self.hidden_ids = {self.seeded.ids[name] for name in HIDDEN_IDS} | {self.ids["other_invoice_id"]}
        self.account = server.run(self._create_viewer())

    def _import(self, resource: str, row: dict[str, Any]) -> None:
        report = self.server.run(import_records(self.server, self.seeded.plan_manager_id, resource, [row]))
        assert not report.errors, report.errors

    def _import_inside(self) -> None:
        person = {"participant_id": self.ids["participant_id"]}
        name = {"first_name": INSIDE_NAME, "last_name": "Inside", "participant_number": "430000001"}
        self._import("participants", {"id": self.ids["participant_id"], "account_manager_id": self.manager_id, **name})
        component = {"kind": "flexible", "categories": [1], "amount": 500, "name": "Core of Indira"}
        dates = {"start_date": "2026-01-01", "end_date": "2026-12-31"}
        self._import("plans", {"id": self.ids["plan_id"], **person, **dates, "components": [component]})
        member = {"id": self.ids["team_member_id"], "first_name": "Iris", "email": "iris@example.com"}
        self._import("team-members", {**person, **member})
        self._import("invoices", self._invoice("invoice_id", self.ids["participant_id"], "Gardening", 1234.5))

    def _import_duplicate(self) -> None:
        """An invoice outside, which the one inside duplicates."""
        outside = self.seeded.ids["participant_id"]
        self._import("invoices", self._invoice("other_invoice_id", outside, f"{MARKER} line", 987654.32))

    def _invoice(self, name: str, participant_id: str, description: str, total: float) -> dict[str, Any]:
        return {
            "id": self.ids[name], "participant_id": participant_id, "pm_provider_id": self.seeded.ids["provider_id"],
            "invoice_number": "INV-IN", "invoice_date": "2026-01-15", "total": total,
            "line_items": [INVOICE_LINE | {"description": description}],
        }  # fmt: skip

    async def _create_viewer(self) -> Account:
        email, details = f"{uuid7()}@example.com", RoleDetails([], UUID(self.manager_id))
        async with self.server.db.transaction() as tx:
            ctx = WriteContext(tx, self.seeded.plan_manager_id, self.server.settings, SYSTEM)
            return Account(email, await members.create(ctx, email, "Vera Vale", "viewer", PASSWORD, details))

    def path(self, entry: PageRoute, *, is_inside: bool) -> str:
        return entry.path.format(**self.seeded.ids | (self.ids if is_inside else {}))

    def queries(self) -> list[dict[str, Any]]:
        """What a person can ask lists, searches and fields for: by text, by id, all that match, and views."""
        ids, number = self.seeded.ids, self.seeded.texts["invoice.invoice_number"]
        people = {"participant": ids["participant_id"], "participant_id": ids["participant_id"]}
        lists = [f"participant={ids['participant_id']}", f"q={MARKER}", ""]
        hidden = [ids["participant_id"], ids["invoice_id"], self.ids["other_invoice_id"]]
        return [
            {},
            {"q": MARKER, "invoice_number": number, "number": number},
            {"q": ids["participant_id"]},
            {"q": ids["invoice_id"]},
            {"q": ids["event_id"]},
            {"q": "987654.32"},
            {"q": "zyxoma"},  # with a typo
            people,
            {"account_manager": ids["account_manager_id"], "for": "all"},
            {"resource_id": ids["participant_id"], "views": "1"},
            {"id": hidden, "all": ""},
            *({"all": "1", "list": text} for text in lists),
            *({"list": text} for text in lists),
            *({"kind": kind, "q": MARKER} for kind in PICKER_KINDS),
        ]

    def leaks(self, text: str, sent: str) -> set[str]:
        """What a response contains of the participants outside, besides what the request has."""
        shown = unescape(text)
        found = {each for each in self.hidden if each in shown and each not in sent}
        found |= {each for each in self.hidden_ids if each in shown and each not in sent}
        return found | {each for each in AMOUNT.findall(shown) if each not in sent}


@pytest.fixture(scope="module")
def office(server: RunningServer) -> Iterator[Office]:
    found = Office(server)
    yield found
    found.seeded.client.http.close()


@pytest.fixture(scope="module")
def viewer(office: Office) -> Iterator[Browser]:
    browser = Browser(office.server.url)
    browser.start_session(office.server, office.account)
    yield browser
    browser.http.close()


def test_the_pages_that_are_closed_are_listed() -> None:
    """Every page of viewers either is limited, or is closed to limited viewers."""
    assert {each.path for each in PAGES if each.role == "viewer"} - LIMITED == CLOSED
    assert {each.path for each in PAGES if each.is_limited and each.role != "viewer"} == set()


class RecordedQuery(Form):
    """A query that records the names whose fields a page reads."""

    read: ClassVar[set[str]] = set()

    def getlist(self, key: Any) -> list[str]:
        self.read.add(key)
        return super().getlist(key)

    def __getitem__(self, key: str) -> str:
        self.read.add(key)
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self.read.add(str(key))
        return super().__contains__(key)

    def multi_items(self) -> list[tuple[str, str]]:
        self.read.update(self.names())
        return super().multi_items()

    def __iter__(self) -> Iterator[str]:
        self.read.update(self.names())
        return super().__iter__()

    def __len__(self) -> int:
        self.read.update(self.names())
        return super().__len__()

    def names(self) -> Iterable[str]:
        return self._dict

    keys = items = values = None  # no page reads a query with them: it would fail


@pytest.fixture(scope="module")
def read_names() -> Iterator[set[str]]:
    """The names of fields of queries that pages have read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(endpoint, "parse_form", lambda encoded: RecordedQuery(parse_form(encoded).multi_items()))
        # It reads the text of every page's search, and delays requests at most.
        patch.setattr(PageRequest, "is_search", False)
        yield RecordedQuery.read


class Sweep:
    """The responses to a limited viewer's requests: the statuses of pages without a query, and problems.

    A query that differs from an earlier one only in fields that the page doesn't read gets the same response.
    """

    def __init__(self, office: Office, viewer: Browser, read_names: set[str]) -> None:
        self.office, self.viewer, self.read_names = office, viewer, read_names
        self.statuses, self.problems, self.count = dict[tuple[str, bool], int](), list[str](), 0
        for entry in PAGES:
            self._request(entry, [{}, {"q": MARKER}], is_inside=False)
            if entry.is_limited:
                self._request(entry, office.queries(), is_inside=True)

    def _request(self, entry: PageRoute, queries: list[dict[str, Any]], *, is_inside: bool) -> None:
        path, sent, waiting = self.office.path(entry, is_inside=is_inside), list[dict[str, Any]](), [*queries]
        self.read_names.clear()
        # Fields that one query makes a page read can be those of a query that was left out.
        while unlike := [each for each in waiting if not any(self._is_like(each, other) for other in sent)]:
            status = self._send(path, unlike[0])
            self.statuses.setdefault((entry.path, is_inside), status)
            sent.append(unlike[0])

    def _is_like(self, query: dict[str, Any], sent: dict[str, Any]) -> bool:
        return all(query.get(name) == sent.get(name) for name in self.read_names)

    def _send(self, path: str, query: dict[str, Any]) -> int:
        response = self.viewer.http.get(path, params=query)
        sent = f"{path} {unescape(str(response.request.url.query))} {query}"
        leaks = self.office.leaks(response.text + response.headers.get("location", ""), sent)
        self.problems += [f"{path} {query}: {each}" for each in leaks]
        if response.status_code >= 500:
            self.problems.append(f"{path} {query}: {response.status_code}")
        self.count += 1
        return response.status_code


@pytest.fixture(scope="module")
def responses(office: Office, viewer: Browser, read_names: set[str]) -> Sweep:
    """To every page with records outside; to those that a limited viewer can open also with those inside."""
    return Sweep(office, viewer, read_names)


def test_no_response_has_anything_of_a_participant_outside(responses: Sweep) -> None:
    assert responses.problems == []


def test_the_sweep_finds_what_a_viewer_without_a_limit_sees(office: Office) -> None:
    browser = Browser(office.server.url)
    assert browser.sign_in(office.seeded.owner).status_code == 303
    lists = {"/console/participants", "/console/invoices.csv", "/console/plans", "/console/search"}
    found = {path for path in lists if office.leaks(browser.get(f"{path}?q={MARKER}").text, "")}
    browser.http.close()
    assert found == lists


def test_records_outside_are_not_found_and_other_pages_are_closed(responses: Sweep) -> None:
    statuses = {path: status for (path, is_inside), status in responses.statuses.items() if not is_inside}
    outside = {path for path in LIMITED if {"participant_id", "invoice_id", "view_id", "event_id"} & set(_names(path))}
    assert {path for path, status in statuses.items() if status == 404} == outside
    assert {path for path, status in statuses.items() if status == 403} == {each.path for each in PAGES} - LIMITED
    inside = {path: status for (path, is_inside), status in responses.statuses.items() if is_inside}
    assert set(inside) == LIMITED
    assert {path: status for path, status in inside.items() if status not in (200, 303, 404, 422)} == {}


def _names(path: str) -> list[str]:
    return re.findall(r"\{(\w+)\}", path)


def test_forms_about_records_outside_are_not_found(office: Office, viewer: Browser) -> None:
    path = "/console/invoices/{}/view-session"
    assert viewer.submit(path.format(office.seeded.ids["invoice_id"])).status_code == 404
    assert viewer.submit(path.format(office.ids["invoice_id"])).status_code == 200


def test_the_viewer_sees_the_participants_inside(office: Office, viewer: Browser) -> None:
    person, invoice = (f"/console/{kind}/{office.ids[name]}" for kind, name in (
        ("participants", "participant_id"), ("invoices", "invoice_id")
    ))  # fmt: skip
    shown = {
        "/console/participants": INSIDE_NAME,
        "/console/participants.csv": INSIDE_NAME,
        f"/console/participants/selected.csv?id={office.ids['participant_id']}": INSIDE_NAME,
        "/console/invoices": "INV-IN",
        "/console/invoices.csv": "INV-IN",
        "/console/plans": INSIDE_NAME,
        "/console/search?q=indira": INSIDE_NAME,
        "/console/search?q=iris": "Iris",
        "/console/search?q=INV-IN": "INV-IN",
        "/console/search?q=1234.50": "INV-IN",
        "/console/search/suggest?q=indira&kind=participant": INSIDE_NAME,
        person: INSIDE_NAME,
        f"{person}/invoices": "INV-IN",
        f"{person}/plans": "Core of Indira",
        f"{person}/team": "Iris",
        f"{person}/timeline": "Participant",
        invoice: "Gardening",
        f"/console/providers/{office.seeded.ids['provider_id']}": "INV-IN",
    }
    assert [path for path, text in shown.items() if text not in viewer.get(path).text] == []
    assert "1 invoice" in viewer.get("/console/invoices").text
    assert viewer.get(f"/console/search?q={office.ids['participant_id']}").headers["location"] == person


def test_the_menu_leads_only_to_pages_that_open(office: Office, viewer: Browser) -> None:
    for page in (
        "/console",
        "/console/settings",
        "/console/note-types",
        f"/console/invoices/{office.ids['invoice_id']}",
    ):
        links = set(re.findall(r'href="(/console[^"#]*)"', viewer.get(page).text))
        assert {path: 403 for path in links if viewer.get(unescape(path)).status_code == 403} == {}, page


def test_the_list_of_keys_has_none_of_closed_pages(office: Office, viewer: Browser) -> None:
    def keys(browser: Browser) -> set[str]:
        return set(re.findall(r"<dd>(Go to [^<]+)</dd>", browser.get("/console").text))

    owner = office.seeded.browser()
    assert keys(owner) - keys(viewer) == {"Go to the review queue", "Go to Activity"}
    owner.http.close()
