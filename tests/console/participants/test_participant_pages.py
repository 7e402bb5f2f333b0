"""Participants: the list with its search, the record, new, edit, delete."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from html import unescape
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from uuid_utils.compat import uuid7

from plankeeper.console.participants.form import SECTIONS
from support.client import PREFIX, Client
from support.console import Account, Browser
from support.form_helpers import event_summaries, form_fields, require_linked_errors
from support.server import RunningServer
from support.sweeps import sweep

PAGE = "/console/participants"
SCRIPT = "<script>alert(1)</script>"
FULL_PARTICIPANT = {
    "first_name": "Ann", "middle_name": "May", "last_name": "Lee", "preferred_name": "Annie",
    "participant_number": "430123456", "email": "ann@example.com", "phone_number": "0400 000 000",
    "date_of_birth": "1990-02-03", "gender": "female", "pronouns": "she/her", "state": "TAS", "postcode": "7000",
    "address_line_1": "1 Example St", "address_line_2": "Unit 2", "city": "Hobart", "service_region_id": "remote",
    "status": "Inactive", "approval_required": True, "onboard_date": "2026-01-05", "date_ceased": "2026-11-01",
    "reason_for_leaving": "Moved\naway", "is_pace_plan": True, "plan_start_date": "2026-07-01",
    "plan_end_date": "2027-06-30", "postal_statement": True, "participant_receives_statements": True,
    "managed_from": "2026-07-01", "managed_until": "2026-11-01", "deceased_on": "2025-11-03", "remoteness": "remote",
}  # fmt: skip


@pytest.fixture
def participant_id(client: Client) -> str:
    """The id of a participant whose every field is set."""
    return client.create("/participants", FULL_PARTICIPANT)["id"]


def listed_names(browser: Browser, path: str) -> list[str]:
    return [
        unescape(each)
        for each in re.findall(rf'class="lead"><a href="{PAGE}/[^"]+">([^<]*)</a>', browser.get(path).text)
    ]


def test_a_participant_is_added_with_every_field(server: RunningServer, owner: Browser, client: Client) -> None:
    form = form_fields(owner, f"{PAGE}/new")
    assert form["status"] == ["Active"]
    sent = {name: "true" if value is True else value for name, value in FULL_PARTICIPANT.items()}
    response = owner.submit(PAGE, form | sent)
    assert response.status_code == 303
    new_id = response.headers["location"].removeprefix(f"{PAGE}/")
    stored = client.get(f"/participants/{new_id}").json()
    assert {name: stored[name] for name in FULL_PARTICIPANT} == FULL_PARTICIPANT
    page = owner.get(response.headers["location"]).text
    assert "Ann Lee added." in page
    assert '<time datetime="1990-02-03">3 Feb 1990</time>' in page
    assert event_summaries(server, new_id) == ["participant.created by user Robin Hale"]


def test_a_participant_without_a_name_or_a_number_is_rejected(owner: Browser, client: Client) -> None:
    response = owner.submit(PAGE, form_fields(owner, f"{PAGE}/new"))
    assert (response.status_code, require_linked_errors(response.text)) == (422, ["first_name"])
    assert "Enter a name or an NDIS number." in response.text
    assert client.get("/participants").json()["data"] == []


def test_a_form_with_only_a_name_sets_nothing_else(owner: Browser, client: Client) -> None:
    response = owner.submit(PAGE, form_fields(owner, f"{PAGE}/new") | {"first_name": "Bo"})
    page = owner.get(response.headers["location"]).text
    assert (response.status_code, "Bo added." in page) == (303, True)
    assert "Add middle name, last name, preferred name, NDIS number, date of birth, gender" in page
    stored = client.get(f"/participants/{response.headers['location'].rpartition('/')[2]}").json()
    assert (stored["status"], stored["last_name"], stored["postal_statement"]) == ("Active", None, False)


@sweep(
    "wrong, message",
    [
        ({"email": "x"}, "Email must be an email address"),
        ({"date_of_birth": "31/2/1990"}, "Date of birth 31 Feb 1990 doesn’t exist"),
        ({"state": "XX"}, "State must be one of ACT"),
        ({"status": ""}, "Status must be"),
        ({"account_manager_id": str(uuid7())}, "Account manager must be the id of an account manager"),
        ({"exit_reason_category_id": str(uuid7())}, "Exit reason must be the id of an exit reason"),
        ({"deceased_on": "1/1/2100"}, "Date of death must not be in the future."),
    ],
)  # fmt: skip
def test_an_invalid_field_shows_the_form_again(
    owner: Browser, client: Client, participant_id: str, wrong: dict[str, str], message: str
) -> None:
    section = next(name for name, section in SECTIONS.items() if set(wrong) <= set(section.fields))
    path = f"{PAGE}/{participant_id}/edit/{section}"
    kept = "Devonport" if section == "address" else None
    for action, page in ((PAGE, f"{PAGE}/new"), (path, path)):
        response = owner.submit(action, form_fields(owner, page) | {"first_name": "Bo", "city": "Devonport"} | wrong)
        assert (response.status_code, message in response.text) == (422, True), response.text
        assert require_linked_errors(response.text) == list(wrong)
        if action == PAGE or kept:
            assert 'name="city" type="text" value="Devonport"' in response.text
    assert client.get("/participants").json()["pagination"]["total"] == 1
    assert client.get(f"/participants/{participant_id}").json()["city"] == "Hobart"


def test_a_management_that_ends_before_it_begins_shows_the_form_again(owner: Browser, participant_id: str) -> None:
    path = f"{PAGE}/{participant_id}/edit/plan"
    response = owner.submit(path, form_fields(owner, path) | {"managed_until": "30/6/2026"})
    assert (response.status_code, require_linked_errors(response.text)) == (422, ["managed_until"])
    assert "Managed until must be on or after the first managed day, 1 Jul 2026." in response.text


def test_the_first_section_is_the_way_to_all(owner: Browser, participant_id: str) -> None:
    assert owner.get(f"{PAGE}/{participant_id}/edit").headers["location"] == f"{PAGE}/{participant_id}/edit/person"
    page = owner.get(f"{PAGE}/{participant_id}/edit/person").text
    for name in SECTIONS:
        assert f'href="{PAGE}/{participant_id}/edit/{name}"' in page
    assert owner.get(f"{PAGE}/{participant_id}/edit/nothing").status_code == 404


@pytest.mark.parametrize("section", SECTIONS)
def test_an_unchanged_form_changes_nothing(
    server: RunningServer, owner: Browser, participant_id: str, section: str
) -> None:
    path = f"{PAGE}/{participant_id}/edit/{section}"
    form = form_fields(owner, path)
    assert set(form) - {"was"} <= set(SECTIONS[section].fields)
    assert owner.submit(path, form).headers["location"] == f"{PAGE}/{participant_id}"
    assert [each.split()[0] for each in event_summaries(server, participant_id)] == ["participant.created"]


def test_only_the_changed_fields_of_a_section_are_saved(
    server: RunningServer, owner: Browser, client: Client, participant_id: str
) -> None:
    changes: dict[str, dict[str, Any]] = {
        "address": {"city": " Launceston "},
        "person": {"gender": "", "date_of_birth": "4/3/1990", "participant_number": "430 123 457"},
        "plan": {"plan_end_date": "1 July 2027"},
        "contact": {},
    }
    for section, changed in changes.items():
        path = f"{PAGE}/{participant_id}/edit/{section}"
        form = form_fields(owner, path) | changed
        form.pop("postal_statement", None)
        assert owner.submit(path, form).status_code == 303
    after = client.get(f"/participants/{participant_id}").json()
    stored = {
        "city": "Launceston", "gender": None, "date_of_birth": "1990-03-04", "participant_number": "430123457",
        "plan_end_date": "2027-07-01", "postal_statement": False,
    }  # fmt: skip
    assert {name: after[name] for name in FULL_PARTICIPANT} == FULL_PARTICIPANT | stored
    assert "Changes saved: Statements by post." in owner.get(f"{PAGE}/{participant_id}").text
    assert event_summaries(server, participant_id)[1:] == ["participant.updated by user Robin Hale"] * len(changes)


def test_values_that_are_no_longer_valid_are_kept_when_unchanged(
    server: RunningServer, owner: Browser, client: Client, participant_id: str
) -> None:
    old = "update participants set email = 'not an email', phone_number = 'abc' where id = $1"
    server.run(server.db.execute(old, UUID(participant_id)))
    path = f"{PAGE}/{participant_id}/edit/contact"
    form = form_fields(owner, path)
    del form["postal_statement"]
    assert owner.submit(path, form).status_code == 303
    # Not checked against the OpenAPI document, which promises an email address.
    after = client.http.get(f"{PREFIX}/participants/{participant_id}", headers=client.headers()).json()
    assert (after["email"], after["phone_number"], after["postal_statement"]) == ("not an email", "abc", False)


def test_a_concurrent_change_of_the_section_is_not_overwritten(
    owner: Browser, client: Client, participant_id: str
) -> None:
    path = f"{PAGE}/{participant_id}/edit/person"
    form = form_fields(owner, path)
    client.put(f"/participants/{participant_id}", {"preferred_name": "Queenie", "date_of_birth": "1990-02-04"})
    rejected = owner.submit(path, form | {"gender": "woman"})
    assert (rejected.status_code, "Someone else changed this" in rejected.text) == (409, True)
    assert [
        "Preferred name: Queenie" in rejected.text,
        "Date of birth: 4 Feb 1990" in rejected.text,
        'name="gender" type="text" value="woman"' in rejected.text,
    ] == [True] * 3
    assert client.get(f"/participants/{participant_id}").json()["gender"] == "female"
    # Whoever has seen it may save all the same.
    mark = re.search(r'name="was" value="([^"]+)"', rejected.text)
    assert mark
    assert owner.submit(path, form | {"gender": "woman", "was": mark[1]}).status_code == 303
    after = client.get(f"/participants/{participant_id}").json()
    assert (after["preferred_name"], after["gender"]) == ("Annie", "woman")
    assert owner.submit(path, form | {"was": ""}).status_code == 409


def test_a_concurrent_change_of_another_section_is_no_conflict(
    owner: Browser, client: Client, participant_id: str
) -> None:
    path = f"{PAGE}/{participant_id}/edit/person"
    form = form_fields(owner, path)
    client.put(f"/participants/{participant_id}", {"city": "Queenstown"})
    assert owner.submit(path, form | {"gender": "woman"}).status_code == 303
    after = client.get(f"/participants/{participant_id}").json()
    assert (after["city"], after["gender"]) == ("Queenstown", "woman")


def test_references_are_chosen_by_name(
    server: RunningServer, owner: Browser, client: Client, participant_id: str, import_rows: Callable[..., Any]
) -> None:
    kim, gone, category, detail = (str(uuid7()) for _ in range(4))
    import_rows(client, "account-managers", [
        {"id": kim, "first_name": "Kim", "last_name": "Ray", "email": "kim@example.com", "active": False},
        {"id": gone, "first_name": "Gus", "last_name": "Out", "email": "gus@example.com"},
        {"id": str(uuid7()), "first_name": "In", "last_name": "House", "email": "in@example.com", "is_internal": True},
    ])  # fmt: skip
    import_rows(client, "exit-reasons", [
        {"id": category, "name": "Moved"}, {"id": detail, "name": "Abroad", "parent_id": category},
    ])  # fmt: skip
    client.put(f"/participants/{participant_id}", {"account_manager_id": gone})
    import_rows(client, "account-managers", [{"id": gone, "deleted": True}])
    manager_path, exit_path = (f"{PAGE}/{participant_id}/edit/{name}" for name in ("manager", "exit"))
    page = owner.get(manager_path).text
    assert ("Kim Ray (inactive)" in page, "In House" in page) == (True, False)
    assert f'<option value="{gone}" selected>Gus Out (no longer available)</option>' in page
    assert owner.submit(manager_path, form_fields(owner, manager_path)).status_code == 303
    form = form_fields(owner, manager_path) | {"account_manager_id": kim}
    assert owner.submit(manager_path, form).status_code == 303
    form = form_fields(owner, exit_path)
    form |= {"exit_reason_category_id": category, "exit_reason_subcategory_id": detail}
    assert owner.submit(exit_path, form).status_code == 303
    page = owner.get(f"{PAGE}/{participant_id}").text
    assert all(f"<dd>{name}</dd>" in page for name in ("Kim Ray", "Moved", "Abroad"))
    assert listed_names(owner, f"{PAGE}?account_manager={kim}") == ["Lee, Ann"]
    client.create("/participants", {"last_name": "Abel"})
    client.create("/participants", {"last_name": "Zahn", "account_manager_id": kim, "status": "Lead", "state": "ACT"})
    for sort, names in {
        "account_manager": ["Lee, Ann", "Zahn", "Abel"], "-account_manager": ["Zahn", "Lee, Ann", "Abel"],
        "-status": ["Zahn", "Lee, Ann"], "state": ["Zahn", "Lee, Ann", "Abel"],
    }.items():  # fmt: skip
        found = listed_names(owner, f"{PAGE}?sort={sort}")
        assert [each for each in found if each in names] == names, sort
    assert listed_names(owner, f"{PAGE}?account_manager={gone}") == []


def test_the_search_matches_parts_of_names(owner: Browser, client: Client) -> None:
    people = [
        ("Ann", "Lee", "430111111", "a.lee@example.com"), ("Anna", "van der Berg", "430222222", None),
        ("Leeann", "O'Hara_%", None, "lee@example.com"), ("Zoë", "Ångström", "430333333", None),
    ]  # fmt: skip
    for first, last, number, email in people:
        body = {"first_name": first, "last_name": last, "participant_number": number, "email": email}
        client.create("/participants", body)
    ann, anna, leeann, zoe = "Lee, Ann", "van der Berg, Anna", "O'Hara_%, Leeann", "Ångström, Zoë"
    found = {
        "lee": [ann, leeann], "LEE": [ann, leeann], "ann": [ann, leeann, anna], "ann le": [ann, leeann],
        "Lee, Ann": [ann, leeann], "an": [ann, anna, zoe],
        "anna van der": [anna], "van  der": [anna], "430 222 222": [anna], "4303": [zoe], "430": [], "lee@": [leeann],
        "o'hara_": [leeann], "%": [], "_": [], "zoë": [zoe], "ång": [zoe], "erg": [anna], "ANGSTROM": [zoe], "\\": [],
        "A.LEE@EXAMPLE.COM": [ann],
    }  # fmt: skip
    for text, names in found.items():
        response = owner.get(PAGE, params={"q": text})
        reported = [unescape(each) for each in re.findall(r'class="lead"><a href="[^"]+">([^<]*)</a>', response.text)]
        assert (response.status_code, reported) == (200, names), text
    nothing = owner.get(PAGE, params={"q": "erh"}).text
    assert ("No participants match." in nothing, "Clear filters" in nothing, "New participant" in nothing) == (
        True,
    ) * 3


def test_the_list_is_in_order_of_last_and_first_names(owner: Browser, client: Client) -> None:
    people = [("Zoe", "Lee"), ("ann", "Lee"), ("Bo", "lee"), (None, "LEE"), ("Al", "Leeson"), ("Abe", None)]
    for first, last in people:
        client.create("/participants", {"first_name": first, "last_name": last, "status": "Active"})
    names = ["LEE", "Lee, ann", "lee, Bo", "Lee, Zoe", "Leeson, Al", "Abe"]
    for query in ("", "?status=Active"):
        assert listed_names(owner, PAGE + query) == names, query
    assert listed_names(owner, f"{PAGE}?sort=-name") == [*names[-2::-1], "Abe"]
    page = owner.get(PAGE).text
    url = re.search(r'class="lead"><a href="([^"]+)">lee, Bo<', page)
    assert url
    page = owner.get(unescape(url[1])).text
    assert ("3 of 6" in page, "Bo lee" in page) == (True, True)
    neighbours = [re.search(rf'href="([^"]+)" rel="{rel}"', page) for rel in ("prev", "next")]
    assert ["ann Lee" in owner.get(unescape(each[1])).text for each in neighbours[:1] if each] == [True]
    assert ["Zoe Lee" in owner.get(unescape(each[1])).text for each in neighbours[1:] if each] == [True]


def test_filters_combine_and_stay_in_the_links(owner: Browser, client: Client, server: RunningServer) -> None:
    for number in range(120):
        body = {"first_name": f"N{number:03}", "last_name": "Many", "state": "NSW" if number % 2 else "VIC"}
        client.create("/participants", body | {"status": "Lead" if number % 3 == 0 else "Active"})
    path = f"{PAGE}?q=many&status=Active&state=NSW"
    wanted = [f"Many, N{number:03}" for number in range(120) if number % 3 and number % 2]
    assert listed_names(owner, path) == wanted
    for base in (f"{PAGE}?q=many", PAGE):
        walked, following = [], base
        while following:
            walked.append(listed_names(owner, following))
            onward = re.search(r'href="([^"]+)" rel="next"', owner.get(following).text)
            following = unescape(onward[1]) if onward else ""
            assert not following or (base == PAGE) == ("q=many" not in following)
        assert [len(each) for each in walked] == [50, 50, 20]
        assert [each for page in walked for each in page] == [f"Many, N{number:03}" for number in range(120)]
    for odd in ("?after=q", "?after=01900000-0000-7000-8000-000000000000", "?sort=odd&size=7"):
        assert (owner.get(PAGE + odd).status_code, len(listed_names(owner, PAGE + odd))) == (200, 50)
    for odd in ("?status=x", "?state=y", "?account_manager=z", "?q=" + "x" * 256, "?plan_end_from=soon"):
        assert (owner.get(PAGE + odd).status_code, listed_names(owner, PAGE + odd)) == (422, [])


def test_plans_that_end_are_sorted_by_their_end_without_those_that_have_ended(owner: Browser, client: Client) -> None:
    today = datetime.now(ZoneInfo("Australia/Sydney")).date()
    for name, days in (("Far", 59), ("Soon", 3), ("Later", 29), ("Today", 0), ("Gone", -1), ("Past", -400)):
        end = {"plan_end_date": str(today + timedelta(days=days)), "last_name": name, "status": "Active"}
        client.create("/participants", end)
    views = dict(re.findall(r'<a href="([^"]+)"[^>]*>(Plan (?:ending|expired)[^<]+)</a>', owner.get(PAGE).text))
    found = {name: listed_names(owner, unescape(url)) for url, name in views.items()}
    assert found == {
        "Plan ending soon": ["Today", "Soon", "Later"], "Plan expired, still active": ["Past", "Gone"],
    }  # fmt: skip
    last = today + timedelta(days=59)
    for query, names in {
        "plan_end=60d": ["Today", "Soon", "Later", "Far"],
        f"plan_end_to={last}": ["Today", "Soon", "Later", "Far"],
        f"plan_end_from=1/1/2000&plan_end_to={last}": ["Past", "Gone", "Today", "Soon", "Later", "Far"],
        f"plan_end_to={today - timedelta(days=1)}": ["Past", "Gone"],
    }.items():
        assert listed_names(owner, f"{PAGE}?{query}&sort=plan_end_date") == names, query
    assert f"Plan ends by {last.day} {last:%b %Y} <" in owner.get(f"{PAGE}?plan_end_to={last}").text
    for preset in ("this_month", "this_quarter"):
        names = listed_names(owner, f"{PAGE}?plan_end={preset}&sort=plan_end_date")
        assert (names[:1], {"Gone", "Past"} & set(names)) == (["Today"], set()), preset


def test_an_invalid_number_is_flagged(owner: Browser, client: Client) -> None:
    odd = client.create("/participants", {"first_name": "Odd", "participant_number": "12"})["id"]
    client.create("/participants", {"first_name": "Even", "participant_number": "430123456"})
    assert owner.get(PAGE).text.count("Not 9 digits") == 1
    assert "Not 9 digits" in owner.get(f"{PAGE}/{odd}").text


def test_a_delete_confirms_what_is_removed_and_what_is_kept(
    server: RunningServer, owner: Browser, client: Client, participant_id: str
) -> None:
    client.create(f"/participants/{participant_id}/team-members", {"first_name": "Pat"})
    page = owner.get(f"{PAGE}/{participant_id}/delete").text
    assert (
        "Delete Ann Lee?" in page,
        "moves the participant and 1 team member to the" in page,
        "Invoices stay linked." in page,
    ) == (
        True,
        True,
        True,
    )
    response = owner.submit(f"{PAGE}/{participant_id}/delete")
    assert response.headers["location"] == PAGE
    assert "Ann Lee moved to the trash." in owner.get(PAGE).text
    assert client.get(f"/participants/{participant_id}").status_code == 404
    assert event_summaries(server, participant_id)[-1] == "participant.deleted by user Robin Hale"
    assert owner.submit(f"{PAGE}/{participant_id}/delete").status_code == 404


def test_the_delete_page_suggests_the_status_inactive_to_others(
    owner: Browser, client: Client, participant_id: str
) -> None:
    path, suggestion = f"{PAGE}/{participant_id}", "set the status to"
    assert suggestion not in owner.get(f"{path}/delete").text
    client.put(f"/participants/{participant_id}", {"status": "Active"})
    page = owner.get(f"{path}/delete").text
    assert f'{suggestion} <a href="{path}/edit/exit">Inactive</a>' in page


def test_a_viewer_sees_no_links_to_changes(
    new_browser: Callable[..., Browser], new_account: Callable[..., Account], participant_id: str
) -> None:
    viewer = new_browser(new_account("viewer"))
    assert "New participant" not in viewer.get(PAGE).text
    page = viewer.get(f"{PAGE}/{participant_id}").text
    assert ("Hobart" in page, "/edit" in page, "Delete" in page, "Add team member" in page) == (
        True,
        False,
        False,
        False,
    )


def test_texts_are_shown_verbatim(owner: Browser, client: Client) -> None:
    names = (
        "first_name", "middle_name", "last_name", "preferred_name", "participant_number", "phone_number", "gender",
        "pronouns", "address_line_1", "address_line_2", "city", "service_region_id", "reason_for_leaving",
    )  # fmt: skip
    body = dict.fromkeys(names, SCRIPT)
    made = client.create("/participants", body)["id"]
    sections = [f"{PAGE}/{made}/edit/{name}" for name in SECTIONS]
    for path in (PAGE, f"{PAGE}?q=%3Cscript", f"{PAGE}/{made}", *sections, f"{PAGE}/{made}/delete"):
        page = owner.get(path).text
        assert (SCRIPT in page, "&lt;script&gt;alert(1)&lt;/script&gt;" in page) == (False, True), path
    for path in sections:
        assert owner.submit(path, form_fields(owner, path)).status_code == 303
    stored = client.get(f"/participants/{made}").json()
    assert {name: stored[name] for name in names} == body
