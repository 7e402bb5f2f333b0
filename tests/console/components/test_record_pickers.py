"""Fields that take a record's name, number or id, in the filters of pages, without JavaScript."""

import re
from collections.abc import Callable
from html import unescape
from uuid import UUID

import pytest

from support.client import Client
from support.console import Browser
from support.server import wait_until

ACCESS = "/console/settings/access"


@pytest.fixture
def people(owner: Browser, new_client: Callable[..., Client], plan_manager_id: UUID) -> list[str]:
    """The ids of three participants, of whom two have the same last name. Their pages have been viewed."""
    client = new_client(plan_manager_id)
    created = [
        {"first_name": "Róisín", "last_name": "Kavanagh", "participant_number": "430205409"},
        {"first_name": "Declan", "last_name": "Kavanagh", "participant_number": "430205417"},
        {"first_name": "Thảo", "last_name": "Nguyễn"},
    ]
    ids = [client.create("/participants", each)["id"] for each in created]
    for each in ids:
        owner.get(f"/console/participants/{each}")
    wait_until(lambda: len(shown(owner.get(ACCESS).text)) == len(ids))
    return ids


def shown(page: str) -> list[str]:
    """The records of the rows."""
    return re.findall(r">(Participant [^<]+)</a>", unescape(page))


def candidates(page: str) -> list[tuple[str, str]]:
    """The links below a field: their addresses and their names."""
    found = re.search(r'<ul class="choices-of-filter".*?</ul>', page, re.DOTALL)
    links = re.findall(r'<a href="([^"]+)">([^<]+)</a>', found[0]) if found else []
    return [(unescape(href), unescape(name)) for href, name in links]


@pytest.mark.parametrize("text", ["roisin", "Róisín Kavanagh", "430 205 409", "Kavanagh, Roisin"])
def test_a_name_or_a_number_of_one_record_selects_it(owner: Browser, people: list[str], text: str) -> None:
    page = owner.get(ACCESS, params={"record": text, "person": "robin"}).text
    assert 'value="Róisín Kavanagh"' in page
    assert 'value="Robin Hale"' in page
    assert f'<input type="hidden" name="record_id" value="{people[0]}">' in page
    assert set(shown(page)) == {"Participant Róisín Kavanagh"}


def test_an_id_selects_its_record_and_the_field_shows_the_name(owner: Browser, people: list[str]) -> None:
    page = owner.get(ACCESS, params={"record": people[2]}).text
    assert 'value="Thảo Nguyễn"' in page
    assert shown(page) == ["Participant Thảo Nguyễn"]


def test_the_id_counts_while_the_text_is_the_name(
    owner: Browser, new_client: Callable[..., Client], plan_manager_id: UUID, people: list[str]
) -> None:
    twin = new_client(plan_manager_id).create("/participants", {"first_name": "Róisín", "last_name": "Kavanagh"})["id"]
    chosen = {"record": "Róisín Kavanagh", "record_id": twin}
    assert f'name="record_id" value="{twin}"' in owner.get(ACCESS, params=chosen).text
    chosen["record"] = "Declan Kavanagh"
    assert f'name="record_id" value="{people[1]}"' in owner.get(ACCESS, params=chosen).text


def test_of_several_records_the_page_offers_links(owner: Browser, people: list[str]) -> None:
    page = owner.get(ACCESS, params={"record": "kavanagh", "person": "robin hale"}).text
    [person] = set(re.findall(r"person=([0-9a-f-]{36})", page))
    assert candidates(page) == [
        (f"{ACCESS}?person={person}&record={people[1]}", "Declan Kavanagh"),
        (f"{ACCESS}?person={person}&record={people[0]}", "Róisín Kavanagh"),
    ]
    assert 'aria-invalid="true"' in page
    assert "Which participant or invoice?" in page
    assert shown(page) == []


def test_a_slip_is_proposed_but_not_taken(owner: Browser, people: list[str]) -> None:
    page = owner.get(ACCESS, params={"record": "Nguyan"}).text
    assert [name for _, name in candidates(page)] == ["Thảo Nguyễn"]


def test_a_text_that_names_no_record_is_an_error_and_an_unknown_person_none(owner: Browser, people: list[str]) -> None:
    response = owner.get(ACCESS, params={"record": "Zabrowska"})
    assert (response.status_code, "No participant or invoice matches “Zabrowska”." in response.text) == (422, True)
    response = owner.get(ACCESS, params={"person": "Somebody who left"})
    assert (response.status_code, shown(response.text)) == (200, [])


def test_records_of_other_plan_managers_are_no_candidates(owner: Browser, other: Client, people: list[str]) -> None:
    foreign = other.create("/participants", {"first_name": "Xanthippe", "last_name": "Kavanagh"})["id"]
    for text in ("Xanthippe", foreign):
        page = owner.get(ACCESS, params={"record": text}).text
        assert (candidates(page), 'value="Xanthippe Kavanagh"' in page) == ([], False)
