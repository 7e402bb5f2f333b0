"""Records of other systems: `external_id`, and bulk requests whose items find their records by a value."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from support.client import Client
from support.server import wait_until

Import = Callable[..., Any]

NUMBERS = {"participants": ("participant_number", "430205409", "430 205 409"),
           "providers": ("abn", "51824753556", "51 824 753 556")}  # fmt: skip
NAMES = {"participants": "first_name", "providers": "entity_name"}
WORDS = {"participants": "participant", "providers": "provider"}
in_both = pytest.mark.parametrize("kind", NUMBERS)


def errors_of(response: Any) -> list[tuple[str, str, str]]:
    assert (response.status_code, response.json()["error"]) == (400, "invalid_request"), response.text
    return [(each["field"], each["code"], each["message"]) for each in response.json()["errors"]]


@in_both
def test_an_external_id_is_unique_and_a_filter(api: Client, kind: str) -> None:
    one, other = api.create(f"/{kind}", {"external_id": "crm-1"}), api.create(f"/{kind}", {})
    assert (one["external_id"], other["external_id"]) == ("crm-1", None)
    assert api.get(f"/{kind}", external_id="crm-1").json()["data"] == [one]
    assert api.get(f"/{kind}", external_id="CRM-1").json()["data"] == []
    taken = ("external_id", "duplicate", f"belongs to another {WORDS[kind]}")
    assert errors_of(api.post(f"/{kind}", {"external_id": "crm-1"})) == [taken]
    assert errors_of(api.put(f"/{kind}/{other['id']}", {"external_id": "crm-1"})) == [taken]
    assert api.put(f"/{kind}/{one['id']}", {"external_id": None}).json()["external_id"] is None
    assert api.put(f"/{kind}/{other['id']}", {"external_id": "crm-1"}).json()["external_id"] == "crm-1"
    assert errors_of(api.put(f"/{kind}/{one['id']}", {"external_id": ""})) == [
        ("external_id", "too_short", "must be at least 1 character long")
    ]


@in_both
def test_plan_managers_have_their_own_external_ids(api: Client, other: Client, kind: str) -> None:
    one = other.create(f"/{kind}", {"external_id": "crm-1"})
    assert api.get(f"/{kind}", external_id="crm-1").json()["data"] == []
    [new] = api.post(f"/{kind}/bulk?match=external_id", {"items": [{"external_id": "crm-1"}]}).json()["data"]
    assert new["id"] != one["id"]
    assert other.get(f"/{kind}/{one['id']}").json() == one


def test_the_external_id_of_a_team_member_is_unique_among_all_teams(api: Client, other: Client) -> None:
    teams = [f"/participants/{api.create('/participants', {})['id']}/team-members" for _ in range(2)]
    member = api.create(teams[0], {"first_name": "Lee", "external_id": "crm-1"})
    assert member["external_id"] == "crm-1"
    assert api.get("/team-members", external_id="crm-1").json()["data"] == [member]
    assert other.get("/team-members", external_id="crm-1").json()["data"] == []
    assert api.get(teams[0], external_id="crm-1").json()["data"] == [member]
    assert api.get(teams[1], external_id="crm-1").json()["data"] == []
    assert errors_of(api.post(teams[1], {"first_name": "Kim", "external_id": "crm-1"})) == [
        ("external_id", "duplicate", "belongs to another team member")
    ]
    path = f"{teams[0]}/{member['id']}"
    assert api.put(path, {"external_id": "crm-2"}).json()["external_id"] == "crm-2"


@in_both
def test_an_event_has_the_external_id(api: Client, kind: str) -> None:
    one = api.create(f"/{kind}", {"external_id": "crm-1"})
    [event] = wait_until(lambda: api.get("/events", resource_id=one["id"]).json()["data"])
    assert event["data"]["external_id"] == "crm-1"


@in_both
def test_the_same_request_twice_changes_nothing(api: Client, kind: str) -> None:
    items = [{"external_id": f"crm-{number}", NAMES[kind]: f"Name {number}"} for number in range(3)]
    first = api.post(f"/{kind}/bulk?match=external_id", {"items": items}).json()["data"]
    assert [each["external_id"] for each in first] == ["crm-0", "crm-1", "crm-2"]
    again = api.post(f"/{kind}/bulk?match=external_id", {"items": [*items[::-1], {"external_id": "crm-3"}]})
    *unchanged, new = again.json()["data"]
    assert unchanged == first[::-1]
    assert new["external_id"] == "crm-3"
    assert api.get(f"/{kind}").json()["pagination"]["total"] == 4


@in_both
def test_a_number_is_the_same_with_and_without_spaces_and_hyphens(api: Client, kind: str) -> None:
    name, plain, grouped = NUMBERS[kind]
    one, other = (api.create(f"/{kind}", {name: number}) for number in (grouped, "A 1"))
    response = api.post(f"/{kind}/bulk?match={name}", {"items": [{name: plain}, {name: "A1"}, {name: "A 1"}]})
    matched, new, exact = response.json()["data"]
    assert (matched["id"], matched[name]) == (one["id"], plain)
    assert new["id"] not in (one["id"], other["id"])  # of other texts, spaces count
    assert exact == other
    hyphens = {name: grouped.replace(" ", "-")}
    [matched] = api.post(f"/{kind}/bulk?match={name}", {"items": [hyphens]}).json()["data"]
    assert matched["id"] == one["id"]


@in_both
def test_errors_of_matches_come_with_the_others(api: Client, kind: str) -> None:
    name, plain, grouped = NUMBERS[kind]
    holders = [api.create(f"/{kind}", {name: plain, "external_id": f"crm-{number}"}) for number in range(2)]
    items = [
        {name: grouped},
        {NAMES[kind]: "No number"},
        {name: "7"},
        {name: "7", "email": "wrong"},
        {"id": holders[0]["id"], "external_id": "crm-1"},
        {name: 7},
    ]
    word = WORDS[kind]
    stored = [
        (f"items[0].{name}", "duplicate", "belongs to 2 records: send the `id` of one of them"),
        (f"items[1].{name}", "required", "is required, because each item finds its record by it"),
        (f"items[3].{name}", "duplicate", "is a duplicate of an earlier item"),
        ("items[4].external_id", "duplicate", f"belongs to another {word}"),
    ]
    response = api.post(f"/{kind}/bulk?match={name}", {"items": items})
    assert [each for each in errors_of(response) if "email" not in each[0] and "[5]" not in each[0]] == stored
    assert [each[:2] for each in errors_of(response)] == [
        *(each[:2] for each in stored[:2]),
        ("items[3].email", "invalid_format"), (f"items[3].{name}", "duplicate"),
        ("items[4].external_id", "duplicate"), (f"items[5].{name}", "invalid_type"),
    ]  # fmt: skip
    response = api.post(f"/{kind}/bulk?match={name}", {"items": [{**each, "email": None} for each in items[:5]]})
    assert errors_of(response) == stored
    assert api.get(f"/{kind}").json()["pagination"]["total"] == 2


@in_both
def test_without_match_external_ids_must_not_repeat(api: Client, kind: str) -> None:
    one = api.create(f"/{kind}", {"external_id": "crm-1"})
    items = [{"external_id": "crm-1"}, {"external_id": "new"}, {"external_id": "new"}, {**one, "city": "Perth"}]
    assert errors_of(api.post(f"/{kind}/bulk", {"items": items})) == [
        ("items[0].external_id", "duplicate", f"belongs to another {WORDS[kind]}"),
        ("items[2].external_id", "duplicate", "is a duplicate of an earlier item"),
        ("items[3].external_id", "duplicate", "is a duplicate of an earlier item"),
    ]
    [saved] = api.post(f"/{kind}/bulk", {"items": [{**one, "city": "Perth"}]}).json()["data"]
    assert (saved["id"], saved["city"]) == (one["id"], "Perth")


@in_both
def test_an_unknown_field_to_match_is_rejected(api: Client, kind: str) -> None:
    response = api.post(f"/{kind}/bulk?match=email", {"items": [{}]})
    [error] = response.json()["errors"]
    assert (error["in"], error["field"], error["code"]) == ("query", "match", "not_allowed")
    assert error["allowed"] == ["external_id", NUMBERS[kind][0]]


@in_both
def test_concurrent_requests_create_one_record(api: Client, kind: str) -> None:
    for name in ("external_id", NUMBERS[kind][0]):
        with ThreadPoolExecutor(8) as pool:
            send = lambda _: api.post(f"/{kind}/bulk?match={name}", {"items": [{name: "5"}]})  # noqa: E731, B023
            responses = list(pool.map(send, range(8)))
        assert {each.status_code for each in responses} == {200}
        assert len({each.json()["data"][0]["id"] for each in responses}) == 1
