"""The search: all ways to find a person, a provider or an invoice, and the record of a number."""

import re
from collections.abc import Callable
from html import unescape

import pytest

from plankeeper.console.lists import reading
from plankeeper.http import search_slots
from support.client import Client
from support.console import Account, Browser
from support.form_helpers import form_fields
from support.server import wait_until
from support.sweeps import sweep

PAGE = "/console/search"


@pytest.fixture
def people(client: Client) -> dict[str, str]:
    """The ids of some participants by their last names."""
    created = [
        {"first_name": "Róisín", "last_name": "Kavanagh", "participant_number": "430205409",
         "email": "roisin.kavanagh@example.org", "phone_number": "0491 571 266"},
        {"first_name": "Thảo", "last_name": "Nguyễn", "participant_number": "430 111 222"},
        {"first_name": "Fatima", "last_name": "Al-Masri", "phone_number": "+61 2 5550 1234"},
        {"first_name": "William", "last_name": "Thompson", "preferred_name": "Bee"},
        {"first_name": "明", "last_name": "李"},
        {"first_name": "Bo", "last_name": "O’Dea", "participant_number": "100%_x'\""},
        {"first_name": "محمد", "last_name": "الخطيب"},
    ]  # fmt: skip
    return {each["last_name"]: client.create("/participants", each)["id"] for each in created}


def found(browser: Browser, text: str, **more: str) -> list[str]:
    """The names of all results."""
    response = browser.get(PAGE, params={"q": text, **more})
    assert response.status_code == 200, text
    return [unescape(each) for each in re.findall(r'<li><a href="[^"]+">([^<]*)</a>', response.text)]


@sweep(
    "text, last_name",
    [
        ("Kavan", "Kavanagh"),
        ("Kavanagh, Róisín", "Kavanagh"),
        ("Kavanagh Róisín", "Kavanagh"),
        ("ROISIN KAV", "Kavanagh"),
        ("avanagh", "Kavanagh"),
        ("4302", "Kavanagh"),
        ("205409", "Kavanagh"),
        ("roisin.kavanagh@", "Kavanagh"),
        ("0491 571 266", "Kavanagh"),
        ("0491571266", "Kavanagh"),
        ("+61 491 571 266", "Kavanagh"),
        ("61491571266", "Kavanagh"),
        ("571266", "Kavanagh"),
        ("Nguyen", "Nguyễn"),
        ("Nguyễn", "Nguyễn"),
        ("Nguye\u0302\u0303n", "Nguyễn"),
        ("thao ng", "Nguyễn"),
        ("Al Masri", "Al-Masri"),
        ("AlMasri", "Al-Masri"),
        ("al-masri", "Al-Masri"),
        ("masri fat", "Al-Masri"),
        ("(02) 5550 1234", "Al-Masri"),
        ("Bee", "Thompson"),
        ("bee tho", "Thompson"),
        ("李", "李"),
        ("明 李", "李"),
        ("الخطيب", "الخطيب"),
        ("خطيب", "الخطيب"),
        ("خط", "الخطيب"),
        ("محمد خطيب", "الخطيب"),
        ("خطيب محمد", "الخطيب"),
        ("odea", "O’Dea"),
        ("o'dea", "O’Dea"),
        ("o dea", "O’Dea"),
        ("bo", "O’Dea"),
        ("100%", "O’Dea"),
        ("100%_X", "O’Dea"),
    ],
)
def test_a_participant_is_found(
    owner: Browser, client: Client, people: dict[str, str], text: str, last_name: str
) -> None:
    response = owner.get(PAGE, params={"q": text})
    assert re.findall(r'<a href="/console/participants/([0-9a-f-]{36})">', response.text) == [people[last_name]]
    assert "Similar spelling" not in response.text


@pytest.fixture
def neighbours(client: Client) -> dict[str, str]:
    """The ids of two participants with the same street and birthday, one year apart."""
    created = [
        {"first_name": "Ann", "last_name": "Lee", "date_of_birth": "1987-04-03", "address_line_1": "12 Wattle St",
         "city": "Marrickville", "state": "NSW", "postcode": "2204"},
        {"first_name": "Bo", "last_name": "Wattle", "date_of_birth": "1988-04-03", "address_line_1": "Unit 3/12-14",
         "address_line_2": "Côté Wattle Road", "city": "St Kilda"},
    ]  # fmt: skip
    return {each["first_name"]: client.create("/participants", each)["id"] for each in created}


@sweep("text", ["3/4/1987", "03/04/1987", "1987-04-03", "3 Apr 1987", "3 April 1987", "3.4.1987"])
def test_a_participant_is_found_by_date_of_birth(owner: Browser, neighbours: dict[str, str], text: str) -> None:
    item = (
        f'<li><a href="/console/participants/{neighbours["Ann"]}">Ann Lee</a> <span class="soft">born 3 Apr 1987</span>'
    )
    page = owner.get(PAGE, params={"q": text}).text
    assert item in page
    assert page.count("<li><a") == 1
    [group] = owner.get(f"{PAGE}/suggest", params={"q": text}).json()["groups"]
    assert [(each["title"], each["detail"]) for each in group["results"]] == [("Ann Lee", "born 3 Apr 1987")]


@sweep(
    "text, names",
    [
        ("wattle", ["Bo Wattle", "Ann Lee"]),
        ("wattl", ["Bo Wattle", "Ann Lee"]),
        ("12 wattle", ["Ann Lee", "Bo Wattle"]),
        ("12 Wattle Street", ["Ann Lee", "Bo Wattle"]),
        ("12 Wattle Street, Marrickville NSW 2204", ["Ann Lee"]),
        ("marrick", ["Ann Lee"]),
        ("cote", ["Bo Wattle"]),
        ("3/12 wattle", ["Bo Wattle"]),
        ("St Kilda", ["Bo Wattle"]),
        ("13 wattle", []),
        ("street", []),
        ("nsw", []),
        ("2204", []),
    ],
)
def test_a_participant_is_found_by_address(
    owner: Browser, neighbours: dict[str, str], text: str, names: list[str]
) -> None:
    assert found(owner, text) == names
    for group in owner.get(f"{PAGE}/suggest", params={"q": text}).json()["groups"]:
        assert [each["title"] for each in group["results"]] == names


def test_an_address_is_shown_where_it_was_searched(owner: Browser, neighbours: dict[str, str]) -> None:
    page = owner.get(PAGE, params={"q": "marrickville"}).text
    assert 'Ann Lee</a> <span class="soft">12 Wattle St, Marrickville</span>' in page
    assert "Marrickville" not in owner.get(PAGE, params={"q": "ann lee"}).text
    assert "Côté" not in owner.get(PAGE, params={"q": "wattle"}).text  # the name was found


def test_all_participants_of_an_address_are_on_a_page_of_the_search(owner: Browser, client: Client) -> None:
    for number in range(7):
        client.create("/participants", {"first_name": f"Ann{number}", "address_line_1": f"{number} Banksia Street"})
    [group] = owner.get(f"{PAGE}/suggest", params={"q": "banksia"}).json()["groups"]
    assert group["all"] == {"title": "See all 7 participants", "url": f"{PAGE}?q=banksia&kind=participant"}
    assert len(found(owner, "banksia")) == 6
    assert len(found(owner, "banksia", kind="participant")) == 7


def test_a_list_and_a_field_dont_search_addresses(owner: Browser, client: Client, neighbours: dict[str, str]) -> None:
    for text in ("marrickville", "3 Apr 1987"):
        assert owner.get(f"{PAGE}/suggest", params={"q": text, "kind": "participant"}).json() == {"candidates": []}
        assert client.get("/participants", q=text).json()["data"] == []


@pytest.fixture
def invoices(client: Client, import_rows: Callable[..., object]) -> None:
    totals = {"B-5": 1240, "INV-1240": 7, "B-6": 582.48, "B-7": 1240.00, "582": 1, "X582": 2, "B-8": 582, "B-9": -20}
    import_rows(client, "invoices", [{"invoice_number": name, "total": total} for name, total in totals.items()])


@sweep(
    "text, numbers",
    [
        ("$1,240", ["B-7", "B-5"]),
        ("1,240", ["B-7", "B-5", "INV-1240"]),
        ("1240", ["B-7", "B-5", "INV-1240"]),
        ("1240.00", ["B-7", "B-5"]),
        ("$ 1240", ["B-7", "B-5"]),
        ("582.48", ["B-6"]),
        ("$582.48", ["B-6"]),
        ("582", ["582", "B-8", "X582"]),
        ("$582.4", []),
        ("-20", ["B-9"]),
    ],
)
def test_an_invoice_is_found_by_its_total(owner: Browser, invoices: None, text: str, numbers: list[str]) -> None:
    assert found(owner, text) == numbers
    groups = owner.get(f"{PAGE}/suggest", params={"q": text}).json()["groups"]
    assert [each["title"] for group in groups for each in group["results"]] == numbers


def test_slips_come_after_matches_and_propose_a_correction(
    owner: Browser, client: Client, people: dict[str, str]
) -> None:
    client.create("/participants", {"first_name": "Ann", "last_name": "Kavanah"})
    page = owner.get(PAGE, params={"q": "Kavanah"}).text
    assert re.findall(r'<li><a href="[^"]+">([^<]*)</a>', page) == ["Ann Kavanah", "Róisín Kavanagh"]
    assert page.index("Ann Kavanah") < page.index("Similar spelling") < page.index("Róisín Kavanagh")
    assert found(owner, "Nguyan") == ["Thảo Nguyễn"]
    assert found(owner, "roisin Kavenagh") == ["Róisín Kavanagh"]
    assert '<a href="/console/search?q=nguyen">Nguyen</a>?' in owner.get(PAGE, params={"q": "Nguyan"}).text
    assert found(owner, "Kvnagh") == []


def test_a_slip_in_a_short_word_isnt_forgiven(owner: Browser, client: Client) -> None:
    client.create("/participants", {"first_name": "Anna", "last_name": "Lewi"})
    assert found(owner, "Lewo") == []


def test_whole_words_come_first(owner: Browser, client: Client) -> None:
    for first, last in (("Joanna", "Fox"), ("Annabel", "Fox"), ("Ann", "Fox")):
        client.create("/participants", {"first_name": first, "last_name": last})
    assert found(owner, "ann") == ["Ann Fox", "Annabel Fox", "Joanna Fox"]


def test_a_team_member_is_found_with_the_participant(owner: Browser, client: Client, people: dict[str, str]) -> None:
    team = f"/participants/{people['Kavanagh']}/team-members"
    member = client.create(
        team,
        {"first_name": "Deirdre", "last_name": "Ó Briain", "email": "deirdre@example.org", "role": "Nominee",
         "phone_number": "+61 400 111 222", "secondary_phone_number": "02 5550 9876", "permissions": ["no_access"]},
    )  # fmt: skip
    url = f"/console/participants/{people['Kavanagh']}/team-members/{member['id']}"
    for text in ("deirdre", "O Briain", "obriain", "eirdr", "Deirdri", "deirdre@ex", "0400 111 222", "50 9876"):
        page = owner.get(PAGE, params={"q": text}).text
        assert f'<li><a href="{url}">Deirdre Ó Briain</a> <span class="soft">Nominee of Róisín Kavanagh' in page, text


def test_a_provider_is_found_by_name_abn_and_email(owner: Browser, client: Client) -> None:
    values = {
        "entity_name": "Pewter Pelican Psychology Group",
        "abn": "26 502 811 788",
        "email": "hello@pelican.example",
    }
    provider_id = client.create("/providers", values)["id"]
    for text in ("pelican", "lican psych", "26502", "811 788", "hello@", "Pelicon"):
        assert f'<li><a href="/console/providers/{provider_id}">' in owner.get(PAGE, params={"q": text}).text, text


def test_an_invoice_is_found_by_any_part_of_its_number(
    owner: Browser, client: Client, import_rows: Callable[..., object]
) -> None:
    provider_id = client.create("/providers", {"entity_name": "Pewter"})["id"]
    import_rows(
        client, "invoices", [{"invoice_number": "INV-2026/00166", "total": 12.5, "pm_provider_id": provider_id}]
    )
    for text in ("inv-2026", "INV 2026/00166", "00166", "166", "in"):
        page = owner.get(PAGE, params={"q": text}).text
        assert 'INV-2026/00166</a> <span class="soft">Pewter · $12.50 · New · received ' in page, text
    assert found(owner, "167") == []


@sweep("text", ["430205409", "430 205 409", "430111222"])
def test_a_complete_ndis_number_leads_to_the_participant(owner: Browser, people: dict[str, str], text: str) -> None:
    response = owner.get(PAGE, params={"q": text})
    last_name = "Nguyễn" if text == "430111222" else "Kavanagh"
    assert (response.status_code, response.headers["location"]) == (303, f"/console/participants/{people[last_name]}")


def test_a_number_of_two_participants_leads_to_both(owner: Browser, client: Client, people: dict[str, str]) -> None:
    client.create("/participants", {"first_name": "Ann", "participant_number": "430205409"})
    assert sorted(found(owner, "430205409")) == ["Ann", "Róisín Kavanagh"]


def test_an_id_leads_to_the_record(owner: Browser, client: Client, people: dict[str, str]) -> None:
    provider_id = client.create("/providers", {"entity_name": "Pewter", "abn": "26 502 811 788"})["id"]
    member = {"first_name": "Bo", "permissions": ["no_access"]}
    created = client.create(f"/participants/{people['Kavanagh']}/team-members", member)
    expected = {
        people["Kavanagh"]: f"/console/participants/{people['Kavanagh']}",
        provider_id: f"/console/providers/{provider_id}",
        "26502811788": f"/console/providers/{provider_id}",
        created["user_id"]: f"/console/participants/{people['Kavanagh']}/team-members/{created['id']}",
    }
    for text, url in expected.items():
        assert owner.get(PAGE, params={"q": f" {text} "}).headers["location"] == url


def test_an_empty_result_offers_a_new_participant(
    owner: Browser, new_browser: Callable[..., Browser], new_account: Callable[..., Account]
) -> None:
    page = owner.get(PAGE, params={"q": "Zoë Zabrowska"}).text
    assert "No participants, team members, providers, invoices or notes match “Zoë Zabrowska”." in page
    link = "/console/participants/new?first_name=Zo%C3%AB&amp;last_name=Zabrowska"
    assert f'href="{link}"' in page
    form = form_fields(owner, unescape(link))
    assert (form["first_name"], form["last_name"]) == (["Zoë"], ["Zabrowska"])
    viewer = new_browser(new_account("viewer"))
    assert "/console/participants/new" not in viewer.get(PAGE, params={"q": "Zoë Zabrowska"}).text


def test_people_of_other_plan_managers_are_never_found(
    owner: Browser, other: Client, import_rows: Callable[..., object]
) -> None:
    participant = other.create(
        "/participants",
        {"first_name": "Xanthippe", "last_name": "李", "participant_number": "439999999", "email": "xan@example.org"},
    )
    team = f"/participants/{participant['id']}/team-members"
    other.create(team, {"first_name": "Xanthippe", "email": "xan2@example.org", "permissions": ["no_access"]})
    provider = other.create("/providers", {"entity_name": "Xanthippe", "abn": "26502811788"})
    import_rows(other, "invoices", [{"invoice_number": "Xanthippe-1"}])
    texts = ("Xanthippe", "Xanthipp", "Xantippe", "xan@", "xan", "x", "李", "439999999", "26502811788")
    for text in (*texts, participant["id"], provider["id"]):
        response = owner.get(PAGE, params={"q": text})
        assert (response.status_code, 'class="results"' in response.text) == (200, False), text
        assert owner.get(f"{PAGE}/suggest", params={"q": text}).json() == {"groups": []}
        for kind in ("participant", "provider"):
            assert owner.get(f"{PAGE}/suggest", params={"q": text, "kind": kind}).json() == {"candidates": []}


@sweep("text", ["%", "_", "'", '"', "\\", "%%%", "___", "');--", "{}", "|", "\t", "@", "\U0010ffff", "x" * 255])
def test_special_characters_stand_for_themselves(owner: Browser, people: dict[str, str], text: str) -> None:
    assert found(owner, text) == []
    assert owner.get(f"{PAGE}/suggest", params={"q": text}).json() == {"groups": []}


def test_a_text_with_nul_is_rejected(owner: Browser) -> None:
    assert owner.get(f"{PAGE}?q=a%00b").status_code == 400


def test_suggestions_are_the_best_results(owner: Browser, people: dict[str, str]) -> None:
    kavanagh = {
        "url": f"/console/participants/{people['Kavanagh']}",
        "title": "Róisín Kavanagh",
        "detail": "430 205 409 · 0491 571 266 · roisin.kavanagh@example.org",
    }
    assert owner.get(f"{PAGE}/suggest", params={"q": "kavan"}).json() == {
        "groups": [{"heading": "Participants", "all": None, "results": [kavanagh]}]
    }
    candidate = {"id": people["Kavanagh"], "label": "Róisín Kavanagh", "detail": "430205409"}
    candidate |= {"is_similar": False, "price": ""}
    parameters = {"q": "kavan", "kind": "participant"}
    assert owner.get(f"{PAGE}/suggest", params=parameters).json() == {"candidates": [candidate]}


def test_suggestions_lead_to_all_results(owner: Browser, client: Client) -> None:
    for number in range(6):
        client.create("/participants", {"first_name": f"Ann{number}", "last_name": "Xanadu"})
    [group] = owner.get(f"{PAGE}/suggest", params={"q": "xanadu"}).json()["groups"]
    assert len(group["results"]) == 4
    assert group["all"]["title"] == "See all 6 participants"
    assert owner.get(group["all"]["url"]).text.count(">Xanadu, Ann") == 6


def test_results_are_recorded_as_a_list(owner: Browser, people: dict[str, str], neighbours: dict[str, str]) -> None:
    for text, name, recorded in (
        ("kavan", "Róisín Kavanagh", "kavan"),
        ("marrickville", "Ann Lee", "marrickville"),
        ("3/4/1988", "Bo Wattle", "1988-04-03"),
    ):
        owner.get(PAGE, params={"q": text})
        entry = f"Participant {name} (Search: {recorded})"
        assert wait_until(lambda entry=entry: entry in owner.get("/console/settings/access").text), entry


@pytest.mark.parametrize("path", [PAGE, f"{PAGE}/suggest", "/console/participants", "/console/providers"])
def test_too_many_searches_at_a_time_are_rejected(owner: Browser, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.setattr(search_slots, "MAX_SEARCHES", 0)
    monkeypatch.setattr(search_slots, "MAX_WAIT", 0.01)
    rejected = owner.get(f"{path}?q=anyone")
    assert (rejected.status_code, rejected.headers["retry-after"]) == (503, "5")
    assert "Too many searches of this plan manager are in progress." in rejected.text
    assert owner.get("/console/participants").status_code == 200


@pytest.mark.parametrize("path", ["", "&sort=-plan_end_date"])
def test_a_search_with_many_matches_shows_that_there_are_more(
    client: Client, owner: Browser, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    for number in range(3):
        client.create("/participants", {"first_name": "Broad", "last_name": f"Person {number}"})
    monkeypatch.setattr(reading, "MAX_COUNTED", 2)
    listed = owner.get(f"/console/participants?q=broad{path}").text
    assert "More than 10,000 participants" in listed
    assert [f"Person {number}" in listed for number in range(3)] == [True] * 3
