"""Notes on the pages of records, and their forms."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from plankeeper.console.shell.routing import PREFIX
from support.client import Client
from support.console import Account, Browser
from support.server import wait_until


@pytest.fixture
def note_type(client: Client) -> dict[str, Any]:
    return client.create("/note-types", {"note_type": "Phone call", "badge_color": "#0b7285"})


@pytest.fixture
def pages(client: Client) -> dict[str, str]:
    """The path of a record of each kind; the invoice is of the participant and the provider."""
    participant = client.create("/participants", {"first_name": "Ada", "last_name": "Lindqvist"})["id"]
    provider = client.create("/providers", {"entity_name": "Quokka"})["id"]
    invoice = client.create(
        "/invoices", {"invoice_number": "Q-1", "participant_id": participant, "pm_provider_id": provider}
    )["id"]
    return {
        "participant": f"/participants/{participant}",
        "provider": f"/providers/{provider}",
        "invoice": f"/invoices/{invoice}",
    }


def add(browser: Browser, path: str, note_type: dict[str, Any], text: str, **more: str) -> None:
    form = {"note_type_id": str(note_type["id"]), "text": text} | more
    response = browser.submit(f"{PREFIX}{path}/notes", form)
    assert (response.status_code, response.headers["location"]) == (303, f"{PREFIX}{path}")


def section(page: str) -> str:
    found = re.search(r'<section class="notes" aria-labelledby="notes">.*?</section>', page, re.DOTALL)
    assert found
    return found[0]


def texts(page: str) -> list[str]:
    return re.findall(r'<p class="text break" dir="auto">(.*?)</p>', page, re.DOTALL)


@pytest.mark.parametrize("kind", ["participant", "provider", "invoice"])
def test_a_note_is_added_on_the_page_of_its_record(
    owner: Browser, note_type: dict[str, Any], pages: dict[str, str], kind: str
) -> None:
    path = PREFIX + pages[kind]
    empty = section(owner.get(path).text)
    assert "No notes yet." in empty
    assert f'<option value="{note_type["id"]}">Phone call</option>' in empty
    add(owner, pages[kind], note_type, "Prefers <b>mornings</b>")
    add(owner, pages[kind], note_type, "Ring twice", pinned="true")
    page = owner.get(path).text
    assert texts(section(page)) == ["Ring twice", "Prefers &lt;b&gt;mornings&lt;/b&gt;"]
    assert 'fill="#0b7285"' in section(page)
    assert '<strong dir="auto">Phone call</strong> <span class="tag">Pinned</span>' in section(page)
    assert "Note added." in page
    assert "Undo" in page


@pytest.mark.parametrize("kind", ["participant", "provider", "invoice"])
def test_all_notes_of_a_record_are_on_a_page_of_their_own(
    owner: Browser, client: Client, note_type: dict[str, Any], pages: dict[str, str], kind: str
) -> None:
    resource = {"kind": kind, "id": pages[kind].rpartition("/")[2]}
    for number in range(51):
        note = {"resource": resource, "note_type_id": note_type["id"], "text": f"N{number:02}"}
        client.create("/notes", note | {"pinned": number == 0})
    link = f'<a href="{PREFIX}{pages[kind]}/notes">All notes</a>'
    assert link in section(owner.get(PREFIX + pages[kind]).text)
    first, second = (owner.get(f"{PREFIX}{pages[kind]}/notes{query}").text for query in ("", "?page=2"))
    assert texts(first) == ["N00", *(f"N{number:02}" for number in range(50, 1, -1))]
    assert texts(second) == ["N01"]
    assert (f'{pages[kind]}/notes?page=2" rel="next"' in first, f'{pages[kind]}/notes" rel="prev"' in second) == (
        True,
        True,
    )
    assert "No notes on this page." in owner.get(f"{PREFIX}{pages[kind]}/notes?page=9").text
    assert owner.get(f"{PREFIX}/{kind}s/{resource['id'][:-4]}0000/notes").status_code == 404


def test_the_timeline_of_a_participant_has_notes_on_their_invoices(
    owner: Browser, note_type: dict[str, Any], pages: dict[str, str]
) -> None:
    add(owner, pages["invoice"], note_type, "Billed by phone")
    add(owner, pages["participant"], note_type, "Prefers mornings")
    for query in ("", "?kind=notes"):
        page = owner.get(f"{PREFIX}{pages['participant']}/timeline{query}").text
        assert page.index("Prefers mornings") < page.index("Billed by phone")
    assert "Billed by phone" not in owner.get(f"{PREFIX}{pages['participant']}/timeline?kind=invoices").text


def test_an_invalid_note_is_shown_again_with_its_errors(
    owner: Browser, note_type: dict[str, Any], pages: dict[str, str]
) -> None:
    path = f"{PREFIX}{pages['participant']}/notes"
    response = owner.submit(path, {"note_type_id": str(note_type["id"]), "text": " ", "pinned": "true"})
    assert response.status_code == 422
    assert "Text must not be blank" in response.text
    assert re.search(r'name="pinned" value="true" checked', response.text)
    response = owner.submit(path, {"note_type_id": "987654", "text": "x"})
    assert "Note type must be the id of a note type" in response.text


def test_a_note_is_edited_and_deleted_and_both_can_be_undone(
    owner: Browser, client: Client, note_type: dict[str, Any], pages: dict[str, str]
) -> None:
    add(owner, pages["provider"], note_type, "Prefers mornings")
    [note] = client.get("/notes").json()["data"]
    path = f"{PREFIX}/notes/{note['id']}"
    form = owner.get(f"{path}/edit").text
    version = re.findall(r'name="was" value="([^"]+)"', form)[0]
    values = {"was": version, "note_type_id": str(note_type["id"]), "text": "Prefers evenings", "alert": "true"}
    assert owner.submit(f"{path}/edit", values).headers["location"] == PREFIX + pages["provider"]
    page = owner.get(PREFIX + pages["provider"]).text
    assert texts(section(page)) == ["Prefers evenings"]
    assert '<span class="tag warn">Alert</span>' in page
    assert owner.submit(f"{path}/delete", {}).status_code == 303
    page = owner.get(PREFIX + pages["provider"]).text
    assert "Note deleted." in page
    assert texts(section(page)) == []
    undo = re.findall(r'"(/console/activity/[0-9a-f-]+/undo)"', page)[0]
    assert owner.submit(undo, {}).status_code == 303
    page = owner.get(PREFIX + pages["provider"]).text
    assert texts(section(page)) == ["Prefers evenings"]


def test_viewers_read_notes_and_cannot_write_them(
    new_browser: Callable[..., Browser],
    new_account: Callable[..., Account],
    client: Client,
    note_type: dict[str, Any],
    pages: dict[str, str],
) -> None:
    viewer = new_browser(new_account("viewer"))
    resource = {"kind": "invoice", "id": pages["invoice"].rpartition("/")[2]}
    note = client.create("/notes", {"resource": resource, "note_type_id": note_type["id"], "text": "Asked"})
    page = section(viewer.get(PREFIX + pages["invoice"]).text)
    assert texts(page) == ["Asked"]
    assert "Add note" not in page
    assert "Edit" not in page
    assert viewer.get(f"{PREFIX}/notes/{note['id']}/edit").status_code == 403


def test_alerts_and_pinned_notes_are_shown_with_every_invoice(
    owner: Browser, client: Client, note_type: dict[str, Any], pages: dict[str, str]
) -> None:
    add(owner, pages["participant"], note_type, "Pinned", pinned="true")
    add(owner, pages["participant"], note_type, "Plain")
    add(owner, pages["provider"], note_type, "Call before paying", alert="true")
    page = owner.get(PREFIX + pages["invoice"]).text
    top = page[page.index('aria-label="Notes to read first"') : page.index('class="status-line')]
    assert texts(top) == ["Call before paying", "Pinned"]
    assert "on the provider" in top
    invoice = f"/invoices/{pages['invoice'].rpartition('/')[2]}"
    wait_until(lambda: "flagged_provider" in client.get(invoice).json()["state_management"]["errors"])
    page = owner.get(PREFIX + pages["invoice"]).text
    assert "The provider has an alert: “Call before paying”." in page


def test_a_note_is_found_by_a_word_and_leads_to_its_record(
    owner: Browser, note_type: dict[str, Any], pages: dict[str, str]
) -> None:
    for path in pages.values():
        add(owner, path, note_type, f"The guardian of {path[1:4]} approves")
    page = owner.get(f"{PREFIX}/search?q=guardian").text
    results = page[page.index('id="note-results"') :]
    links = re.findall(r'<li><a href="([^"]+)">([^<]+)</a> <span class="soft">Phone call · on the ([^<]+) · ', results)
    assert links == [
        (PREFIX + pages["invoice"], "The guardian of inv approves", "invoice Q-1"),
        (PREFIX + pages["provider"], "The guardian of pro approves", "provider Quokka"),
        (PREFIX + pages["participant"], "The guardian of par approves", "participant Ada Lindqvist"),
    ]


def test_notes_are_on_the_timeline_of_the_participant(
    owner: Browser, note_type: dict[str, Any], pages: dict[str, str]
) -> None:
    add(owner, pages["participant"], note_type, "Prefers mornings")
    timeline = f"{PREFIX}{pages['participant']}/timeline"
    assert "Note added: Prefers mornings" in owner.get(timeline).text
    assert "Note added: Prefers mornings" in owner.get(f"{timeline}?kind=notes").text
    assert "Note added" not in owner.get(f"{timeline}?kind=plans").text


def test_without_a_note_type_the_page_says_what_to_do(owner: Browser, pages: dict[str, str]) -> None:
    assert 'href="/console/note-types/new"' in section(owner.get(PREFIX + pages["participant"]).text)


def test_a_note_type_in_use_cannot_be_deleted(owner: Browser, note_type: dict[str, Any], pages: dict[str, str]) -> None:
    add(owner, pages["participant"], note_type, "Prefers mornings")
    path = f"{PREFIX}/note-types/{note_type['id']}/delete"
    page = owner.get(path).text
    assert "1 note has this note type" in page
    assert re.search(r'href="/console/notes/[0-9a-f-]+/edit">Prefers mornings<', page)
    assert '<button class="danger">' not in page
    assert "1 note has this note type, so it cannot be deleted." in owner.submit(path, {}).text
