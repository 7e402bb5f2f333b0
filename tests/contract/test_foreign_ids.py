"""Law 1, with every header that could make an answer say more: another plan manager's id, wherever an id can stand.

The cases are made from the table of routes. An id for which there is no case fails a test.
"""

import json
import re
from collections.abc import Callable, Iterable
from types import UnionType
from typing import Any, Union, get_args, get_origin
from uuid import UUID

import httpx
import msgspec
import pytest
from msgspec import Struct
from uuid_utils.compat import uuid7

from contract.leaks import assert_nothing_of, assert_plain, without_moment
from contract.world import BODIES, OPERATIONS, World, absent_ids, name_of, send
from plankeeper.http.context import WriteContext
from plankeeper.http.routing import PREFIX, WRITE, Operation, Router
from plankeeper.http.schemas import EmptyResponse, Query, UuidText, custom_schema
from support.importing import import_all

Contents = Callable[[UUID | str], Any]

# Whose id a parameter or a member takes, where the world calls it otherwise.
WHOSE = {"account_manager": "account_manager_id", "resource_id": "participant_id", "user_id": "team_member_id"}
# What looks like an id, and is none of a resource.
NO_IDS = {
    ("POST /participants", "service_region_id"): "a kind of region, the same for all",
    ("PUT /participants/{participant_id}", "service_region_id"): "a kind of region, the same for all",
}
# Members that no body takes, beside those of the answers.
NEVER = {
    "id",
    "plan_manager_id",
    "plan_manager",
    "created_at",
    "updated_at",
    "created_by",
    "user_id",
    "scopes",
    "actor",
}

Case = tuple[str, str]


def ids_in(shape: type[Struct] | None) -> list[str]:
    """The members of a shape that take ids, by name or by form; and nested objects, which someone has to look at."""
    if shape is None:
        return []
    _, found = msgspec.json.schema_components([shape], schema_hook=custom_schema)
    properties: dict[str, Any] = found[shape.__name__]["properties"]
    return [name for name, each in properties.items() if name != "after" and _takes_an_id(name, json.dumps(each))]


def _takes_an_id(name: str, schema: str) -> bool:
    return bool(re.search(r"(^|_)(ids?|uuid|key|ref)$", name)) or '"format": "uuid"' in schema or '"$ref"' in schema


def in_bodies(operations: Iterable[Operation]) -> list[Case]:
    return [(name_of(each), member) for each in operations for member in ids_in(each.body)]


def in_queries(operations: Iterable[Operation]) -> list[Case]:
    """All but `after`, which stands for a place: see test_tenancy.py."""
    return [(name_of(each), member) for each in operations for member in ids_in(each.query)]


def in_paths(operations: Iterable[Operation]) -> list[Case]:
    return [(name_of(each), member) for each in operations for member in each.path_ids]


def without_case(cases: Iterable[Case], world: World) -> set[Case]:
    """The cases for which the world has no id to try."""
    return {case for case in cases if case not in NO_IDS and WHOSE.get(case[1], case[1]) not in world.ids}


BODY_CASES = [case for case in in_bodies(OPERATIONS.values()) if case not in NO_IDS]
QUERY_CASES = [case for case in in_queries(OPERATIONS.values()) if case not in NO_IDS]
WITH_ID = [name for name, operation in OPERATIONS.items() if operation.path_ids]


@pytest.fixture(scope="module")
def owner(stranger: World) -> World:
    """The stranger, who has used every filter and every reference."""
    refers = {name: stranger.ids[name] for member in BODY_CASES if (name := member[1]) in stranger.ids}
    assert stranger.client.put(f"/participants/{stranger.ids['participant_id']}", refers).is_success
    seen = {
        "invoice_id": stranger.ids["invoice_id"], "user_id": stranger.ids["team_member_id"], "user_name": "Viewer",
        "session_started": "2026-01-02T03:04:05Z",
    }  # fmt: skip
    server = stranger.server
    assert not server.run(import_all(server, stranger.plan_manager_id, "invoice-view-sessions", [seen])).errors
    return stranger


@pytest.fixture(scope="module")
def owners_headers(owner: World) -> dict[str, dict[str, str]]:
    """For each route with an id the headers with which its owner was answered, or would be."""
    used = f"used-{uuid7()}"
    found: dict[str, dict[str, str]] = {}
    for name in WITH_ID:
        operation = OPERATIONS[name]
        path = operation.path.removeprefix(PREFIX).format(**owner.ids)
        if operation.method == "POST":
            assert send(owner.client, name, owner.ids, owner.client.headers() | {"Idempotency-Key": used}).is_success
        found[name] = {"Idempotency-Key": used}
        if (
            "GET " + operation.path.removeprefix(PREFIX) in OPERATIONS
            and "etag" in (got := owner.client.get(path)).headers
        ):
            found[name] |= {"If-Match": got.headers["etag"], "If-None-Match": got.headers["etag"]}
    return found


@pytest.fixture
def untouched(world: World, owner: World, contents: Contents) -> Any:
    """What both have is the same after a test as before it, events and kept answers too."""
    before = contents(world.plan_manager_id), contents(owner.plan_manager_id)
    yield
    assert (contents(world.plan_manager_id), contents(owner.plan_manager_id)) == before


def test_every_id_of_every_route_has_a_case(world: World) -> None:
    known = [*in_paths(OPERATIONS.values()), *in_bodies(OPERATIONS.values()), *in_queries(OPERATIONS.values())]
    assert without_case(known, world) == set()
    assert len(WITH_ID) > 10
    assert {member for _, member in BODY_CASES} >= {"account_manager_id", "exit_reason_category_id"}
    assert {member for _, member in QUERY_CASES} >= {"account_manager", "resource_id", "user_id", "provider_id"}


def test_the_exceptions_are_still_needed() -> None:
    known = {*in_bodies(OPERATIONS.values()), *in_queries(OPERATIONS.values())}
    assert set(NO_IDS) <= known
    assert set(WHOSE) <= {member for _, member in known}


def test_a_new_route_whose_ids_nobody_tries_would_fail(world: World) -> None:
    class Inner(Struct):
        thing: UUID

    class Filters(Query):
        branch: UuidText | msgspec.UnsetType = msgspec.UNSET
        colour: str = ""

    class Change(Struct):
        plan_id: str
        successor: UUID
        others: list[UuidText]
        nested: Inner
        account_manager_id: UUID
        name: str

    new = Router("new")

    @new.put("/things/{thing_id}", scope=WRITE)
    async def update(call: WriteContext, thing_id: UUID, change: Change, query: Filters) -> EmptyResponse:
        raise NotImplementedError

    route = "PUT /things/{thing_id}"
    assert without_case(in_paths(new.operations), world) == {(route, "thing_id")}
    assert without_case(in_queries(new.operations), world) == {(route, "branch")}
    members = ("plan_id", "successor", "others", "nested")
    assert without_case(in_bodies(new.operations), world) == {(route, each) for each in members}


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("name", WITH_ID)
def test_another_plan_managers_id_in_a_path_is_no_id_whatever_else_is_sent(
    world: World, owner: World, owners_headers: dict[str, dict[str, str]], name: str
) -> None:
    operation, headers = OPERATIONS[name], world.client.headers() | owners_headers[name]
    absent = absent_ids(world)
    mixed = [{each: world.ids[each]} for each in operation.path_ids] if len(operation.path_ids) > 1 else [{}]
    for own in mixed:
        answers = [send(world.client, name, ids | own, headers) for ids in (absent, owner.ids, in_capitals(owner.ids))]
        for answer in answers:
            assert (answer.status_code, answer.json()["error"]) == (404, "not_found")
            assert without_moment(answer) == without_moment(answers[0])
            assert_tells_nothing(owner, answer)
        if operation.method == "GET":
            path = operation.path.removeprefix(PREFIX).format(**(owner.ids | own))
            head = world.client.send("HEAD", path, headers=headers)
            assert (head.status_code, head.content) == (404, b"")
            assert_tells_nothing(owner, head)


def in_capitals(ids: dict[str, str]) -> dict[str, str]:
    return {name: each.upper() for name, each in ids.items()}


def assert_tells_nothing(owner: World, answer: httpx.Response) -> None:
    if answer.status_code >= 400:
        assert_plain(answer)
    assert_nothing_of(owner, answer)


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("name, member", BODY_CASES)
def test_another_plan_managers_id_in_a_body_is_no_id_whatever_else_is_sent(
    world: World, owner: World, owners_headers: dict[str, dict[str, str]], name: str, member: str
) -> None:
    operation, which = OPERATIONS[name], WHOSE.get(member, member)
    path = operation.path.removeprefix(PREFIX).format(**world.ids)
    more = {"Idempotency-Key": str(uuid7())}
    if operation.method == "PUT":
        more["If-Match"] = world.client.get(path).headers["etag"]
    answers = [
        world.client.request(operation.method, path, json=BODIES[name] | {member: value}, headers=more)
        for value in (absent_ids(world)[which], owner.ids[which], owner.ids[which].upper())
    ]
    for answer in answers:
        assert (answer.status_code, [each["field"] for each in answer.json()["errors"]]) == (400, [member])
        assert without_moment(answer) == without_moment(answers[0])
        assert_tells_nothing(owner, answer)


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("name, member", QUERY_CASES)
def test_another_plan_managers_id_in_a_filter_finds_nothing_whatever_else_is_sent(
    world: World, owner: World, name: str, member: str
) -> None:
    which, path = WHOSE.get(member, member), OPERATIONS[name].path.removeprefix(PREFIX).format(**world.ids)
    assert owner.client.get(path, **{member: owner.ids[which]}).json()["data"], "or nothing is proved"
    headers = {"If-None-Match": "*", "Idempotency-Key": str(uuid7())}
    for params in ({}, {"after": "0"}, {"limit": "1000"}, {"offset": "1"} if path != "/events" else {}):
        answers = [
            world.client.request("GET", path, params={member: value} | params, headers=headers)
            for value in (absent_ids(world)[which], owner.ids[which], owner.ids[which].upper())
        ]
        for answer in answers:
            assert (answer.status_code, answer.json()["data"]) == (200, [])
            assert without_moment(answer) == without_moment(answers[0])
            assert_tells_nothing(owner, answer)


def members_of(answer: Any) -> set[str]:
    """The members of an answer, in any of its views."""
    if get_origin(answer) in (Union, UnionType):
        return set().union(*(members_of(each) for each in get_args(answer)))
    return set(answer.__struct_encode_fields__)


@pytest.mark.usefixtures("untouched")
@pytest.mark.parametrize("name", [name for name, each in OPERATIONS.items() if each.body])
def test_a_body_takes_its_own_members_and_none_beside_them(world: World, owner: World, name: str) -> None:
    operation = OPERATIONS[name]
    assert operation.body
    foreign = {"id": owner.ids["participant_id"], "plan_manager_id": owner.client.plan_manager_id}
    path = operation.path.removeprefix(PREFIX).format(**world.ids)
    others = (members_of(operation.response_type) | NEVER) - set(operation.body.__struct_encode_fields__)
    for member in sorted(others):
        value = foreign.get(member, owner.ids["participant_id"])
        answer = world.client.request(operation.method, path, json=BODIES[name] | {member: value})
        assert (answer.status_code, [each["field"] for each in answer.json()["errors"]]) == (400, [member])
        assert_tells_nothing(owner, answer)
    assert others >= {"id", "plan_manager_id"}
