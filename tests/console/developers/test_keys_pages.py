"""Settings, API keys: made, shown once, rotated, revoked; and none of another plan manager."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any
from uuid import UUID

import httpx
import pytest

from plankeeper.access.api_keys import store
from plankeeper.access.api_keys.schemas import ApiKey
from support.client import Client
from support.console import Account, Browser
from support.server import RunningServer, wait_until
from support.sweeps import sweep

PAGE = "/console/settings/keys"
NEW_KEY = {"name": "Nightly report", "scope": ["read"], "lasts": "90"}


@pytest.fixture
def list_keys(server: RunningServer) -> Callable[[UUID], list[ApiKey]]:
    """The keys of a plan manager, newest first."""
    return lambda plan_manager_id: server.run(store.list_by_plan_manager(server.db, plan_manager_id))


def key_in(response: httpx.Response) -> str:
    """The key on the page that shows it."""
    assert response.status_code == 200, response.text
    match = re.search(r'<pre id="secret"[^>]*>([^<]+)</pre>', response.text)
    assert match
    return unescape(match[1])


def test_a_key_is_shown_once_with_a_command_and_works(
    server: RunningServer, owner: Browser, plan_manager_id: UUID, list_keys: Any
) -> None:
    response = owner.submit(PAGE, NEW_KEY)
    secret = key_in(response)
    command = unescape(response.text)
    assert f"curl '{server.url}/api/public/v1/participants?limit=1'" in command
    assert (f"Bearer {secret}'" in command, f"X-Plan-Manager-Id: {plan_manager_id}'" in command) == (True, True)
    client = Client(server.url, secret, plan_manager_id)
    assert client.get("/participants").status_code == 200
    assert client.post("/note-types", {"note_type": "x"}).status_code == 403
    client.http.close()
    (stored,) = list_keys(plan_manager_id)
    assert (stored.name, stored.scopes, stored.created_by, stored.plan_managers) == (
        "Nightly report", ["read"], "Robin Hale", [plan_manager_id],
    )  # fmt: skip
    assert timedelta(days=89) < (stored.expires_at or datetime.now(UTC)) - datetime.now(UTC) <= timedelta(days=90)
    listed = owner.get(PAGE).text
    assert (secret in listed, "Nightly report" in listed, f"…{secret[-4:]}" in listed) == (False, True, True)


@sweep(
    "wrong",
    [{"name": ""}, {"name": "x" * 101}, {"scope": []}, {"scope": ["admin"]}, {"lasts": "7"}, {"plan_manager_id": "x"}],
    str,
)
def test_an_invalid_key_shows_the_form_again(
    owner: Browser, plan_manager_id: UUID, list_keys: Any, wrong: dict[str, Any]
) -> None:
    response = owner.submit(PAGE, NEW_KEY | wrong)
    assert (response.status_code, "There is a problem" in response.text) == (422, True)
    assert ('value="Nightly report"' in response.text) == ("name" not in wrong)
    assert list_keys(plan_manager_id) == []


def test_a_rotated_key_works_for_the_chosen_overlap(owner: Browser, plan_manager_id: UUID, list_keys: Any) -> None:
    first = key_in(owner.submit(PAGE, NEW_KEY))
    (old,) = list_keys(plan_manager_id)
    assert f"…{first[-4:]}" in owner.get(f"{PAGE}/{old.id}/rotate").text
    second = key_in(owner.submit(f"{PAGE}/{old.id}/rotate", {"overlap": "24", "lasts": ""}))
    newer, older = list_keys(plan_manager_id)
    assert (newer.last_four, newer.scopes, newer.expires_at) == (second[-4:], ["read"], None)
    left = older.expires_at - datetime.now(UTC)
    assert timedelta(hours=23) < left <= timedelta(hours=24)


def test_a_revoked_key_is_rejected(
    server: RunningServer, owner: Browser, plan_manager_id: UUID, list_keys: Any
) -> None:
    client = Client(server.url, key_in(owner.submit(PAGE, NEW_KEY)), plan_manager_id)
    (key,) = list_keys(plan_manager_id)
    assert client.get("/participants").status_code == 200
    assert "Revoke Nightly report?" in owner.get(f"{PAGE}/{key.id}/revoke").text
    assert client.get("/participants").status_code == 200
    assert owner.submit(f"{PAGE}/{key.id}/revoke").headers["location"] == PAGE
    assert f"API key Nightly report (…{key.last_four}) revoked." in owner.get(PAGE).text
    wait_until(lambda: client.get("/participants").status_code == 401)
    client.http.close()
    assert owner.submit(f"{PAGE}/{key.id}/revoke").status_code == 404
    assert owner.submit(f"{PAGE}/{key.id}/rotate", {"overlap": "0", "lasts": ""}).status_code == 404


def test_a_key_of_another_plan_manager_is_not_found(
    owner: Browser,
    new_key: Callable[..., str],
    new_plan_manager: Callable[[], UUID],
    plan_manager_id: UUID,
    list_keys: Any,
) -> None:
    foreign, shared_with = new_plan_manager(), new_plan_manager()
    new_key(foreign)
    new_key(plan_manager_id, shared_with)
    own, shared = list_keys(foreign)[0], list_keys(plan_manager_id)[0]
    page = owner.get(PAGE).text
    assert (str(own.id) in page, own.last_four in page) == (False, False)
    # A key that reaches further than they do is seen, and theirs neither to rotate nor to revoke.
    assert (shared.last_four in page, "and 1 more" in page, str(shared_with) in page) == (True, True, False)
    for key in (own, shared):
        assert owner.get(f"{PAGE}/{key.id}/rotate").status_code == 404
        for step, form in (("revoke", {}), ("rotate", {"overlap": "0", "lasts": ""})):
            assert owner.submit(f"{PAGE}/{key.id}/{step}", form).status_code == 404
    assert owner.get(f"{PAGE}/{own.id}/revoke").status_code == 404
    assert owner.submit(f"{PAGE}/{own.id}/remove-plan-manager").status_code == 404
    assert list_keys(foreign) == [own]
    assert owner.submit(PAGE, NEW_KEY | {"plan_manager_id": str(foreign)}).status_code == 422
    assert list_keys(foreign) == [own]


def test_key_names_are_shown_as_text(owner: Browser) -> None:
    name = "<script>alert(1)</script>'\"><img src=x onerror=alert(1)>"
    assert owner.submit(PAGE, NEW_KEY | {"name": name}).status_code == 200
    for page in (owner.get(PAGE).text, owner.activity("?type=api_key.created")):
        assert ("<script>alert" in page, "<img src=x" in page, "&lt;script&gt;alert(1)" in page) == (False, False, True)


def test_a_viewer_sees_neither_keys_nor_a_link_to_them(
    new_browser: Callable[..., Browser], new_account: Callable[..., Account]
) -> None:
    viewer = new_browser(new_account("viewer"))
    assert "/console/settings/keys" not in viewer.get("/console/activity").text
    assert viewer.submit(PAGE, NEW_KEY).status_code == 403
