"""Providers: the list with its search, the record, new, edit, delete."""

import re
from collections.abc import Callable, Iterator
from html import unescape
from uuid import UUID

import pytest

from console.forms_of import events_of, form_on
from console.people import Browser, Person
from support.client import Client
from support.server import RunningServer

HERE = "/console/providers"
SCRIPT = "<script>alert(1)</script>"
FULL = {
    "entity_name": "Bright Care", "abn": "51 824 753 556", "email": "Office@bright.example.com", "active": False,
    "primary_phone_number": "03 6200 0000", "address": "1 Example St", "city": "Hobart", "state": "TAS",
    "postcode": "7000", "ndis_provider_number": "4050000001",
}  # fmt: skip


@pytest.fixture
def client(server: RunningServer, new_key: Callable[..., str], plan_manager_id: UUID) -> Iterator[Client]:
    made = Client(server.url, new_key(plan_manager_id), plan_manager_id)
    yield made
    made.http.close()


@pytest.fixture
def bright(client: Client) -> str:
    """The id of a provider whose every field is set."""
    return client.made("/providers", FULL)["id"]


def names_on(browser: Browser, **query: str) -> list[str]:
    page = browser.get(HERE, params=query).text
    return [unescape(each) for each in re.findall(r'class="lead"><a href="[^"]+">([^<]*)</a>', page)]


def test_a_provider_is_added_with_every_field(server: RunningServer, owner: Browser, client: Client) -> None:
    form = form_on(owner, f"{HERE}/new")
    assert form["active"] == ["true"]
    del form["active"]
    answer = owner.send(HERE, form | {name: text for name, text in FULL.items() if name != "active"})
    new_id = answer.headers["location"].removeprefix(f"{HERE}/")
    kept = client.get(f"/providers/{new_id}?view=full").json()
    assert {name: kept[name] for name in FULL} == FULL
    page = owner.get(answer.headers["location"]).text
    assert ("Bright Care is added." in page, "check: not" in page, "not active" in page) == (True, False, True)
    assert events_of(server, new_id) == ["provider.created by user Robin Hale"]


@pytest.mark.parametrize(
    "wrong, told",
    [({"email": "x"}, "Email: must be an email address"), ({"state": "XX"}, "State: must be one of ACT"),
     ({"abn": "1" * 51}, "ABN: must be at most 50 characters long")],
)  # fmt: skip
def test_a_wrong_field_shows_the_form_again(
    owner: Browser, client: Client, bright: str, wrong: dict[str, str], told: str
) -> None:
    for path, page in ((HERE, f"{HERE}/new"), (f"{HERE}/{bright}/edit", f"{HERE}/{bright}/edit")):
        answer = owner.send(path, form_on(owner, page) | {"city": "Burnie"} | wrong)
        assert (answer.status_code, told in answer.text) == (422, True), answer.text
        assert 'name="city" type="text" value="Burnie"' in answer.text
    assert [each["entity_name"] for each in client.get("/providers").json()["data"]] == ["Bright Care"]
    assert client.get(f"/providers/{bright}?view=full").json()["city"] == "Hobart"


def test_what_was_changed_is_saved_and_nothing_else(
    server: RunningServer, owner: Browser, client: Client, bright: str
) -> None:
    path = f"{HERE}/{bright}/edit"
    assert owner.send(path, form_on(owner, path)).headers["location"] == f"{HERE}/{bright}"
    assert len(events_of(server, bright)) == 1
    assert owner.send(path, form_on(owner, path) | {"active": "true", "city": ""}).status_code == 303
    kept = client.get(f"/providers/{bright}?view=full").json()
    assert {name: kept[name] for name in FULL} == FULL | {"active": True, "city": None}
    assert events_of(server, bright)[1:] == ["provider.updated by user Robin Hale"]


def test_another_s_change_is_not_overwritten_unseen(owner: Browser, client: Client, bright: str) -> None:
    path = f"{HERE}/{bright}/edit"
    form = form_on(owner, path)
    client.put(f"/providers/{bright}", {"postcode": "7001"})
    answer = owner.send(path, form | {"city": "Burnie"})
    assert (answer.status_code, "changed by somebody else meanwhile" in answer.text) == (409, True)
    assert ("Postcode: 7001" in answer.text, 'value="Burnie"' in answer.text) == (True, True)
    assert client.get(f"/providers/{bright}?view=full").json()["city"] == "Hobart"


def test_the_search_looks_at_beginnings(owner: Browser, client: Client, bright: str) -> None:
    client.made("/providers", {"entity_name": "Calm Care", "abn": "51824753557"})
    client.made("/providers", {"email": "nobody@calm.example.com"})
    assert names_on(owner) == ["Bright Care", "Calm Care", "No name"]
    found = {
        "bright": ["Bright Care"], "BRIGHT  care": ["Bright Care"], "care": [], "51824753556": ["Bright Care"],
        "51 824": ["Bright Care", "Calm Care"], "office@": ["Bright Care"], "nobody@calm": ["No name"], "%": [],
    }  # fmt: skip
    assert {text: names_on(owner, q=text) for text in found} == found
    assert owner.get(HERE).text.count("check: not a valid ABN") == 1
    assert "No provider is like that." in owner.get(HERE, params={"q": "care"}).text


def test_the_list_goes_on_page_by_page(owner: Browser, client: Client) -> None:
    for number in range(60):
        client.made("/providers", {"entity_name": f"Care {number:02}"})
    for base in (HERE, f"{HERE}?q=care"):
        first = owner.get(base).text
        onward = re.search(r'href="([^"]+)" rel="next"', first)
        assert onward
        second = owner.get(unescape(onward[1])).text
        assert [each in first for each in ("Care 00", "Care 49", "Care 50")] == [True, True, False]
        assert [each in second for each in ("Care 49", "Care 50", "Care 59")] == [False, True, True]
        assert f'href="{base}">From the beginning' in second


def test_a_delete_says_what_stays(server: RunningServer, owner: Browser, client: Client, bright: str) -> None:
    page = owner.get(f"{HERE}/{bright}/delete").text
    assert ("Delete Bright Care?" in page, "The invoices stay" in page) == (True, True)
    assert owner.send(f"{HERE}/{bright}/delete").headers["location"] == HERE
    assert "Bright Care is deleted." in owner.get(HERE).text
    assert client.get(f"/providers/{bright}").status_code == 404
    assert events_of(server, bright)[-1] == "provider.deleted by user Robin Hale"
    assert owner.send(f"{HERE}/{bright}/delete").status_code == 404


def test_a_viewer_reads_and_changes_nothing(
    new_browser: Callable[..., Browser], new_person: Callable[..., Person], client: Client, bright: str
) -> None:
    viewer = new_browser(new_person("viewer"))
    page = viewer.get(f"{HERE}/{bright}").text
    assert ("Hobart" in page, "Edit" in page, "Delete" in page) == (True, False, False)
    assert "New provider" not in viewer.get(HERE).text
    for path in (f"{HERE}/new", f"{HERE}/{bright}/edit", f"{HERE}/{bright}/delete"):
        assert viewer.get(path).status_code == 403
    for path in (HERE, f"{HERE}/{bright}/edit", f"{HERE}/{bright}/delete"):
        assert viewer.send(path, {"city": "x"}).status_code == 403
    assert client.get(f"/providers/{bright}?view=full").json()["city"] == "Hobart"


def test_a_provider_of_another_plan_manager_is_not_there(
    new_browser: Callable[..., Browser], new_person: Callable[..., Person], new_plan_manager: Callable[[], UUID],
    client: Client, bright: str,
) -> None:  # fmt: skip
    other = new_browser(new_person("owner", new_plan_manager()))
    for step in ("", "/edit", "/delete"):
        assert other.get(f"{HERE}/{bright}{step}").status_code == 404
    for step in ("/edit", "/delete"):
        assert other.send(f"{HERE}/{bright}{step}", {"was": "x", "city": "x"}).status_code == 404
    assert (names_on(other), names_on(other, q="bright care")) == ([], [])
    assert client.get(f"/providers/{bright}").status_code == 200


def test_texts_are_shown_as_they_are(owner: Browser, client: Client) -> None:
    names = ("entity_name", "abn", "primary_phone_number", "address", "city", "ndis_provider_number")
    made = client.made("/providers", dict.fromkeys(names, SCRIPT))["id"]
    for path in (HERE, *(f"{HERE}/{made}{step}" for step in ("", "/edit", "/delete"))):
        page = owner.get(path).text
        assert (SCRIPT in page, "&lt;script&gt;alert(1)&lt;/script&gt;" in page) == (False, True), path
