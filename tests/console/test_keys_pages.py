"""Settings, API keys: made, shown once, rotated, revoked; and none of another plan manager."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any
from uuid import UUID

import httpx
import pytest

from console.people import Browser, Person
from plankeeper.api_keys import store
from plankeeper.api_keys.schemas import ApiKey
from support.client import Client
from support.server import RunningServer, wait_until

KEYS = "/console/settings/keys"
NEW = {"name": "Nightly report", "scope": ["read"], "lasts": "90"}


@pytest.fixture
def keys(server: RunningServer) -> Callable[[UUID], list[ApiKey]]:
    """The keys of a plan manager, newest first."""
    return lambda plan_manager_id: server.run(store.list_by_plan_manager(server.db, plan_manager_id))


def shown(answer: httpx.Response) -> str:
    """The key on the page that shows it."""
    assert answer.status_code == 200, answer.text
    found = re.search(r'<pre id="secret"[^>]*>([^<]+)</pre>', answer.text)
    assert found
    return unescape(found[1])


def test_a_key_is_shown_once_with_a_command_and_works(
    server: RunningServer, owner: Browser, plan_manager_id: UUID, keys: Any
) -> None:
    answer = owner.send(KEYS, NEW)
    secret = shown(answer)
    command = unescape(answer.text)
    assert f"curl '{server.url}/api/public/v1/participants?limit=1'" in command
    assert (f"Bearer {secret}'" in command, f"X-Plan-Manager-Id: {plan_manager_id}'" in command) == (True, True)
    client = Client(server.url, secret, plan_manager_id)
    assert client.get("/participants").status_code == 200
    assert client.post("/note-types", {"note_type": "x"}).status_code == 403
    client.http.close()
    (kept,) = keys(plan_manager_id)
    assert (kept.name, kept.scopes, kept.created_by, kept.plan_managers) == (
        "Nightly report", ["read"], "Robin Hale", [plan_manager_id],
    )  # fmt: skip
    assert timedelta(days=89) < (kept.expires_at or datetime.now(UTC)) - datetime.now(UTC) <= timedelta(days=90)
    listed = owner.get(KEYS).text
    assert (secret in listed, "Nightly report" in listed, f"…{secret[-4:]}" in listed) == (False, True, True)


@pytest.mark.parametrize(
    "wrong",
    [{"name": ""}, {"name": "x" * 101}, {"scope": []}, {"scope": ["admin"]}, {"lasts": "7"}, {"plan_manager_id": "x"}],
)
def test_a_key_that_cannot_be_made_shows_the_form_again(
    owner: Browser, plan_manager_id: UUID, keys: Any, wrong: dict[str, Any]
) -> None:
    answer = owner.send(KEYS, NEW | wrong)
    assert (answer.status_code, "put right first" in answer.text) == (422, True)
    assert ('value="Nightly report"' in answer.text) == ("name" not in wrong)
    assert keys(plan_manager_id) == []


def test_a_rotated_key_goes_on_for_as_long_as_was_chosen(owner: Browser, plan_manager_id: UUID, keys: Any) -> None:
    first = shown(owner.send(KEYS, NEW))
    (old,) = keys(plan_manager_id)
    assert f"…{first[-4:]}" in owner.get(f"{KEYS}/{old.id}/rotate").text
    second = shown(owner.send(f"{KEYS}/{old.id}/rotate", {"overlap": "24", "lasts": ""}))
    newer, older = keys(plan_manager_id)
    assert (newer.last_four, newer.scopes, newer.expires_at) == (second[-4:], ["read"], None)
    left = older.expires_at - datetime.now(UTC)
    assert timedelta(hours=23) < left <= timedelta(hours=24)


def test_a_revoked_key_is_refused(server: RunningServer, owner: Browser, plan_manager_id: UUID, keys: Any) -> None:
    client = Client(server.url, shown(owner.send(KEYS, NEW)), plan_manager_id)
    (key,) = keys(plan_manager_id)
    assert client.get("/participants").status_code == 200
    assert "Revoke Nightly report?" in owner.get(f"{KEYS}/{key.id}/revoke").text
    assert client.get("/participants").status_code == 200
    assert owner.send(f"{KEYS}/{key.id}/revoke").headers["location"] == KEYS
    assert f"The key Nightly report (…{key.last_four}) is revoked." in owner.get(KEYS).text
    wait_until(lambda: client.get("/participants").status_code == 401)
    client.http.close()
    assert owner.send(f"{KEYS}/{key.id}/revoke").status_code == 404
    assert owner.send(f"{KEYS}/{key.id}/rotate", {"overlap": "0", "lasts": ""}).status_code == 404


def test_a_key_of_another_plan_manager_is_not_there(
    owner: Browser, new_key: Callable[..., str], new_plan_manager: Callable[[], UUID], plan_manager_id: UUID, keys: Any
) -> None:
    foreign, shared_with = new_plan_manager(), new_plan_manager()
    new_key(foreign)
    new_key(plan_manager_id, shared_with)
    own, shared = keys(foreign)[0], keys(plan_manager_id)[0]
    page = owner.get(KEYS).text
    assert (str(own.id) in page, own.last_four in page) == (False, False)
    # A key that reaches further than they do is seen, and theirs neither to rotate nor to revoke.
    assert (shared.last_four in page, "and 1 more" in page, str(shared_with) in page) == (True, True, False)
    for key in (own, shared):
        for step, form in (("revoke", {}), ("rotate", {"overlap": "0", "lasts": ""})):
            assert owner.get(f"{KEYS}/{key.id}/{step}").status_code == 404
            assert owner.send(f"{KEYS}/{key.id}/{step}", form).status_code == 404
    assert keys(foreign) == [own]
    assert owner.send(KEYS, NEW | {"plan_manager_id": str(foreign)}).status_code == 422
    assert keys(foreign) == [own]


def test_what_people_name_their_keys_is_text(owner: Browser) -> None:
    name = "<script>alert(1)</script>'\"><img src=x onerror=alert(1)>"
    assert owner.send(KEYS, NEW | {"name": name}).status_code == 200
    wait_until(lambda: "API key created" in owner.get("/console/activity").text)
    for page in (owner.get(KEYS).text, owner.activity()):
        assert ("<script>alert" in page, "<img src=x" in page, "&lt;script&gt;alert(1)" in page) == (False, False, True)


def test_a_viewer_sees_neither_keys_nor_the_way_to_them(
    new_browser: Callable[..., Browser], new_person: Callable[..., Person]
) -> None:
    viewer = new_browser(new_person("viewer"))
    assert "/console/settings/keys" not in viewer.get("/console/activity").text
    assert viewer.send(KEYS, NEW).status_code == 403
