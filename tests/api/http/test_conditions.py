"""Tags of single resources: 304 when nothing has changed, 412 when something has."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from support.client import PREFIX, Client


def create_resource(api: Client, resource: str) -> tuple[str, dict[str, Any]]:
    """The path of a new resource, and a change of it."""
    if resource == "participants":
        return f"/participants/{api.create('/participants', {'first_name': 'Ada'})['id']}", {"first_name": "Bea"}
    if resource == "providers":
        return f"/providers/{api.create('/providers', {'entity_name': 'A'})['id']}", {"entity_name": "B"}
    if resource == "note-types":
        return f"/note-types/{api.create('/note-types', {'note_type': 'A'})['id']}", {"note_type": "B"}
    team = f"/participants/{api.create('/participants', {})['id']}/team-members"
    return f"{team}/{api.create(team, {'first_name': 'Ada'})['id']}", {"first_name": "Bea"}


RESOURCES = ["participants", "providers", "note-types", "team-members"]


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
    for sent in (old, '"nobody"', f"W/{new.headers['etag']}", "junk"):
        rejected = api.request(method, path, **if_match(sent), **body)
        assert (rejected.status_code, rejected.json()["error"]) == (412, "precondition_failed")
    assert api.get(path).content == new.content
    assert api.request(method, path, **if_match(new.headers["etag"]), **body).status_code == 200


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
    for sent in (old, f"W/{etag_of(api, path)}", "junk"):
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
