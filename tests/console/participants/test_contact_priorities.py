"""The primary and the secondary contact swap priorities in one step, with an event for each, also concurrently."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.client import Client
from support.console import Account, Browser
from support.form_helpers import event_summaries, form_fields
from support.server import RunningServer

UPDATED = ["team_member.created by api_key test", "team_member.updated by user Robin Hale"]


@pytest.fixture
def team(client: Client) -> "Team":
    return Team(client)


class Team:
    """A participant's team over the API, by first names."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.participant_id = client.create("/participants", {"first_name": "Ann", "last_name": "Lee"})["id"]
        self.path = f"/participants/{self.participant_id}/team-members"
        self.page = f"/console{self.path}"
        self.ids = dict[str, str]()

    def add(self, name: str, priority: int | None = None) -> str:
        self.ids[name] = self.client.create(self.path, {"first_name": name, "contact_priority": priority})["id"]
        return self.ids[name]

    def priorities(self) -> dict[str, int | None]:
        return {each["first_name"]: each["contact_priority"] for each in self.client.get(self.path).json()["data"]}


def test_the_primary_contact_is_replaced_in_one_step(server: RunningServer, owner: Browser, team: Team) -> None:
    charlotte, deirdre = team.add("Charlotte", 1), team.add("Deirdre")
    page = owner.get(f"/console/participants/{team.participant_id}/team").text
    assert "contact: Deirdre</span></button>" in page
    assert "contact: Charlotte</span></button>" not in page
    response = owner.submit(f"{team.page}/{deirdre}/make-primary")
    assert response.headers["location"] == f"/console/participants/{team.participant_id}/team"
    page = owner.get(response.headers["location"]).text
    assert "Deirdre is now the primary contact. Charlotte is now the secondary contact." in page
    assert team.priorities() == {"Charlotte": 2, "Deirdre": 1}
    assert [event_summaries(server, each) for each in (charlotte, deirdre)] == [UPDATED, UPDATED]


def test_the_contacts_change_places(server: RunningServer, owner: Browser, team: Team) -> None:
    charlotte, deirdre = team.add("Charlotte", 1), team.add("Deirdre", 2)
    assert owner.submit(f"{team.page}/{deirdre}/make-primary").status_code == 303
    assert team.priorities() == {"Charlotte": 2, "Deirdre": 1}
    assert [event_summaries(server, each) for each in (charlotte, deirdre)] == [UPDATED, UPDATED]
    assert owner.submit(f"{team.page}/{deirdre}/make-primary").status_code == 303  # again: nothing changes
    assert [event_summaries(server, each) for each in (charlotte, deirdre)] == [UPDATED, UPDATED]


def test_a_third_contact_replaces_the_primary_one_alone(server: RunningServer, owner: Browser, team: Team) -> None:
    team.add("Charlotte", 1)
    sam = team.add("Sam", 2)
    deirdre = team.add("Deirdre")
    path = f"{team.page}/{deirdre}/edit"
    assert "Primary contact, instead of Charlotte" in owner.get(path).text
    assert owner.submit(path, form_fields(owner, path) | {"contact_priority": "1"}).status_code == 303
    assert team.priorities() == {"Charlotte": None, "Sam": 2, "Deirdre": 1}
    assert len(event_summaries(server, sam)) == 1


def test_a_new_member_becomes_the_primary_contact_in_two_pages(
    server: RunningServer, owner: Browser, team: Team
) -> None:
    charlotte = team.add("Charlotte", 1)
    form = form_fields(owner, f"{team.page}/new")  # the first page
    assert "Primary contact. Charlotte becomes the secondary contact" in owner.get(f"{team.page}/new").text
    form |= {
        "first_name": "Deirdre", "email": "deirdre@example.com", "role": "Plan nominee", "contact_priority": "1",
        "permissions": ["view_invoices", "approve_invoices"],
    }  # fmt: skip
    response = owner.submit(team.page, form)
    page = owner.get(response.headers["location"]).text  # the second page
    assert "Deirdre added to the team. Deirdre is now the primary contact. Charlotte is now the secondary" in page
    assert team.priorities() == {"Charlotte": 2, "Deirdre": 1}
    assert event_summaries(server, charlotte) == UPDATED


def test_the_secondary_contact_is_replaced_in_the_form(owner: Browser, team: Team) -> None:
    team.add("Charlotte", 1)
    team.add("Sam", 2)
    path = f"{team.page}/{team.ids['Charlotte']}/edit"
    assert "Secondary contact. Sam becomes the primary contact" in owner.get(path).text
    assert owner.submit(path, form_fields(owner, path) | {"contact_priority": "2"}).status_code == 303
    assert team.priorities() == {"Charlotte": 2, "Sam": 1}


def test_members_who_become_primary_at_the_same_moment(
    new_browser: Callable[..., Browser], new_account: Callable[..., Account], team: Team
) -> None:
    names = ["Charlotte", "Deirdre", "Sam", "Kim"]
    for name, priority in zip(names, (1, 2, None, None), strict=True):
        team.add(name, priority)
    browsers = {name: new_browser(new_account("manager")) for name in names}
    for browser in browsers.values():
        browser.csrf()

    def make_primary(name: str) -> int:
        return browsers[name].submit(f"{team.page}/{team.ids[name]}/make-primary").status_code

    with ThreadPoolExecutor(len(names)) as threads:
        for _ in range(5):
            assert list(threads.map(make_primary, names)) == [303] * len(names)
            assert sorted(each for each in team.priorities().values() if each) == [1, 2]


def test_a_member_of_another_team_is_not_found(owner: Browser, team: Team, client: Client) -> None:
    other = Team(client)
    stranger = other.add("Stranger")
    assert owner.submit(f"{team.page}/{stranger}/make-primary").status_code == 404
    assert other.priorities() == {"Stranger": None}
