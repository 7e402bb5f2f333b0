"""Tags of single resources: 304 when nothing has changed, 412 when something has."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from support.client import Client


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


@pytest.mark.parametrize("resource", ["participants", "providers"])
def test_the_etag_of_either_view_is_accepted(api: Client, resource: str) -> None:
    path, change = create_resource(api, resource)
    basic, full = etag_of(api, path), etag_of(api, f"{path}?view=full")
    assert basic != full
    assert api.put(f"{path}?view=full", change, **if_match(basic)).status_code == 200
    assert api.put(path, {}, **if_match(full)).status_code == 412
    assert api.put(path, {}, **if_match(etag_of(api, f"{path}?view=full"))).status_code == 200


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


def test_lists_have_no_etag(api: Client) -> None:
    assert "etag" not in api.get("/participants").headers
