"""Tags of single resources: 304 when nothing has changed, 412 when something has."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from support.client import Client


def made(api: Client, resource: str) -> tuple[str, dict[str, Any]]:
    """The path of a new resource, and a change of it."""
    if resource == "participants":
        return f"/participants/{api.made('/participants', {'first_name': 'Ada'})['id']}", {"first_name": "Bea"}
    if resource == "providers":
        return f"/providers/{api.made('/providers', {'entity_name': 'A'})['id']}", {"entity_name": "B"}
    if resource == "note-types":
        return f"/note-types/{api.made('/note-types', {'note_type': 'A'})['id']}", {"note_type": "B"}
    team = f"/participants/{api.made('/participants', {})['id']}/team-members"
    return f"{team}/{api.made(team, {'first_name': 'Ada'})['id']}", {"first_name": "Bea"}


RESOURCES = ["participants", "providers", "note-types", "team-members"]


def tag(api: Client, path: str) -> str:
    return api.get(path).headers["etag"]


def matching(sent: str) -> dict[str, Any]:
    return {"headers": {"If-Match": sent}}


@pytest.mark.parametrize("resource", RESOURCES)
def test_a_get_with_the_tag_it_had_is_answered_without_a_body(api: Client, resource: str) -> None:
    path, change = made(api, resource)
    first = tag(api, path)
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
def test_a_write_with_an_old_tag_is_refused_and_writes_nothing(api: Client, resource: str, method: str) -> None:
    path, change = made(api, resource)
    old = tag(api, path)
    api.put(path, change)
    new = api.get(path)
    body = {"json": change} if method == "PUT" else {}
    for sent in (old, '"nobody"', f"W/{new.headers['etag']}", "junk"):
        refused = api.request(method, path, **matching(sent), **body)
        assert (refused.status_code, refused.json()["error"]) == (412, "precondition_failed")
    assert api.get(path).content == new.content
    assert api.request(method, path, **matching(new.headers["etag"]), **body).status_code == 200


@pytest.mark.parametrize("resource", ["participants", "providers"])
def test_the_tag_of_either_view_will_do(api: Client, resource: str) -> None:
    path, change = made(api, resource)
    basic, full = tag(api, path), tag(api, f"{path}?view=full")
    assert basic != full
    assert api.put(f"{path}?view=full", change, **matching(basic)).status_code == 200
    assert api.put(path, {}, **matching(full)).status_code == 412
    assert api.put(path, {}, **matching(tag(api, f"{path}?view=full"))).status_code == 200


def test_any_tag_will_do_where_a_star_is_sent_but_there_must_be_one(api: Client) -> None:
    path, change = made(api, "participants")
    assert api.put(path, change, **matching("*")).status_code == 200
    api.delete(path)
    assert api.put(path, change, **matching("*")).status_code == 404


def test_of_two_updates_with_one_tag_one_is_refused(api: Client) -> None:
    path, _ = made(api, "participants")
    for number in range(20):
        seen, barrier = tag(api, path), threading.Barrier(2)

        def send(name: str, seen: str = seen, barrier: threading.Barrier = barrier) -> int:
            client = Client(str(api.http.base_url), api.key, api.plan_manager_id)
            barrier.wait()
            with client.http:
                return client.put(path, {"first_name": name}, **matching(seen)).status_code

        with ThreadPoolExecutor(2) as pool:
            assert sorted(pool.map(send, [f"left {number}", f"right {number}"])) == [200, 412]


def test_lists_have_no_tag(api: Client) -> None:
    assert "etag" not in api.get("/participants").headers
