"""The timeline of a participant: one stream of the record, its team, its invoices and its exports."""

import re
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from plankeeper.console.participants import timeline
from support.client import Client
from support.console import Browser
from support.importing import import_records
from support.server import RunningServer

PARTICIPANTS = "/console/participants"


@pytest.fixture
def person(server: RunningServer, client: Client, plan_manager_id: UUID) -> str:
    """A participant with changes of every kind."""
    id_ = client.create("/participants", {"first_name": "Ann", "last_name": "Lee", "date_of_birth": "1975-06-22"})["id"]
    client.put(f"/participants/{id_}", {"date_of_birth": "1975-06-23", "account_manager_id": None, "city": "Hobart"})
    member = client.create(f"/participants/{id_}/team-members", {"first_name": "Deirdre"})["id"]
    client.put(f"/participants/{id_}/team-members/{member}", {"contact_priority": 1})
    client.delete(f"/participants/{id_}/team-members/{member}")
    invoice = {"id": str(uuid7()), "participant_id": id_, "invoice_number": "INV-7", "total": "120.50"}
    for changes in ({}, {"claim_status": "paid"}):
        assert not server.run(import_records(server, plan_manager_id, "invoices", [invoice | changes])).errors
    view = {"id": str(uuid7()), "invoice_id": invoice["id"], "user_id": "u", "user_name": "Robin Hale"}
    view["session_started"] = "2026-01-02T03:04:05Z"
    assert not server.run(import_records(server, plan_manager_id, "invoice-view-sessions", [view])).errors
    client.create("/participants", {"first_name": "Other"})
    return id_


def texts(page: str) -> list[str]:
    """The text of each entry, without its link."""
    return [re.sub(r"<[^>]+>", "", each) for each in re.findall(r'<span class="what">(.*?)</span>', page)]


def test_everything_about_the_participant_is_there_newest_first(owner: Browser, person: str) -> None:
    page = owner.get(f"{PARTICIPANTS}/{person}/timeline").text
    assert texts(page) == [
        "Invoice INV-7: Claim status changed",
        "Invoice INV-7 received, $120.50",
        "Team member Deirdre removed",
        "Team member Deirdre: Contact priority changed",
        "Team member Deirdre added",
        "Date of birth and Suburb changed",
        "Participant added",
    ]
    assert [text in page for text in ("22 Jun 1975", "23 Jun 1975", "Primary contact", ">Today</h2>")] == [True] * 4
    assert 'aria-current="page">Timeline' in page
    assert page.count(">Undo<") + page.count(">Restore<") == 6


def test_kinds_and_views(owner: Browser, person: str) -> None:
    url = f"{PARTICIPANTS}/{person}/timeline"
    cases = {
        "?kind=team": ["Team member Deirdre removed", "Team member Deirdre: Contact priority changed",
                       "Team member Deirdre added"],
        "?kind=invoices": ["Invoice INV-7: Claim status changed", "Invoice INV-7 received, $120.50"],
        "?kind=exports": [],
        "?kind=invoices&views=1": ["Invoice opened", "Invoice INV-7: Claim status changed",
                                   "Invoice INV-7 received, $120.50"],
    }  # fmt: skip
    for query, expected in cases.items():
        assert texts(owner.get(url + query).text) == expected, query
    assert "Show invoice views" in owner.get(url).text
    assert len(texts(owner.get(f"{url}?views=1").text)) == len(texts(owner.get(url).text)) + 1
    assert "There are no changes of this kind." in owner.get(f"{url}?kind=exports").text


def test_pages_continue_where_the_one_before_ended(
    owner: Browser, person: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timeline, "PAGE_SIZE", 3)
    url, found = f"{PARTICIPANTS}/{person}/timeline?views=1", list[str]()
    while url:
        page = owner.get(url.replace("&amp;", "&")).text
        assert len(texts(page)) <= 3
        found += texts(page)
        url = next(iter(re.findall(r'href="([^"]+)" rel="next"', page)), "")
    monkeypatch.undo()
    assert found == texts(owner.get(f"{PARTICIPANTS}/{person}/timeline?views=1").text)
    assert len(found) == 8


def test_an_export_of_the_person_is_shown(owner: Browser, person: str) -> None:
    assert owner.get(f"{PARTICIPANTS}/{person}/data.json").status_code == 200
    assert texts(owner.get(f"{PARTICIPANTS}/{person}/timeline?kind=exports").text) == ["Data downloaded"]


def test_a_provider_shows_its_history(owner: Browser, client: Client) -> None:
    provider = client.create("/providers", {"entity_name": "Banksia Care"})["id"]
    client.put(f"/providers/{provider}", {"abn": "26502811788"})
    page = owner.get(f"/console/providers/{provider}").text
    assert ("ABN changed" in page, "Provider added" in page) == (True, True)
