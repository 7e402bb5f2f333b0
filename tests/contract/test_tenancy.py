"""Law 1, the API's half: another plan manager's ids are as good as none, wherever they are sent."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import httpx
import pytest
from uuid_utils.compat import uuid7

from contract.world import (
    BODIES,
    INVOICE_NUMBER,
    LISTS,
    MEMBER_EMAIL,
    OPERATIONS,
    PROVIDER_EMAIL,
    READS,
    World,
    absent_ids,
    name_of,
    send,
)
from plankeeper.http.routing import PREFIX
from support.client import Client

Contents = Callable[[UUID | str], Any]

WITH_ID = [name for name, operation in OPERATIONS.items() if operation.path_ids]
READS_WITH_ID = [name for name in WITH_ID if name in READS]
# An endpoint that wants what never happens: it has no deliveries, also of what happened just before it was made.
UNHEARD = BODIES["POST /webhook-endpoints"] | {"event_types": ["nothing.happened"]}
# One's own of what a list belongs to.
MADE: dict[str, Callable[[Client], str]] = {
    "participant_id": lambda api: api.made("/participants", {})["id"],
    "webhook_endpoint_id": lambda api: api.made("/webhook-endpoints", UNHEARD)["id"],
}
# Lists that are the same for every plan manager.
SHARED_LISTS = {"GET /error-catalogue": "the catalogue explains the API, and holds nobody's data"}


def answer_of(answer: httpx.Response) -> tuple[int, dict[str, Any]]:
    return answer.status_code, {name: value for name, value in answer.json().items() if name != "request_id"}


@pytest.mark.parametrize("name", WITH_ID)
def test_another_plan_managers_id_is_answered_like_one_that_nobody_has(
    world: World, stranger: World, contents: Contents, name: str
) -> None:
    before = contents(stranger.plan_manager_id), contents(world.plan_manager_id)
    absent = answer_of(send(world.client, name, absent_ids(world)))
    assert absent[0] == 404
    assert absent[1]["error"] == "not_found"
    assert answer_of(send(world.client, name, stranger.ids)) == absent
    for own in OPERATIONS[name].path_ids if len(OPERATIONS[name].path_ids) > 1 else ():
        mixed = stranger.ids | {own: world.ids[own]}
        assert answer_of(send(world.client, name, mixed)) == absent
    assert (contents(stranger.plan_manager_id), contents(world.plan_manager_id)) == before


@pytest.mark.parametrize("name", READS_WITH_ID)
def test_each_id_is_found_by_its_own_plan_manager(world: World, name: str) -> None:
    assert send(world.client, name, world.ids).status_code == 200


@pytest.mark.parametrize("name", [name for name in LISTS if name not in SHARED_LISTS])
@pytest.mark.parametrize("params", [{}, {"after": "0"}], ids=["offset", "cursor"])
def test_a_list_shows_nothing_of_another_plan_manager(
    api: Client, stranger: World, name: str, params: dict[str, str]
) -> None:
    theirs = {each["id"] for each in _items(stranger.client, LISTS[name].path, stranger.ids)}
    assert theirs
    ids = {path_id: MADE[path_id](api) for path_id in LISTS[name].path_ids}
    answer = api.get(LISTS[name].path.removeprefix(PREFIX).format(**ids), limit="1000", **params).json()
    shown = {each["id"] for each in answer["data"]}
    assert not shown & theirs
    if name != "GET /events":  # where its key's own event may stand by now
        assert answer["data"] == []
    assert answer["pagination"]["total"] == (None if params or name == "GET /events" else 0)


def test_the_lists_that_all_share_are_still_there() -> None:
    assert set(SHARED_LISTS) <= set(LISTS)


def _items(client: Client, path: str, ids: dict[str, str]) -> list[Any]:
    items: list[Any] = client.get(path.removeprefix(PREFIX).format(**ids), limit="1000").json()["data"]
    return items


@pytest.mark.parametrize("name", sorted(LISTS))
def test_an_after_of_another_plan_manager_stands_for_its_place_alone(world: World, stranger: World, name: str) -> None:
    """An id need not exist to begin behind it; whose it is must make no difference to what is shown."""
    path = LISTS[name].path
    own = _items(world.client, path, world.ids)
    cursor = "error_code" if name in SHARED_LISTS else "id"
    foreign = _items(stranger.client, path, stranger.ids)[0][cursor]
    answer = world.client.get(path.removeprefix(PREFIX).format(**world.ids), after=str(foreign))
    assert answer.status_code == 200
    assert all(each in own for each in answer.json()["data"])


@pytest.mark.parametrize("member", ["account_manager_id", "exit_reason_category_id", "exit_reason_subcategory_id"])
def test_a_reference_to_another_plan_managers_resource_is_refused_like_an_absent_one(
    world: World, stranger: World, contents: Contents, member: str
) -> None:
    before = contents(world.plan_manager_id)
    own = f"/participants/{world.ids['participant_id']}"
    absent = absent_ids(world)[member]
    for send_ in (lambda body: world.client.post("/participants", body), lambda body: world.client.put(own, body)):
        refused = send_({member: stranger.ids[member]})
        assert refused.status_code == 400
        assert [each["field"] for each in refused.json()["errors"]] == [member]
        assert answer_of(refused) == answer_of(send_({member: absent}))
    assert contents(world.plan_manager_id) == before
    assert world.client.put(own, {member: world.ids[member]}).status_code == 200


@pytest.mark.parametrize(
    "path, parameter, whose",
    [
        ("/participants", "account_manager", "account_manager_id"),
        ("/invoices", "participant_id", "participant_id"),
        ("/invoices", "provider_id", "provider_id"),
        ("/invoice-view-sessions", "invoice_id", "invoice_id"),
        ("/events", "resource_id", "participant_id"),
    ],
)
def test_a_filter_by_another_plan_managers_id_finds_nothing(
    world: World, stranger: World, path: str, parameter: str, whose: str
) -> None:
    own = f"/participants/{world.ids['participant_id']}"
    assert world.client.put(own, {"account_manager_id": world.ids["account_manager_id"]}).status_code == 200
    for params in ({parameter: stranger.ids[whose]}, {parameter: stranger.ids[whose], "after": "0"}):
        assert world.client.get(path, **params).json()["data"] == []
    if path != "/events":
        assert len(world.client.get(path, **{parameter: world.ids[whose]}).json()["data"]) == 1


def test_every_filter_by_an_id_is_tried() -> None:
    takes_ids = {
        (name_of(operation), field)
        for operation in LISTS.values()
        if operation.query
        for field in operation.query.__struct_fields__
        if field.endswith("_id") or field == "account_manager"
    }
    assert takes_ids == {
        ("GET /participants", "account_manager"),
        ("GET /invoices", "participant_id"),
        ("GET /invoices", "provider_id"),
        ("GET /invoice-view-sessions", "invoice_id"),
        ("GET /invoice-view-sessions", "user_id"),  # what was recorded: not an id of anything
        ("GET /events", "resource_id"),
    }


def test_the_status_of_another_plan_managers_invoice_is_not_told(api: Client, stranger: World) -> None:
    question = {"provider_email": PROVIDER_EMAIL, "invoice_number": INVOICE_NUMBER}
    assert stranger.client.post("/invoices/status", question).status_code == 200
    assert api.post("/invoices/status", question).status_code == 404


def test_one_email_can_be_a_user_of_two_plan_managers(world: World, stranger: World) -> None:
    team = f"/participants/{world.ids['participant_id']}/team-members"
    assert [each["email"] for each in world.client.get(team).json()["data"]] == [MEMBER_EMAIL]
    [theirs] = _items(stranger.client, f"/participants/{stranger.ids['participant_id']}/team-members", {})
    assert theirs["email"] == MEMBER_EMAIL
    assert theirs["user_id"] != world.ids["team_member_id"]


@pytest.mark.parametrize(
    "resource, row, field",
    [
        ("participants", {"account_manager_id": "account_manager_id"}, "account_manager_id"),
        ("participants", {"exit_reason_category_id": "exit_reason_category_id"}, "exit_reason_category_id"),
        ("team-members", {"participant_id": "participant_id", "first_name": ""}, "participant_id"),
        ("exit-reasons", {"parent_id": "exit_reason_category_id", "name": ""}, "parent_id"),
    ],
)
def test_an_import_cannot_point_to_another_plan_managers_row(
    world: World, stranger: World, contents: Contents, import_rows: Callable[..., Any],
    resource: str, row: dict[str, str], field: str,
) -> None:  # fmt: skip
    before = contents(world.plan_manager_id)
    line = {name: stranger.ids[value] if value else "Name" for name, value in row.items()}
    report = import_rows(world.client, resource, [line])
    assert [each.field for each in report.bad] == [field]
    assert contents(world.plan_manager_id) == before


@pytest.mark.parametrize(
    "resource, whose, more",
    [
        ("participants", "participant_id", {"first_name": "Taken"}),
        ("providers", "provider_id", {"entity_name": "Taken"}),
        ("note-types", "note_type_id", {"note_type": "Taken"}),
        ("account-managers", "account_manager_id", {"first_name": "Taken"}),
        ("exit-reasons", "exit_reason_category_id", {"name": "Taken"}),
        ("invoices", "invoice_id", {"invoice_number": "Taken"}),
        (
            "invoice-view-sessions",
            "session_id",
            {"invoice_id": "", "user_id": "u", "user_name": "U", "session_started": "2026-01-02T03:04:05Z"},
        ),
    ],
)
def test_an_import_with_another_plan_managers_id_makes_a_row_of_its_own(
    api: Client, stranger: World, contents: Contents, import_rows: Callable[..., Any],
    resource: str, whose: str, more: dict[str, str],
) -> None:  # fmt: skip
    before = contents(stranger.plan_manager_id)
    line = {name: value or str(uuid7()) for name, value in more.items()}
    ident: Any = stranger.ids[whose] if whose != "note_type_id" else int(stranger.ids[whose])
    report = import_rows(api, resource, [{"id": ident, **line}])
    assert (report.bad, report.tally.created, report.tally.changed) == ([], 1, 0)
    assert contents(stranger.plan_manager_id) == before


def test_an_invoice_of_another_plan_managers_participant_and_provider_has_neither(
    api: Client, stranger: World, import_rows: Callable[..., Any]
) -> None:
    line = {
        "invoice_number": "N-2", "invoice_date": "2026-01-02",
        "participant_id": stranger.ids["participant_id"], "pm_provider_id": stranger.ids["provider_id"],
    }  # fmt: skip
    assert not import_rows(api, "invoices", [line]).bad
    [invoice] = api.get("/invoices", invoice_number="N-2").json()["data"]
    assert invoice["state_management"]["errors"] == ["missing_participant", "missing_provider"]
