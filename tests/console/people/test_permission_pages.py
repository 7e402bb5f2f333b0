"""Permissions of managers and limits of viewers on the pages of people, and what the console then allows."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from plankeeper.access.accounts import member_store
from plankeeper.access.accounts.schemas import Member, RoleDetails
from support.console import Account, Browser, give_permissions, main_text
from support.server import RunningServer, wait_until

PAGE = "/console/settings/people"
KEYS = "/console/settings/keys"


@pytest.fixture
def member_of(server: RunningServer, plan_manager_id: UUID) -> Callable[[Account], Member]:
    def read(account: Account) -> Member:
        everybody = server.run(member_store.list_members(server.db, plan_manager_id))
        return next(each for each in everybody if each.id == account.account_id)

    return read


def test_an_owner_gives_permissions(
    owner: Browser, new_account: Callable[..., Account], member_of: Callable[[Account], Member]
) -> None:
    person = new_account("manager")
    path = f"{PAGE}/{person.account_id}/role"
    page = main_text(owner.get(path).text)
    assert "Ignore blocking warnings: with a reason, so that an invoice can be claimed" in page
    form: dict[str, Any] = {"role": "manager", "was": "manager", "permissions": ["make_claims", "override_blocks"]}
    assert owner.submit(path, form).headers["location"] == PAGE
    assert member_of(person).details == RoleDetails(["make_claims", "override_blocks"])
    assert "Manager Make claims Ignore blocking warnings" in main_text(owner.get(PAGE).text)
    assert owner.get(path).text.count(" checked") == 3  # and "May download CSV and XLSX files", which is for viewers
    response = owner.submit(path, form)  # of a page that was opened before
    assert (response.status_code, "Someone else changed the role" in response.text) == (409, True)
    assert wait_until(lambda: "Override blocks" in owner.activity())


def test_an_owner_limits_a_viewer(
    owner: Browser, new_account: Callable[..., Account], member_of: Callable[[Account], Member], manager_id: str
) -> None:
    person = new_account("viewer")
    path = f"{PAGE}/{person.account_id}/role"
    form = {"role": "viewer", "was": "viewer", "participants_of": manager_id, "permissions": "make_claims"}
    assert owner.submit(path, form).headers["location"] == PAGE
    assert member_of(person).details == RoleDetails([], UUID(manager_id), can_download=False)
    assert "Participants of Morgan Lee No CSV files" in main_text(owner.get(PAGE).text)
    was = f"viewer {manager_id} no-download"
    response = owner.submit(path, {"role": "manager", "was": was, "can_download": "true"})
    assert response.headers["location"] == PAGE
    assert member_of(person).details == RoleDetails()


@pytest.mark.parametrize("wrong", [{"permissions": "fly"}, {"participants_of": "x"}, {"participants_of": str(uuid7())}])
def test_an_invalid_choice_shows_the_form_again(
    owner: Browser, new_account: Callable[..., Account], member_of: Callable[[Account], Member], wrong: dict[str, str]
) -> None:
    person, form = new_account("viewer"), {"role": "viewer", "was": "viewer", "can_download": "true"}
    response = owner.submit(f"{PAGE}/{person.account_id}/role", form | wrong)
    assert (response.status_code, "must be" in response.text) == (422, True)
    assert member_of(person).details == RoleDetails()


def test_an_invitation_shows_its_permissions_and_keeps_them(owner: Browser, manager_id: str) -> None:
    form = {"email": f"{uuid7()}@example.com", "name": "", "role": "viewer", "participants_of": manager_id}
    assert owner.submit(PAGE, form | {"can_download": "true"}).status_code == 200
    shown = main_text(owner.get(PAGE).text)
    assert "Viewer Participants of Morgan Lee" in shown
    assert "No CSV files" not in shown
    again = owner.get(PAGE).text.partition("/invitations/")[2].partition("/")[0]
    assert owner.submit(f"{PAGE}/invitations/{again}/again").status_code == 200
    assert "Viewer Participants of Morgan Lee" in main_text(owner.get(PAGE).text)


def test_a_viewer_without_downloads_gets_no_csv_files(
    owner: Browser, new_browser: Callable[..., Browser], new_account: Callable[..., Account]
) -> None:
    person = new_account("viewer")
    browser, file = new_browser(person), "/console/participants.csv"
    assert browser.get(file).status_code == 200
    owner.submit(f"{PAGE}/{person.account_id}/role", {"role": "viewer", "was": "viewer"})
    for path in (file, "/console/invoices/selected.csv?all=1&list="):
        response = browser.get(path)
        assert (response.status_code, "can’t download CSV and XLSX files" in response.text) == (403, True)
    assert ".csv" not in browser.get("/console/participants").text
    assert ".csv" not in browser.get("/console/invoices").text


def test_a_manager_gives_keys_only_the_scopes_of_own_permissions(
    server: RunningServer, owner: Browser, new_browser: Callable[..., Browser], new_account: Callable[..., Account]
) -> None:
    person = new_account("manager")
    browser, form = new_browser(person), {"name": "claims", "scope": "claims", "lasts": "30"}
    assert 'value="claims"' not in browser.get(f"{KEYS}/new").text
    assert browser.submit(KEYS, form).status_code == 403
    server.run(give_permissions(server, person, ["make_claims"]))
    page = browser.get(f"{KEYS}/new").text
    assert ('value="claims"' in page, 'value="payments"' in page) == (True, False)
    assert browser.submit(KEYS, form).status_code == 200
    assert "claims" in main_text(owner.get(KEYS).text)


def test_a_key_with_a_scope_is_rotated_only_with_its_permission(
    owner: Browser, new_browser: Callable[..., Browser], new_account: Callable[..., Account]
) -> None:
    assert owner.submit(KEYS, {"name": "payer", "scope": "payments", "lasts": "30"}).status_code == 200
    key_id = owner.get(KEYS).text.partition(f"{KEYS}/")[2].replace("new", "", 1).partition(f"{KEYS}/")[2][:36]
    form = {"overlap": "1", "lasts": "30"}
    assert new_browser(new_account("manager")).submit(f"{KEYS}/{key_id}/rotate", form).status_code == 403
    assert owner.submit(f"{KEYS}/{key_id}/rotate", form).status_code == 200


def create_key(browser: Browser, scope: str) -> None:
    assert browser.submit(KEYS, {"name": f"for {scope}", "scope": scope, "lasts": "30"}).status_code == 200


def test_keys_lose_access_with_the_permission_for_their_scope(
    server: RunningServer, owner: Browser, new_browser: Callable[..., Browser], new_account: Callable[..., Account]
) -> None:
    person = new_account("manager")
    server.run(give_permissions(server, person, ["make_claims", "make_payments"]))
    browser = new_browser(person)
    for scope in ("read", "claims", "payments"):
        create_key(browser, scope)
    path = f"{PAGE}/{person.account_id}/role"
    form = {"role": "manager", "was": "manager make_claims make_payments", "permissions": ["make_payments"]}
    page = main_text(owner.submit(path, form).text)
    assert "Change the permissions of" in page
    assert [f"for {scope}" in page for scope in ("read", "claims", "payments")] == [False, True, False]
    assert "for claims" in main_text(owner.get(KEYS).text)
    assert owner.submit(path, form | {"confirmed": "manager"}).headers["location"] == PAGE
    keys = main_text(owner.get(KEYS).text)
    assert [f"for {scope}" in keys for scope in ("read", "claims", "payments")] == [True, False, True]
    # The owner keeps the other one. It isn't asked about again by a later change.
    form |= {"was": "manager make_payments", "permissions": []}
    assert owner.submit(path, form | {"confirmed": "manager", "keep_keys": "yes"}).status_code == 303
    assert owner.submit(path, form | {"was": "manager", "permissions": ["override_blocks"]}).status_code == 303
    assert "for payments" in main_text(owner.get(KEYS).text)
