"""Pages of lists: by offset with a total, by cursor without; what is refused of either."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from uuid_utils.compat import uuid7

from plankeeper.app import operations
from plankeeper.http.routing import PREFIX
from plankeeper.http.schemas import ListQuery
from support.client import Client

LISTS = [each.path.removeprefix(PREFIX) for each in operations() if each.query and issubclass(each.query, ListQuery)]
UUID_LISTS = [path for path in LISTS if path not in ("/note-types", "/error-catalogue")]
COUNTED = [path for path in LISTS if path != "/events"]
MOST = 2**63 - 1


@pytest.fixture
def at(api: Client) -> Callable[[str], str]:
    """The path of a list, with a resource of its own where it belongs to one."""

    def work(path: str) -> str:
        if "{participant_id}" in path:
            return path.format(participant_id=api.made("/participants", {})["id"])
        if "{webhook_endpoint_id}" in path:
            made = api.made("/webhook-endpoints", {"url": "https://example.com", "event_types": ["none.happens"]})
            return path.format(webhook_endpoint_id=made["id"])
        return path

    return work


def refusals(api: Client, path: str, query: str) -> list[tuple[str, str]]:
    """The fields named in a refusal, with what is said of them."""
    answer = api.request("GET", f"{path}?{query}")
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request"), (query, answer.text)
    return [(each["field"], each["message"]) for each in answer.json()["errors"]]


def walk(api: Client, path: str, limit: int, after: str | None = "0") -> Iterator[dict[str, Any]]:
    """The pages of a cursor walk."""
    while after is not None:
        page = api.get(path, limit=limit, after=after).json()
        yield page
        after = page["pagination"]["next_cursor"]


def names(count: int) -> list[str]:
    return [f"number {n}" for n in range(count)]


def test_there_are_lists() -> None:
    assert sorted(LISTS) == sorted(
        [
            "/participants", "/participants/{participant_id}/team-members", "/account-managers", "/note-types",
            "/providers", "/invoices", "/invoice-view-sessions", "/events", "/error-catalogue", "/webhook-endpoints",
            "/webhook-endpoints/{webhook_endpoint_id}/deliveries",
        ]
    )  # fmt: skip


BAD_LIMITS = {
    "0": "must be at least 1",
    "-1": "must be at least 1",
    "1001": "must be at most 1000",
    "1" + "0" * 30: "must be at most 1000",
    "abc": "must be a whole number, not a string",
    "1.0": "must be a whole number, not a string",
    "%2B5": "must be a whole number, not a string",
    "0x10": "must be a whole number, not a string",
    "１": "must be a whole number, not a string",
    "9" * 50: "must be a whole number, not a string",
    "": "must not be empty",
    "%00": "must not contain the character U+0000",
}


@pytest.mark.parametrize("path", LISTS)
def test_a_limit_is_a_number_from_1_to_1000(api: Client, at: Callable[[str], str], path: str) -> None:
    place = at(path)
    for limit, message in BAD_LIMITS.items():
        assert refusals(api, place, f"limit={limit}") == [("limit", message)]
    for limit in (1, 1000):
        assert api.get(place, limit=limit).json()["pagination"]["limit"] == limit


@pytest.mark.parametrize("path", LISTS)
def test_an_offset_is_a_number_from_0_that_fits(api: Client, at: Callable[[str], str], path: str) -> None:
    place = at(path)
    assert refusals(api, place, "offset=-1") == [("offset", "must be at least 0")]
    assert refusals(api, place, f"offset=1{'0' * 30}") == [("offset", f"must be at most {MOST}")]
    assert refusals(api, place, f"offset={MOST + 1}") == [("offset", f"must be at most {MOST}")]
    assert refusals(api, place, "offset=abc") == [("offset", "must be a whole number, not a string")]
    assert refusals(api, place, "offset=") == [("offset", "must not be empty")]


@pytest.mark.parametrize("path", COUNTED)
def test_a_huge_offset_that_fits_is_an_empty_page(api: Client, at: Callable[[str], str], path: str) -> None:
    for limit in (20, 1000):
        page = api.get(at(path), offset=MOST, limit=limit).json()
        assert page["data"] == []
        meta = {"limit": limit, "offset": MOST, "has_more": False, "next_cursor": None}
        assert page["pagination"] == meta | {"total": page["pagination"]["total"]}


@pytest.mark.parametrize("path", UUID_LISTS)
def test_a_list_by_uuid_is_walked_by_uuid_alone(api: Client, at: Callable[[str], str], path: str) -> None:
    place = at(path)
    says = [("after", "must be 0 or a UUID with its hyphens")]
    for wrong in ("5", "abc", "-1", uuid7().hex, f"{{{uuid7()}}}", f"{uuid7()}0", "00"):
        assert refusals(api, place, f"after={wrong}") == says
    assert refusals(api, place, "after=") == [("after", "must not be empty")]
    assert api.get(place, after=str(uuid7()).upper()).json()["data"] == []


def test_note_types_are_walked_by_number_and_the_catalogue_by_code(api: Client) -> None:
    for wrong in ("abc", "-1", "1.5", str(uuid7()), "9" * 19):
        assert refusals(api, "/note-types", f"after={wrong}") == [("after", "must be 0 or a whole number")]
    for wrong in ("5", "Not_found", str(uuid7()), "not-found"):
        assert refusals(api, "/error-catalogue", f"after={wrong}") == [("after", "must be 0 or an error code")]


@pytest.mark.parametrize("path", LISTS)
def test_a_cursor_goes_with_no_offset_but_0(api: Client, at: Callable[[str], str], path: str) -> None:
    place = at(path)
    answer = api.get(place, after="0", offset=1)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")
    assert [each["field"] for each in answer.json()["errors"]] == ["offset"]
    allowed = api.get(place, after="0", offset=0)
    assert (allowed.status_code, allowed.json()["pagination"]["offset"]) == (200, 0)


@pytest.mark.parametrize("path", LISTS)
def test_unknown_and_repeated_parameters_are_named(api: Client, at: Callable[[str], str], path: str) -> None:
    place = at(path)
    [(field, message)] = refusals(api, place, "statsu=Active")
    assert field == "statsu"
    assert message.startswith("is not known; known are limit, offset, after")
    assert refusals(api, place, "limit=5&limit=5") == [("limit", "must not be repeated")]
    assert {field for field, _ in refusals(api, place, "limit=0&offset=-1&after=!&colour=red")} == {
        "limit", "offset", "after", "colour",
    }  # fmt: skip


def test_pages_by_offset_state_the_total(api: Client) -> None:
    made = [api.made("/providers", {"entity_name": name}) for name in names(5)]
    for offset, has_more in ((0, True), (2, True), (3, False), (4, False), (5, False), (99, False)):
        page = api.get("/providers", limit=2, offset=offset).json()
        meta = {"limit": 2, "offset": offset, "has_more": has_more, "total": 5, "next_cursor": None}
        assert page == {"data": made[offset : offset + 2], "pagination": meta}


def test_a_page_has_20_items_unless_asked_otherwise(api: Client) -> None:
    made = [api.made("/note-types", {"note_type": name}) for name in names(21)]
    meta = {"limit": 20, "offset": 0, "has_more": True, "total": 21, "next_cursor": None}
    assert api.get("/note-types").json() == {"data": made[:20], "pagination": meta}


def test_pages_by_cursor_state_the_next_cursor_and_no_total(api: Client) -> None:
    made = [api.made("/providers", {"entity_name": name}) for name in names(4)]
    first, second = walk(api, "/providers", 2)
    meta = {"limit": 2, "offset": 0, "total": None}
    assert first == {
        "data": made[:2], "pagination": meta | {"has_more": True, "next_cursor": made[1]["id"]},
    }  # fmt: skip
    # The last page is full, and yet nothing follows it.
    assert second == {"data": made[2:], "pagination": meta | {"has_more": False, "next_cursor": None}}


def test_both_modes_have_one_order_ascending_by_id(api: Client) -> None:
    ids = [api.made("/participants", {"first_name": name})["id"] for name in reversed(names(7))]
    assert ids == sorted(ids)
    by_offset = [each["id"] for at in (0, 3, 6) for each in api.get("/participants", limit=3, offset=at).json()["data"]]
    by_cursor = [each["id"] for page in walk(api, "/participants", 3) for each in page["data"]]
    assert by_offset == by_cursor == ids


def test_a_cursor_need_not_exist_any_more(api: Client) -> None:
    made = [api.made("/providers", {"entity_name": name}) for name in names(4)]
    assert api.delete(f"/providers/{made[1]['id']}").status_code == 200
    assert api.get("/providers", after=made[1]["id"]).json()["data"] == made[2:]
    assert api.get("/providers", after=made[1]["id"].upper()).json()["data"] == made[2:]


def test_a_walk_sees_each_row_that_stays_once_whatever_comes_and_goes(api: Client) -> None:
    made = [api.made("/providers", {"entity_name": name})["id"] for name in names(8)]
    seen: list[str] = []
    added: list[str] = []
    gone = {2: [made[0], made[1]], 4: [made[7]]}
    for page in walk(api, "/providers", 2):
        seen += [each["id"] for each in page["data"]]
        for each in gone.get(len(seen), []):
            assert api.delete(f"/providers/{each}").status_code == 200
        if len(added) < 2:
            added.append(api.made("/providers", {"entity_name": "late"})["id"])
    assert seen == [*made[:7], *added]


def test_a_filter_narrows_both_modes_and_the_total(api: Client) -> None:
    wanted = [
        api.made("/providers", {"entity_name": name, "abn": abn}) for name, abn in zip("abcd", "1212", strict=True)
    ]
    page = api.get("/providers", abn="2", limit=1).json()
    meta = {"limit": 1, "offset": 0, "has_more": True, "total": 2, "next_cursor": None}
    assert page == {"data": [wanted[1]], "pagination": meta}
    ends = api.get("/providers", abn="2", limit=1, after=wanted[1]["id"]).json()
    assert ends["data"] == [wanted[3]]
    assert ends["pagination"] == meta | {"has_more": False, "total": None}
