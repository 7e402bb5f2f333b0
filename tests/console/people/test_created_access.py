"""Keys and invitations end with the role of the person who created them; every plan manager can cut a key's access."""

import asyncio
import re
from collections.abc import Callable
from html import unescape
from typing import Any
from uuid import UUID

import pytest
from msgspec import Struct

from plankeeper.access.accounts import member_store
from plankeeper.access.accounts import members as member_service
from plankeeper.access.api_keys import store
from plankeeper.core.context import SYSTEM, WriteContext
from support.client import Client
from support.console import Account, Browser, create_account
from support.server import RunningServer, wait_until

PEOPLE, KEYS = "/console/settings/people", "/console/settings/keys"


class EventRow(Struct):
    type: str
    data: str | None


class TwoPlanManagers:
    """A manager of two plan managers who has a key for both, and invited somebody to the first as its owner."""

    def __init__(self, server: RunningServer, first: UUID, second: UUID, browser: Browser) -> None:
        self.server, self.first, self.second = server, first, second
        self.person = server.run(create_account(server, first, "owner", "Dana Both"))
        server.run(self._join_second())
        assert browser.sign_in(self.person).status_code == 303
        self.browser = browser
        browser.submit("/console/plan-managers", {"plan_manager_id": str(first)})
        form = {"name": "Both", "scope": ["read"], "lasts": "365", "plan_manager_id": [str(first), str(second)]}
        page = browser.submit(KEYS, form)
        assert page.status_code == 200, page.text
        match = re.search(r'<pre id="secret"[^>]*>([^<]+)</pre>', page.text)
        assert match
        self.secret = unescape(match[1])
        invited = browser.submit(PEOPLE, {"email": f"{first}@example.com", "name": "", "role": "owner"})
        link = re.search(r'<pre id="link"[^>]*>([^<]+)</pre>', invited.text)
        assert link
        self.invitation = unescape(link[1]).removeprefix(server.url)

    async def _join_second(self) -> None:
        async with self.server.db.transaction() as tx:
            ctx = WriteContext(tx, self.second, self.server.settings, SYSTEM)
            account = await member_service.get(tx, self.first, self.person.account_id)
            assert account
            await member_service.add(ctx, account, "manager")  # type: ignore[arg-type] - has the account's fields

    def status(self, plan_manager_id: UUID) -> int:
        """The status of a request with the key."""
        client = Client(self.server.url, self.secret, plan_manager_id)
        try:
            return client.get("/participants").status_code
        finally:
            client.http.close()

    def key(self, plan_manager_id: UUID) -> Any:
        keys = self.server.run(store.list_by_plan_manager(self.server.db, plan_manager_id))
        return next((each for each in keys if each.name == "Both"), None)

    def events(self, plan_manager_id: UUID) -> list[str]:
        statement = "select type, data::text from events where plan_manager_id = $1 order by created_at, id"
        rows = self.server.run(self.server.db.rows(EventRow, statement, plan_manager_id))
        other = self.second if plan_manager_id == self.first else self.first
        assert not any(str(other) in (each.data or "") for each in rows)
        return [each.type for each in rows if each.type.startswith(("api_key.", "account.invitation", "account.r"))]


@pytest.fixture
def both(
    server: RunningServer, plan_manager_id: UUID, new_plan_manager: Callable[[], UUID],
    new_browser: Callable[..., Browser], owner: Browser,
) -> TwoPlanManagers:  # fmt: skip
    """The first plan manager also has the owner of `owner`."""
    assert owner
    return TwoPlanManagers(server, plan_manager_id, new_plan_manager(), new_browser())


def test_an_owner_removes_their_plan_manager_from_a_shared_key(owner: Browser, both: TwoPlanManagers) -> None:
    assert (both.status(both.first), both.status(both.second)) == (200, 200)
    key = both.key(both.first)
    assert key.created_by_account_id == both.person.account_id
    assert f'href="{KEYS}/{key.id}/revoke"' in owner.get(KEYS).text
    page = owner.get(f"{KEYS}/{key.id}/revoke").text
    assert ("Remove access of Both?" in page, "Revoke key" in page) == (True, False)
    assert owner.submit(f"{KEYS}/{key.id}/revoke").status_code == 404
    assert owner.submit(f"{KEYS}/{key.id}/remove-plan-manager").headers["location"] == KEYS
    assert "no longer has access to Test plan manager." in owner.get(KEYS).text
    wait_until(lambda: both.status(both.first) == 403)
    assert both.status(both.second) == 200
    assert (both.key(both.first), both.key(both.second).plan_managers) == (None, [both.second])
    assert both.events(both.first)[-1] == "api_key.plan_manager_removed"
    assert "api_key.plan_manager_removed" not in both.events(both.second)
    assert owner.submit(f"{KEYS}/{key.id}/remove-plan-manager").status_code == 404


def test_a_key_without_a_plan_manager_is_revoked(owner: Browser, both: TwoPlanManagers) -> None:
    key = both.key(both.first)
    owner.submit(f"{KEYS}/{key.id}/remove-plan-manager")
    both.browser.submit("/console/plan-managers", {"plan_manager_id": str(both.second)})
    assert both.browser.submit(f"{KEYS}/{key.id}/remove-plan-manager").status_code == 303
    assert "so it is revoked." in both.browser.get(KEYS).text
    wait_until(lambda: both.status(both.second) == 401)
    assert both.events(both.second)[-2:] == ["api_key.plan_manager_removed", "api_key.revoked"]


def test_removing_a_person_ends_the_access_that_they_created(
    owner: Browser, both: TwoPlanManagers, new_browser: Callable[..., Browser]
) -> None:
    path = f"{PEOPLE}/{both.person.account_id}/remove"
    page = owner.get(path).text
    assert (f"…{both.key(both.first).last_four}" in page, f"{both.first}@example.com" in page) == (True, True)
    assert new_browser().get(both.invitation).status_code == 200
    assert owner.submit(path).status_code == 303
    wait_until(lambda: both.status(both.first) == 403)
    assert both.status(both.second) == 200
    assert new_browser().get(both.invitation).status_code == 404
    assert both.server.run(member_store.list_pending_invitations(both.server.db, both.first)) == []
    ending = ["account.removed", "account.invitation_withdrawn", "api_key.plan_manager_removed"]
    assert both.events(both.first)[-3:] == ending


def test_the_owner_can_keep_the_keys_but_not_the_invitations(
    owner: Browser, both: TwoPlanManagers, new_browser: Callable[..., Browser]
) -> None:
    assert owner.submit(f"{PEOPLE}/{both.person.account_id}/remove", {"keep_keys": "yes"}).status_code == 303
    assert both.key(both.first).plan_managers == sorted([both.first, both.second])
    assert (both.status(both.first), new_browser().get(both.invitation).status_code) == (200, 404)


def test_a_lower_role_is_confirmed_with_the_list_of_what_ends(
    owner: Browser, both: TwoPlanManagers, new_browser: Callable[..., Browser]
) -> None:
    path, form = f"{PEOPLE}/{both.person.account_id}/role", {"role": "manager", "was": "owner"}
    page = owner.submit(path, form)
    assert (page.status_code, "from owner to manager?" in page.text, f"{both.first}@" in page.text) == (200, True, True)
    assert new_browser().get(both.invitation).status_code == 200
    assert owner.submit(path, form | {"confirmed": "manager"}).status_code == 303
    wait_until(lambda: both.status(both.first) == 403)
    assert new_browser().get(both.invitation).status_code == 404
    # A higher role ends nothing, and needs no confirmation.
    assert owner.submit(path, {"role": "owner", "was": "manager"}).status_code == 303


def test_only_owners_create_keys_that_never_expire(
    new_browser: Callable[..., Browser], new_account: Callable[..., Account], owner: Browser
) -> None:
    manager, form = new_browser(new_account("manager")), {"name": "Nightly", "scope": ["read"], "lasts": ""}
    assert 'value=""' not in re.findall(r"<select[^>]*>.*?</select>", manager.get(f"{KEYS}/new").text, re.DOTALL)[0]
    response = manager.submit(KEYS, form)
    assert (response.status_code, "Expires can be Never only if you are an owner." in response.text) == (422, True)
    assert owner.submit(KEYS, form).status_code == 200
    [key_id] = re.findall(rf"{KEYS}/([0-9a-f-]+)/rotate", manager.get(KEYS).text)
    response = manager.submit(f"{KEYS}/{key_id}/rotate", {"overlap": "0", "lasts": ""})
    assert (response.status_code, "can be Never only if" in response.text) == (422, True)
    assert manager.submit(f"{KEYS}/{key_id}/rotate", {"overlap": "0", "lasts": "30"}).status_code == 200


def test_a_person_who_was_removed_meanwhile_creates_no_key(
    server: RunningServer, plan_manager_id: UUID, new_account: Callable[..., Account], owner: Browser
) -> None:
    """The role is checked again in the transaction that creates the key."""
    from plankeeper.core.context import Actor
    from plankeeper.core.errors import DomainError

    person = new_account("manager")
    assert owner.submit(f"{PEOPLE}/{person.account_id}/remove").status_code == 303

    async def require() -> None:
        async with server.db.transaction() as tx:
            actor = Actor("user", str(person.account_id), "Robin Hale")
            ctx = WriteContext(tx, plan_manager_id, server.settings, actor)
            await member_service.require_manager(ctx, [plan_manager_id])

    with pytest.raises(DomainError):
        server.run(require())


BLOCKED = """
    select exists (
        select from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and query like '%account_roles%for share%'
    )
"""


@pytest.mark.parametrize("action", ["create", "rotate", "remove-plan-manager"])
def test_a_role_that_is_lowered_during_a_request_changes_no_key(
    server: RunningServer,
    plan_manager_id: UUID,
    new_account: Callable[..., Account],
    new_browser: Callable[..., Browser],
    new_key: Callable[..., str],
    action: str,
) -> None:
    person = new_account("manager")
    browser = new_browser(person)
    new_key(plan_manager_id)
    [before] = server.run(store.list_by_plan_manager(server.db, plan_manager_id))
    path = KEYS if action == "create" else f"{KEYS}/{before.id}/{action}"
    form = {"name": "Late", "scope": ["read"], "lasts": "30", "overlap": "0"}
    browser.csrf()

    async def lower_role_during_request() -> int:
        async with server.db.transaction() as tx:
            await tx.execute("update account_roles set role = 'viewer' where account_id = $1", person.account_id)
            request = asyncio.create_task(asyncio.to_thread(browser.submit, path, form))
            async with asyncio.timeout(30):
                # The page's roles were read before the change is committed.
                while not request.done() and not await server.db.one(bool, BLOCKED):
                    await asyncio.sleep(0.01)
        return (await request).status_code

    assert server.run(lower_role_during_request()) == 403
    assert server.run(store.list_by_plan_manager(server.db, plan_manager_id)) == [before]
