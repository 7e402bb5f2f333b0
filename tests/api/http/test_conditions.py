"""Tags of single resources: 304 when nothing has changed, 412 when something has."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any

import pytest
from msgspec.structs import fields
from uuid_utils.compat import uuid7

from plankeeper.resources.exit_reasons.schemas import ExitReasonUpdate
from plankeeper.resources.note_types.schemas import NoteTypeUpdate
from plankeeper.resources.participants.schemas import ParticipantUpdate
from plankeeper.resources.providers.schemas import ProviderUpdate
from plankeeper.resources.team_members.schemas import TeamMemberChange
from plankeeper.webhooks.schemas import WebhookEndpointUpdate
from support.client import PREFIX, Client
from support.sweeps import sweep


def create_resource(api: Client, resource: str) -> tuple[str, dict[str, Any]]:
    """The path of a new resource, and a change of it."""
    if resource == "participants":
        return f"/participants/{api.create('/participants', {'first_name': 'Ada'})['id']}", {"first_name": "Bea"}
    if resource == "providers":
        return f"/providers/{api.create('/providers', {'entity_name': 'A'})['id']}", {"entity_name": "B"}
    if resource == "note-types":
        return f"/note-types/{api.create('/note-types', {'note_type': 'A'})['id']}", {"note_type": "B"}
    if resource == "exit-reasons":
        return f"/exit-reasons/{api.create('/exit-reasons', {'name': 'A'})['id']}", {"name": "B"}
    if resource == "webhook-endpoints":
        made = api.create("/webhook-endpoints", {"url": "https://example.com/hooks"})
        return f"/webhook-endpoints/{made['id']}", {"description": "B"}
    team = f"/participants/{api.create('/participants', {})['id']}/team-members"
    return f"{team}/{api.create(team, {'email': 'ada@example.com'})['id']}", {"first_name": "Bea"}


RESOURCES = ["participants", "providers", "exit-reasons", "note-types", "team-members"]


def etag_of(api: Client, path: str) -> str:
    return api.get(path).headers["etag"]


def if_match(sent: str) -> dict[str, Any]:
    return {"headers": {"If-Match": sent}}


@pytest.mark.parametrize("resource", RESOURCES)
def test_a_get_with_a_current_etag_returns_304(api: Client, resource: str) -> None:
    path, change = create_resource(api, resource)
    first = etag_of(api, path)
    for sent in (first, f"W/{first}", f'"other", {first}', "*"):
        again = api.request("GET", path, headers={"If-None-Match": sent})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", first)
        assert "content-type" not in again.headers
    api.put(path, change)
    changed = api.request("GET", path, headers={"If-None-Match": first})
    assert changed.status_code == 200
    assert changed.headers["etag"] != first


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
@pytest.mark.parametrize("resource", RESOURCES)
def test_a_write_with_a_stale_etag_is_rejected_and_writes_nothing(api: Client, resource: str, method: str) -> None:
    path, change = create_resource(api, resource)
    old = etag_of(api, path)
    api.put(path, change)
    new = api.get(path)
    body = {"json": change} if method == "PUT" else {}
    for sent in (old, '"nobody"', f"W/{new.headers['etag']}"):
        rejected = api.request(method, path, **if_match(sent), **body)
        assert (rejected.status_code, rejected.json()["error"]) == (412, "precondition_failed")
    assert api.get(path).content == new.content
    assert api.request(method, path, **if_match(new.headers["etag"]), **body).status_code == 200


# A value for each type of a writable field, other than its default.
VALUES: dict[str, Any] = {
    "email": "new@example.com",
    "remittance_email": "new@example.com",
    "state": "NSW",
    "status": "Lead",
    "permissions": ["view_budget"],
    "contact_priority": 1,
    "active": False,
    "url": "https://example.com/other",
    "event_types": ["participant.*"],
    "payload": "full",
    "remoteness": "remote",
}
BODIES = {
    "participants": ParticipantUpdate,
    "providers": ProviderUpdate,
    "exit-reasons": ExitReasonUpdate,
    "note-types": NoteTypeUpdate,
    "team-members": TeamMemberChange,
    "webhook-endpoints": WebhookEndpointUpdate,
}


def new_value(name: str, kind: str, references: dict[str, str]) -> Any:
    if name in references or name in VALUES:
        return references.get(name) or VALUES[name]
    if "bool" in kind:
        return True
    return "2026-02-03" if "date" in kind else "Changed"


@pytest.mark.parametrize("resource", BODIES)
def test_a_change_of_any_field_makes_an_older_etag_fail(
    api: Client, import_rows: Callable[..., Any], resource: str
) -> None:
    manager, category, reason = (str(uuid7()) for _ in range(3))
    import_rows(api, "account-managers", [{"id": manager, "first_name": "Max"}])
    import_rows(api, "exit-reasons", [{"id": category, "name": "Moved"}])
    import_rows(api, "exit-reasons", [{"id": reason, "name": "Overseas", "parent_id": category}])
    references = {
        "account_manager_id": manager, "exit_reason_category_id": category, "exit_reason_subcategory_id": reason,
        "parent_id": category,
    }  # fmt: skip
    accepted = list[str]()
    for field in fields(BODIES[resource]):
        path, other_change = create_resource(api, resource)
        change = {field.name: new_value(field.name, str(field.type), references)}
        shown = api.get(path)
        if field.name in shown.json() and shown.json()[field.name] is change[field.name]:
            change = {field.name: not change[field.name]}
        old = shown.headers["etag"]
        changed = api.put(path, change)
        assert (changed.status_code, changed.headers["etag"] != old) == (200, True), (change, changed.text)
        statuses = [
            api.put(path, other_change, **if_match(old)).status_code,
            api.request("DELETE", path, **if_match(old)).status_code,
            api.put(path, other_change, **if_match(changed.headers["etag"])).status_code,
        ]
        if statuses != [412, 412, 200]:
            accepted.append(f"{field.name}: {statuses}")
    assert accepted == []


def test_a_renamed_account_manager_is_no_change_of_a_participant(api: Client, import_rows: Callable[..., Any]) -> None:
    manager = str(uuid7())
    import_rows(api, "account-managers", [{"id": manager, "first_name": "Max"}])
    path = f"/participants/{api.create('/participants', {'account_manager_id': manager})['id']}"
    old = etag_of(api, path)
    import_rows(api, "account-managers", [{"id": manager, "first_name": "Ama"}])
    renamed = api.request("GET", path, headers={"If-None-Match": old})
    assert (renamed.status_code, renamed.json()["account_manager"]["name"]) == (200, "Ama")
    assert api.put(path, {"first_name": "Bea"}, **if_match(old)).status_code == 200


def test_if_match_star_accepts_any_existing_resource(api: Client) -> None:
    path, change = create_resource(api, "participants")
    assert api.put(path, change, **if_match("*")).status_code == 200
    api.delete(path)
    assert api.put(path, change, **if_match("*")).status_code == 404


def test_of_two_updates_with_the_same_etag_one_is_rejected(api: Client) -> None:
    path, _ = create_resource(api, "participants")
    for number in range(20):
        seen, barrier = etag_of(api, path), threading.Barrier(2)

        def send(name: str, seen: str = seen, barrier: threading.Barrier = barrier) -> int:
            client = Client(str(api.http.base_url), api.key, api.plan_manager_id)
            barrier.wait()
            with client.http:
                return client.put(path, {"first_name": name}, **if_match(seen)).status_code

        with ThreadPoolExecutor(2) as pool:
            assert sorted(pool.map(send, [f"left {number}", f"right {number}"])) == [200, 412]


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
@pytest.mark.parametrize("resource", RESOURCES)
def test_if_none_match_of_a_write_excludes_versions(api: Client, resource: str, method: str) -> None:
    path, change = create_resource(api, resource)
    current = etag_of(api, path)
    body = {"json": change} if method == "PUT" else {}
    for sent in ("*", current, f"W/{current}", f'"other", {current}'):
        rejected = api.request(method, path, headers={"If-None-Match": sent}, **body)
        assert (rejected.status_code, rejected.json()["error"]) == (412, "precondition_failed")
    assert etag_of(api, path) == current
    headers = {"If-Match": current, "If-None-Match": '"other"'}
    assert api.request(method, path, headers=headers, **body).status_code == 200


def test_a_missing_resource_is_not_found_whatever_the_preconditions(api: Client) -> None:
    path, change = create_resource(api, "participants")
    api.delete(path).raise_for_status()
    for name in ("If-Match", "If-None-Match"):
        for sent in ("*", '"x"'):
            assert api.put(path, change, headers={name: sent}).status_code == 404
            assert api.request("GET", path, headers={name: sent}).status_code == 404


@pytest.mark.parametrize("resource", RESOURCES)
def test_if_match_of_a_read_requires_the_version(api: Client, resource: str) -> None:
    path, change = create_resource(api, resource)
    old = etag_of(api, path)
    for sent in (old, "*"):
        assert api.request("GET", path, **if_match(sent)).status_code == 200
    api.put(path, change).raise_for_status()
    for sent in (old, f"W/{etag_of(api, path)}"):
        rejected = api.request("GET", path, **if_match(sent))
        assert (rejected.status_code, rejected.json()["error"]) == (412, "precondition_failed")
        assert api.request("HEAD", path, **if_match(sent)).status_code == 412


@pytest.mark.parametrize("resource", RESOURCES)
def test_a_write_returns_the_etag_of_the_resource(api: Client, resource: str) -> None:
    path, change = create_resource(api, resource)
    collection, _, id_ = path.rpartition("/")
    created = api.post(collection, change)
    assert created.headers["location"] == f"{PREFIX}{collection}/{created.json()['id']}"
    updated = api.put(path, change)
    assert updated.json()["id"] == (int(id_) if id_.isdigit() else id_)
    assert "location" not in updated.headers
    for response in (created, updated):
        read = api.get(response.headers["content-location"].removeprefix(PREFIX))
        assert (read.content, read.headers["etag"]) == (response.content, response.headers["etag"])
    assert updated.headers["content-location"] == PREFIX + path
    # A chain of updates needs no reads.
    again = api.put(path, change, **if_match(updated.headers["etag"]))
    assert again.status_code == 200


def test_a_replayed_create_names_its_resource(api: Client) -> None:
    first, replayed = (api.post("/providers", {}, headers={"Idempotency-Key": "k"}) for _ in range(2))
    for name in ("location", "content-location", "etag"):
        assert replayed.headers[name] == first.headers[name]


def test_a_response_with_a_secret_has_no_etag(api: Client) -> None:
    created = api.post("/webhook-endpoints", {"url": "https://example.com/hooks"})
    path = f"/webhook-endpoints/{created.json()['id']}"
    assert created.headers["location"] == PREFIX + path
    assert not {"etag", "content-location"} & set(created.headers)
    updated = api.put(path, {"description": "x"})
    assert updated.content == api.get(path).content
    assert updated.headers["etag"] == etag_of(api, path)
    rotated = api.post(f"{path}/rotate-secret")
    assert not {"etag", "content-location", "location"} & set(rotated.headers)


def test_lists_have_no_etag(api: Client) -> None:
    assert "etag" not in api.get("/participants").headers


@sweep(
    "header, tag",
    product(["If-Match", "If-None-Match"], ["5f0c", "", '"5f0c', "'5f0c'", '"a" "b"', 'w/"a"', '"a",']),
)
def test_a_tag_must_be_quoted(api: Client, header: str, tag: str) -> None:
    path = f"/participants/{api.create('/participants', {})['id']}"
    for method, body in (("GET", None), ("PUT", {"city": "x"}), ("DELETE", None)):
        response = api.request(method, path, json=body, headers={header: tag})
        [error] = response.json()["errors"]
        assert (response.status_code, error["field"], error["in"]) == (400, header, "header")
    assert api.get(path).json()["city"] is None


def test_the_error_for_a_weak_tag_says_that_it_never_matches(api: Client) -> None:
    path = f"/participants/{api.create('/participants', {})['id']}"
    tag = api.get(path).headers["etag"]
    response = api.put(path, {"city": "x"}, headers={"If-Match": f"W/{tag}"})
    assert (response.status_code, response.json()["error"]) == (412, "precondition_failed")
    assert "weak tag" in response.json()["detail"]
