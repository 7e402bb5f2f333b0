"""The list of the members of all teams."""

from typing import Any

from support.client import Client

PATH = "/team-members"


def teams(api: Client, sizes: list[int]) -> list[dict[str, Any]]:
    """The members of new participants, in the order of the list; the first of each team is one person."""
    members: list[dict[str, Any]] = []
    for size in sizes:
        path = f"/participants/{api.create('/participants', {})['id']}/team-members"
        api.create(path, {"email": "Bo@example.com", "permissions": ["view_budget"]})
        for number in range(size - 1):
            api.create(path, {"first_name": f"{number}"})
        members += api.get(path).json()["data"]
    return sorted(members, key=lambda each: (each["participant_id"], each["id"]))


def test_the_list_has_the_members_of_all_teams_with_their_permissions(api: Client, other: Client) -> None:
    teams(other, [2])
    members = teams(api, [1, 3, 2])
    page = api.get(PATH).json()
    assert page["data"] == members
    assert page["pagination"] == {"limit": 20, "offset": 0, "has_more": False, "total": 6, "next_cursor": None}
    assert api.get(PATH, limit=2, offset=3).json()["data"] == members[3:5]
    assert len({each["id"] for each in members}) < len(members)  # a person on three teams


def test_a_walk_by_cursor_returns_each_member_once(api: Client) -> None:
    members = teams(api, [2, 3, 2])
    walked: list[dict[str, Any]] = []
    after = "0"
    while after:
        page = api.get(PATH, limit=2, after=after).json()
        walked += page["data"]
        after = page["pagination"]["next_cursor"]
    assert walked == members


def test_a_cursor_belongs_to_its_filters_and_its_plan_manager(api: Client, other: Client) -> None:
    teams(api, [3])
    after = api.get(PATH, limit=1, after="0").json()["pagination"]["next_cursor"]
    for response in (
        api.get(PATH, after=after, email="bo@example.com"),
        other.get(PATH, after=after),
        api.get("/participants", sort="updated_at", after=after),
        api.get(PATH, after=api.create("/participants", {})["id"]),
    ):
        assert [each["field"] for each in response.json()["errors"]] == ["after"]


def test_the_filters(api: Client) -> None:
    members = teams(api, [2, 1])
    participants = sorted({each["participant_id"] for each in members})
    first = [each for each in members if each["participant_id"] == participants[0]]
    assert api.get(PATH, participant_id=participants[0]).json()["data"] == first
    assert api.get(PATH, participant_id=",".join(participants).upper()).json()["data"] == members
    with_email = [each for each in members if each["email"]]
    assert api.get(PATH, email="BO@example.com").json()["data"] == with_email
    ids = f"{members[0]['id']},{members[2]['id']}"
    assert api.get(PATH, id=ids).json()["data"] == [members[0], members[2]]
    assert api.get(PATH, id=ids).json()["pagination"]["total"] == 2
    assert api.get(PATH).headers["synced-until"]
    path = f"/participants/{members[1]['participant_id']}/team-members/{members[1]['id']}"
    updated = api.put(path, {"role": "Carer"}).json()
    since = api.get(PATH, updated_since=updated["updated_at"]).json()
    assert (since["data"], since["pagination"]["total"]) == ([updated], 1)
