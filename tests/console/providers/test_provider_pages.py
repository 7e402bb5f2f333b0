"""Providers: the list with its search, the record, new, edit, delete."""

import re
from collections.abc import Callable
from html import unescape
from urllib.parse import parse_qsl

import pytest

from support.client import Client
from support.console import Account, Browser
from support.form_helpers import event_summaries, form_fields
from support.server import RunningServer

PAGE = "/console/providers"
SCRIPT = "<script>alert(1)</script>"
FULL_PROVIDER = {
    "entity_name": "Bright Care", "abn": "51 824 753 556", "email": "Office@bright.example.com", "active": False,
    "primary_phone_number": "03 6200 0000", "address": "1 Example St", "city": "Hobart", "state": "TAS",
    "postcode": "7000", "ndis_provider_number": "4050000001",
}  # fmt: skip


@pytest.fixture
def provider_id(client: Client) -> str:
    """The id of a provider whose every field is set."""
    return client.create("/providers", FULL_PROVIDER)["id"]


def listed_names(browser: Browser, **query: str) -> list[str]:
    page = browser.get(PAGE, params=query).text
    return [unescape(each) for each in re.findall(r'class="lead"><a href="[^"]+">([^<]*)</a>', page)]


def test_a_provider_is_added_with_every_field(server: RunningServer, owner: Browser, client: Client) -> None:
    form = form_fields(owner, f"{PAGE}/new")
    assert form["active"] == ["true"]
    del form["active"]
    response = owner.submit(PAGE, form | {name: text for name, text in FULL_PROVIDER.items() if name != "active"})
    new_id = response.headers["location"].removeprefix(f"{PAGE}/")
    stored = client.get(f"/providers/{new_id}").json()
    assert {name: stored[name] for name in FULL_PROVIDER} == FULL_PROVIDER | {"abn": "51824753556"}
    page = owner.get(response.headers["location"]).text
    assert ("Bright Care added." in page, "Invalid ABN" in page, ">Inactive<" in page) == (True, False, True)
    assert event_summaries(server, new_id) == ["provider.created by user Robin Hale"]


@pytest.mark.parametrize(
    "wrong, message",
    [({"email": "x"}, "Email must be an email address"), ({"state": "XX"}, "State must be one of ACT"),
     ({"abn": "1" * 51}, "ABN must be at most 50 characters long")],
)  # fmt: skip
def test_an_invalid_field_shows_the_form_again(
    owner: Browser, client: Client, provider_id: str, wrong: dict[str, str], message: str
) -> None:
    for path, page in ((PAGE, f"{PAGE}/new"), (f"{PAGE}/{provider_id}/edit", f"{PAGE}/{provider_id}/edit")):
        response = owner.submit(path, form_fields(owner, page) | {"city": "Burnie"} | wrong)
        assert (response.status_code, message in response.text) == (422, True), response.text
        assert 'name="city" type="text" value="Burnie"' in response.text
    assert [each["entity_name"] for each in client.get("/providers").json()["data"]] == ["Bright Care"]
    assert client.get(f"/providers/{provider_id}").json()["city"] == "Hobart"


def test_only_changed_fields_are_saved(server: RunningServer, owner: Browser, client: Client, provider_id: str) -> None:
    path = f"{PAGE}/{provider_id}/edit"
    assert owner.submit(path, form_fields(owner, path)).headers["location"] == f"{PAGE}/{provider_id}"
    assert len(event_summaries(server, provider_id)) == 1
    assert owner.submit(path, form_fields(owner, path) | {"active": "true", "city": ""}).status_code == 303
    stored = client.get(f"/providers/{provider_id}").json()
    assert {name: stored[name] for name in FULL_PROVIDER} == FULL_PROVIDER | {"active": True, "city": None}
    assert event_summaries(server, provider_id)[1:] == ["provider.updated by user Robin Hale"]


def test_a_concurrent_change_is_not_overwritten(owner: Browser, client: Client, provider_id: str) -> None:
    path = f"{PAGE}/{provider_id}/edit"
    form = form_fields(owner, path)
    client.put(f"/providers/{provider_id}", {"postcode": "7001"})
    response = owner.submit(path, form | {"city": "Burnie"})
    assert (response.status_code, "Someone else changed this" in response.text) == (409, True)
    assert ("Postcode: 7001" in response.text, 'value="Burnie"' in response.text) == (True, True)
    assert client.get(f"/providers/{provider_id}").json()["city"] == "Hobart"


def test_the_search_matches_parts_of_names(owner: Browser, client: Client, provider_id: str) -> None:
    client.create("/providers", {"entity_name": "Calm Care", "abn": "51824753557"})
    client.create("/providers", {"email": "nobody@calm.example.com"})
    assert listed_names(owner) == ["Bright Care", "Calm Care", "No name"]
    found = {
        "bright": ["Bright Care"], "BRIGHT  care": ["Bright Care"], "care": ["Bright Care", "Calm Care"],
        "51824753556": ["Bright Care"],
        "51 824": ["Bright Care", "Calm Care"], "office@": ["Bright Care"], "nobody@calm": ["No name"], "%": [],
    }  # fmt: skip
    assert {text: listed_names(owner, q=text) for text in found} == found
    assert owner.get(PAGE).text.count("Invalid ABN") == 1
    assert "No providers match." in owner.get(PAGE, params={"q": "cure"}).text


def test_the_list_is_paginated(owner: Browser, client: Client) -> None:
    for number in range(60):
        client.create("/providers", {"entity_name": f"Care {number:02}"})
    for base in (PAGE, f"{PAGE}?q=care"):
        first = owner.get(base).text
        onward = re.search(r'href="([^"]+)" rel="next"', first)
        assert onward
        second = owner.get(unescape(onward[1])).text
        assert [each in first for each in ("Care 00", "Care 49", "Care 50")] == [True, True, False]
        assert [each in second for each in ("Care 49", "Care 50", "Care 59")] == [False, True, True]
        back = re.search(r'href="([^"]+)" rel="prev"', second)
        assert back
        again = owner.get(unescape(back[1])).text
        assert [each in again for each in ("Care 00", "Care 49", "Care 50")] == [True, True, False]


def test_the_list_has_filters_orders_and_a_file(owner: Browser, client: Client, provider_id: str) -> None:
    calm = {"entity_name": "Calm Care", "state": "VIC", "primary_phone_number": "03 9000 0000"}
    calm_id = client.create("/providers", calm)["id"]
    client.create("/providers", {"entity_name": "amber", "state": "TAS"})
    found = {
        "": ["amber", "Bright Care", "Calm Care"], "active=yes": ["amber", "Calm Care"], "active=no": ["Bright Care"],
        "state=TAS": ["amber", "Bright Care"], "state=TAS&active=no": ["Bright Care"], "state=WA": [],
        "sort=-name": ["Calm Care", "Bright Care", "amber"], "q=care&state=VIC": ["Calm Care"],
    }  # fmt: skip
    assert {query: listed_names(owner, **dict(parse_qsl(query))) for query in found} == found
    page = owner.get(PAGE, params={"state": "TAS"}).text
    assert ('class="list-summary">2 providers<' in page, "</span>State: TAS <span" in page) == (True, True)
    file = owner.get(f"{PAGE}.csv?state=VIC").content.decode("utf-8-sig")
    header, row = file.split("\r\n")[:2]
    assert header == "Name,ABN,Suburb,State,Phone,Email,ID,NDIS provider number,Active"
    assert row == f"Calm Care,,,VIC,03 9000 0000,,{calm_id},,yes"


def test_a_provider_keeps_its_place_in_the_list(owner: Browser, client: Client) -> None:
    for name in ("Care A", "Care B", "Care C", "Other"):
        client.create("/providers", {"entity_name": name})
    page = owner.get(PAGE, params={"q": "care", "sort": "-name"}).text
    links = [unescape(each) for each in re.findall(r'class="lead"><a href="([^"]+)"', page)]
    middle = owner.get(links[1]).text
    assert "<span>2 of 3</span>" in middle
    assert re.findall(r'<a href="([^"]+)" rel="(prev|next)"', middle) == [(links[0], "prev"), (links[2], "next")]
    assert '<li><a href="/console/providers?q=care&amp;sort=-name">Providers</a></li>' in middle


def test_a_delete_confirms_what_is_kept(
    server: RunningServer, owner: Browser, client: Client, provider_id: str
) -> None:
    page = owner.get(f"{PAGE}/{provider_id}/delete").text
    assert ("Delete Bright Care?" in page, "Invoices stay linked." in page) == (True, True)
    assert owner.submit(f"{PAGE}/{provider_id}/delete").headers["location"] == PAGE
    assert "Bright Care moved to the trash." in owner.get(PAGE).text
    assert client.get(f"/providers/{provider_id}").status_code == 404
    assert event_summaries(server, provider_id)[-1] == "provider.deleted by user Robin Hale"
    assert owner.submit(f"{PAGE}/{provider_id}/delete").status_code == 404


def test_a_viewer_sees_no_links_to_changes(
    new_browser: Callable[..., Browser], new_account: Callable[..., Account], provider_id: str
) -> None:
    viewer = new_browser(new_account("viewer"))
    page = viewer.get(f"{PAGE}/{provider_id}").text
    assert ("Hobart" in page, "/edit" in page, "Delete" in page) == (True, False, False)
    assert "New provider" not in viewer.get(PAGE).text


def test_texts_are_shown_verbatim(owner: Browser, client: Client) -> None:
    names = ("entity_name", "abn", "primary_phone_number", "address", "city", "ndis_provider_number")
    made = client.create("/providers", dict.fromkeys(names, SCRIPT))["id"]
    for path in (PAGE, *(f"{PAGE}/{made}{step}" for step in ("", "/edit", "/delete"))):
        page = owner.get(path).text
        assert (SCRIPT in page, "&lt;script&gt;alert(1)&lt;/script&gt;" in page) == (False, True), path
