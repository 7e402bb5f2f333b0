"""Participants: the list with its search, the record, new, edit, delete."""

import re
from collections.abc import Callable, Iterator
from html import unescape
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from console.forms_of import events_of, form_on
from console.people import Browser, Person
from support.client import Client
from support.server import RunningServer

HERE = "/console/participants"
SCRIPT = "<script>alert(1)</script>"
FULL = {
    "first_name": "Ann", "middle_name": "May", "last_name": "Lee", "preferred_name": "Annie",
    "participant_number": "430123456", "email": "ann@example.com", "phone_number": "0400 000 000",
    "date_of_birth": "1990-02-03", "gender": "female", "pronouns": "she/her", "state": "TAS", "postcode": "7000",
    "address_line_1": "1 Example St", "address_line_2": "Unit 2", "city": "Hobart", "service_region_id": "remote",
    "status": "Lead", "approval_required": True, "onboard_date": "2026-01-05", "date_ceased": "2026-11-01",
    "reason_for_leaving": "Moved\naway", "is_pace_plan": True, "plan_start_date": "2026-07-01",
    "plan_end_date": "2027-06-30", "postal_statement": True, "participant_receives_statements": True,
}  # fmt: skip


@pytest.fixture
def client(server: RunningServer, new_key: Callable[..., str], plan_manager_id: UUID) -> Iterator[Client]:
    made = Client(server.url, new_key(plan_manager_id), plan_manager_id)
    yield made
    made.http.close()


@pytest.fixture
def ann(client: Client) -> str:
    """The id of a participant whose every field is set."""
    return client.made("/participants", FULL)["id"]


def names_on(browser: Browser, path: str) -> list[str]:
    return [
        unescape(each)
        for each in re.findall(rf'class="lead"><a href="{HERE}/[^"]+">([^<]*)</a>', browser.get(path).text)
    ]


def test_a_participant_is_added_with_every_field(server: RunningServer, owner: Browser, client: Client) -> None:
    form = form_on(owner, f"{HERE}/new")
    assert form["status"] == ["Active"]
    sent = {name: "true" if value is True else value for name, value in FULL.items()}
    answer = owner.send(HERE, form | sent)
    assert answer.status_code == 303
    new_id = answer.headers["location"].removeprefix(f"{HERE}/")
    kept = client.get(f"/participants/{new_id}?view=full").json()
    assert {name: kept[name] for name in FULL} == FULL
    page = owner.get(answer.headers["location"]).text
    assert "Ann Lee is added." in page
    assert '<time datetime="1990-02-03">3 Feb 1990</time>' in page
    assert events_of(server, new_id) == ["participant.created by user Robin Hale"]


def test_nothing_typed_is_nothing_set(owner: Browser, client: Client) -> None:
    answer = owner.send(HERE, form_on(owner, f"{HERE}/new"))
    page = owner.get(answer.headers["location"]).text
    assert (answer.status_code, "No name" in page, page.count("not set") > 15) == (303, True, True)
    kept = client.get(f"/participants/{answer.headers['location'].rpartition('/')[2]}?view=full").json()
    assert (kept["status"], kept["first_name"], kept["postal_statement"]) == ("Active", None, False)


@pytest.mark.parametrize(
    "wrong, told",
    [
        ({"email": "x"}, "Email: must be an email address"),
        ({"date_of_birth": "3/2/1990"}, "Date of birth: must be a date, YYYY-MM-DD"),
        ({"state": "XX"}, "State: must be one of ACT"),
        ({"status": ""}, "Status: must be"),
        ({"account_manager_id": str(uuid7())}, "Account manager: must be the id of an account manager"),
        ({"exit_reason_category_id": str(uuid7())}, "Exit reason: must be the id of an exit reason"),
    ],
)  # fmt: skip
def test_a_wrong_field_shows_the_form_again(
    owner: Browser, client: Client, ann: str, wrong: dict[str, str], told: str
) -> None:
    for path, page in ((HERE, f"{HERE}/new"), (f"{HERE}/{ann}/edit", f"{HERE}/{ann}/edit")):
        answer = owner.send(path, form_on(owner, page) | {"city": "Devonport"} | wrong)
        assert (answer.status_code, told in answer.text) == (422, True), answer.text
        assert 'name="city" type="text" value="Devonport"' in answer.text
    assert client.get("/participants").json()["pagination"]["total"] == 1
    assert client.get(f"/participants/{ann}?view=full").json()["city"] == "Hobart"


def test_a_form_that_is_sent_back_as_it_was_changes_nothing(server: RunningServer, owner: Browser, ann: str) -> None:
    answer = owner.send(f"{HERE}/{ann}/edit", form_on(owner, f"{HERE}/{ann}/edit"))
    assert answer.headers["location"] == f"{HERE}/{ann}"
    assert [each.split()[0] for each in events_of(server, ann)] == ["participant.created"]


def test_what_was_changed_is_saved_and_nothing_else(
    server: RunningServer, owner: Browser, client: Client, ann: str
) -> None:
    form = form_on(owner, f"{HERE}/{ann}/edit")
    del form["postal_statement"]
    answer = owner.send(
        f"{HERE}/{ann}/edit", form | {"city": " Launceston ", "gender": "", "plan_end_date": "2027-07-01"}
    )
    assert answer.status_code == 303
    after = client.get(f"/participants/{ann}?view=full").json()
    changed = {"city": "Launceston", "gender": None, "plan_end_date": "2027-07-01", "postal_statement": False}
    assert {name: after[name] for name in FULL} == FULL | changed
    assert "The changes are saved." in owner.get(f"{HERE}/{ann}").text
    assert events_of(server, ann)[-1] == "participant.updated by user Robin Hale"


def test_what_would_not_be_taken_today_stays_where_it_is_not_touched(
    server: RunningServer, owner: Browser, client: Client, ann: str
) -> None:
    old = "update participants set email = 'not an email', service_region_id = 'very_remote' where id = $1"
    server.run(server.db.execute(old, UUID(ann)))
    answer = owner.send(f"{HERE}/{ann}/edit", form_on(owner, f"{HERE}/{ann}/edit") | {"city": "Burnie"})
    assert answer.status_code == 303
    after = client.get(f"/participants/{ann}?view=full").json()
    assert (after["email"], after["city"]) == ("not an email", "Burnie")


def test_another_s_change_is_not_overwritten_unseen(
    server: RunningServer, owner: Browser, client: Client, ann: str
) -> None:
    form = form_on(owner, f"{HERE}/{ann}/edit")
    client.put(f"/participants/{ann}", {"city": "Queenstown"})
    refused = owner.send(f"{HERE}/{ann}/edit", form | {"gender": "woman"})
    assert (refused.status_code, "changed by somebody else meanwhile" in refused.text) == (409, True)
    assert ("City: Queenstown" in refused.text, 'name="gender" type="text" value="woman"' in refused.text) == (
        True,
        True,
    )
    assert client.get(f"/participants/{ann}?view=full").json()["gender"] == "female"
    # Whoever has seen it may save all the same.
    mark = re.search(r'name="was" value="([^"]+)"', refused.text)
    assert mark
    again = owner.send(f"{HERE}/{ann}/edit", form | {"gender": "woman", "was": mark[1]})
    assert again.status_code == 303
    after = client.get(f"/participants/{ann}?view=full").json()
    assert (after["city"], after["gender"]) == ("Hobart", "woman")
    assert owner.send(f"{HERE}/{ann}/edit", form | {"was": ""}).status_code == 409


def test_references_are_chosen_by_name(
    server: RunningServer, owner: Browser, client: Client, ann: str, import_rows: Callable[..., Any]
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
    client.put(f"/participants/{ann}", {"account_manager_id": gone})
    import_rows(client, "account-managers", [{"id": gone, "deleted": True}])
    page = owner.get(f"{HERE}/{ann}/edit").text
    assert ("Kim Ray (not active)" in page, "In House" in page) == (True, False)
    assert f'<option value="{gone}" selected>Gus Out (not to be chosen any more)</option>' in page
    form = form_on(owner, f"{HERE}/{ann}/edit")
    assert owner.send(f"{HERE}/{ann}/edit", form | {"city": "Burnie"}).status_code == 303
    form = form_on(owner, f"{HERE}/{ann}/edit")
    form |= {"account_manager_id": kim, "exit_reason_category_id": category, "exit_reason_subcategory_id": detail}
    assert owner.send(f"{HERE}/{ann}/edit", form).status_code == 303
    page = owner.get(f"{HERE}/{ann}").text
    assert all(f"<dd>{name}</dd>" in page for name in ("Kim Ray", "Moved", "Abroad"))
    assert names_on(owner, f"{HERE}?account_manager={kim}") == ["Ann Lee"]
    assert names_on(owner, f"{HERE}?account_manager={gone}") == []


def test_the_search_looks_at_beginnings(owner: Browser, client: Client) -> None:
    people = [
        ("Ann", "Lee", "430111111", "a.lee@example.com"), ("Anna", "van der Berg", "430222222", None),
        ("Leeann", "O'Hara_%", None, "lee@example.com"), ("Zoë", "Ångström", "430333333", None),
    ]  # fmt: skip
    for first, last, number, email in people:
        body = {"first_name": first, "last_name": last, "participant_number": number, "email": email}
        client.made("/participants", body)
    ann, anna, leeann, zoe = "Ann Lee", "Anna van der Berg", "Leeann O'Hara_%", "Zoë Ångström"
    found = {
        "lee": [ann, leeann], "LEE": [ann, leeann], "ann": [ann, anna], "ann le": [ann], "Lee, Ann": [ann],
        "anna van der": [anna], "van  der": [anna], "430 222 222": [anna], "4303": [zoe], "430": [], "lee@": [leeann],
        "o'hara_": [leeann], "%": [], "_": [], "zoë": [zoe], "ång": [zoe], "erg": [], "\\": [],
        "A.LEE@EXAMPLE.COM": [ann],
    }  # fmt: skip
    for text, names in found.items():
        answer = owner.get(HERE, params={"q": text})
        told = [unescape(each) for each in re.findall(r'class="lead"><a href="[^"]+">([^<]*)</a>', answer.text)]
        assert (answer.status_code, told) == (200, names), text
    assert "No participant is like that." in owner.get(HERE, params={"q": "erg"}).text


def test_filters_go_together_and_stay_in_the_links(owner: Browser, client: Client, server: RunningServer) -> None:
    for number in range(120):
        body = {"first_name": f"N{number:03}", "last_name": "Many", "state": "NSW" if number % 2 else "VIC"}
        client.made("/participants", body | {"status": "Lead" if number % 3 == 0 else "Active"})
    path = f"{HERE}?q=many&status=Active&state=NSW"
    wanted = [f"N{number:03} Many" for number in range(120) if number % 3 and number % 2]
    assert names_on(owner, path) == wanted
    for base in (f"{HERE}?q=many", HERE):
        walked, following = [], base
        while following:
            walked.append(names_on(owner, following))
            onward = re.search(r'href="([^"]+)" rel="next"', owner.get(following).text)
            following = unescape(onward[1]) if onward else ""
            assert not following or (base == HERE) == ("q=many" not in following)
        assert [len(each) for each in walked] == [50, 50, 20]
        assert [each for page in walked for each in page] == [f"N{number:03} Many" for number in range(120)]
    for odd in (
        "?status=x&state=y&account_manager=z&after=q",
        "?q=" + "x" * 3000,
        "?after=01900000-0000-7000-8000-000000000000",
    ):
        assert owner.get(HERE + odd).status_code == 200


def test_a_number_that_is_none_is_pointed_out(owner: Browser, client: Client) -> None:
    odd = client.made("/participants", {"first_name": "Odd", "participant_number": "12"})["id"]
    client.made("/participants", {"first_name": "Even", "participant_number": "430123456"})
    assert owner.get(HERE).text.count("check: not 9 digits") == 1
    assert "check: not 9 digits" in owner.get(f"{HERE}/{odd}").text


def test_a_delete_says_what_goes_and_what_stays(
    server: RunningServer, owner: Browser, client: Client, ann: str
) -> None:
    client.made(f"/participants/{ann}/team-members", {"first_name": "Pat"})
    page = owner.get(f"{HERE}/{ann}/delete").text
    assert ("Delete Ann Lee?" in page, "with it 1 team member" in page, "The invoices stay" in page) == (
        True,
        True,
        True,
    )
    answer = owner.send(f"{HERE}/{ann}/delete")
    assert answer.headers["location"] == HERE
    assert "Ann Lee is deleted." in owner.get(HERE).text
    assert client.get(f"/participants/{ann}").status_code == 404
    assert events_of(server, ann)[-1] == "participant.deleted by user Robin Hale"
    assert owner.send(f"{HERE}/{ann}/delete").status_code == 404


def test_a_viewer_reads_and_changes_nothing(
    new_browser: Callable[..., Browser], new_person: Callable[..., Person], client: Client, ann: str
) -> None:
    viewer = new_browser(new_person("viewer"))
    assert "New participant" not in viewer.get(HERE).text
    page = viewer.get(f"{HERE}/{ann}").text
    assert ("Hobart" in page, "Edit" in page, "Delete" in page, "Add a team member" in page) == (
        True,
        False,
        False,
        False,
    )
    for path in (f"{HERE}/new", f"{HERE}/{ann}/edit", f"{HERE}/{ann}/delete"):
        assert viewer.get(path).status_code == 403
    for path in (HERE, f"{HERE}/{ann}/edit", f"{HERE}/{ann}/delete"):
        assert viewer.send(path, {"city": "x"}).status_code == 403
    assert client.get(f"/participants/{ann}?view=full").json()["city"] == "Hobart"


def test_a_participant_of_another_plan_manager_is_not_there(
    new_browser: Callable[..., Browser], new_person: Callable[..., Person], new_plan_manager: Callable[[], UUID],
    client: Client, ann: str,
) -> None:  # fmt: skip
    other = new_browser(new_person("owner", new_plan_manager()))
    for step in ("", "/edit", "/delete"):
        assert other.get(f"{HERE}/{ann}{step}").status_code == 404
    for step in ("/edit", "/delete"):
        assert other.send(f"{HERE}/{ann}{step}", {"was": "x", "city": "x"}).status_code == 404
    assert "Ann" not in other.get(HERE, params={"q": "ann"}).text.replace("such as Ann Le", "").replace(
        'value="ann"', ""
    )
    assert client.get(f"/participants/{ann}").status_code == 200


def test_texts_are_shown_as_they_are(owner: Browser, client: Client) -> None:
    names = (
        "first_name", "middle_name", "last_name", "preferred_name", "participant_number", "phone_number", "gender",
        "pronouns", "address_line_1", "address_line_2", "city", "service_region_id", "reason_for_leaving",
    )  # fmt: skip
    body = dict.fromkeys(names, SCRIPT)
    made = client.made("/participants", body)["id"]
    for path in (HERE, f"{HERE}?q=%3Cscript", f"{HERE}/{made}", f"{HERE}/{made}/edit", f"{HERE}/{made}/delete"):
        page = owner.get(path).text
        assert (SCRIPT in page, "&lt;script&gt;alert(1)&lt;/script&gt;" in page) == (False, True), path
    assert owner.send(f"{HERE}/{made}/edit", form_on(owner, f"{HERE}/{made}/edit")).status_code == 303
    kept = client.get(f"/participants/{made}?view=full").json()
    assert {name: kept[name] for name in names} == body
