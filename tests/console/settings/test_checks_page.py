"""The page of checks: the progress of the check of all open invoices, and its button."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from plankeeper.resources.invoices import recheck_store
from plankeeper.resources.invoices.recheck_store import FIRST, RecheckState
from plankeeper.resources.invoices.warnings import WARNINGS
from support.client import Client
from support.console import Account, Browser, give_permissions, main_text
from support.factories import import_invoice
from support.form_helpers import require_linked_errors
from support.rechecks import stop_server_rechecks
from support.server import RunningServer, wait_until

PAGE = "/console/checks"
BUTTON = "Check all open invoices again"


def test_an_owner_starts_the_check(
    owner: Browser, new_account: Callable[..., Account], server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert PAGE in owner.get("/console/settings").text
    assert "They haven’t been checked together yet." in owner.get(PAGE).text
    with monkeypatch.context() as patch:
        stop_server_rechecks(patch)
        assert owner.submit(PAGE, {}).status_code == 303
        queued = owner.get(PAGE).text
        assert "The check starts in a few seconds." in queued
        assert BUTTON not in queued
    done = wait_until(lambda: "Last checked" in (page := owner.get(PAGE).text) and page)
    assert BUTTON in done
    viewer = Browser(server.url)
    assert viewer.sign_in(new_account("viewer")).status_code == 303
    seen = viewer.get(PAGE).text
    assert "Last checked" in seen
    assert BUTTON not in seen
    assert viewer.submit(PAGE, {}).status_code == 403
    viewer.http.close()


def test_the_progress_is_shown(
    owner: Browser, server: RunningServer, plan_manager_id: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop_server_rechecks(monkeypatch)
    now = datetime.now(UTC)
    state = RecheckState(position=FIRST, total=20_000, done=3200, started_at=now, completed_at=now)

    async def save() -> None:
        async with server.db.transaction() as tx:
            await recheck_store.upsert_state(tx, plan_manager_id, state)

    server.run(save())
    page = owner.get(PAGE).text
    assert '<progress max="20000" value="3200"' in page
    assert "3,200 of 20,000 invoices checked." in page
    assert "Last checked" in page
    assert BUTTON not in page


LEVELS_FORM = f"{PAGE}/levels"


def usual_levels(**levels: str) -> dict[str, Any]:
    """The form with the usual levels, except for `levels`."""
    return {code: warning.level for code, warning in WARNINGS.items()} | levels


@pytest.fixture
def wrong_invoice(server: RunningServer, client: Client) -> str:
    """The page of an invoice that is the first of its provider, and whose total is wrong."""
    record_ids = {
        "participant": client.create("/participants", {"first_name": "Ann"})["id"],
        "provider": client.create("/providers", {"entity_name": "Amber", "abn": "51824753556"})["id"],
    }
    return f"/console/invoices/{import_invoice(server, client, record_ids, total=1300)}"


def test_an_owner_sets_levels_and_open_invoices_are_checked_again(
    owner: Browser, client: Client, wrong_invoice: str
) -> None:
    ident = wrong_invoice.rpartition("/")[2]
    assert client.get(f"/invoices/{ident}").json()["state_management"]["errors"] == ["check_total"]
    response = owner.submit(LEVELS_FORM, usual_levels(check_total="block", first_time_provider="warn"))
    assert (response.status_code, response.headers["location"]) == (303, PAGE)
    page = owner.get(PAGE).text
    assert "Levels saved. The open invoices are being checked again." in page
    assert selected_level(page, "check_total") == "block"
    assert selected_level(page, "first_time_provider") == "warn"
    assert selected_level(page, "check_abn") == "warn"
    wait_until(
        lambda: (
            client.get(f"/invoices/{ident}").json()["state_management"]["errors"]
            == ["first_time_provider", "check_total"]
        )
    )
    assert owner.submit(LEVELS_FORM, usual_levels(check_total="block", first_time_provider="warn")).status_code == 303
    assert "Nothing was changed." in owner.get(PAGE).text
    activity = owner.activity()
    assert "Warning levels" in activity or "warning levels" in activity, activity


def selected_level(page: str, code: str) -> str:
    """The level that the form of a page has for a warning."""
    field = page.partition(f'<select id="{code}"')[2].partition("</select>")[0]
    return field.partition('" selected')[0].rpartition('value="')[2]


def test_a_warning_that_blocks_claims_needs_a_permission(
    server: RunningServer,
    owner: Browser,
    new_browser: Callable[..., Browser],
    new_account: Callable[..., Account],
    wrong_invoice: str,
) -> None:
    account, step = new_account("manager"), f"{wrong_invoice}/warnings/check_total/ignore"
    manager = new_browser(account)
    assert step in manager.get(wrong_invoice).text
    assert owner.submit(LEVELS_FORM, usual_levels(check_total="block")).status_code == 303
    page = manager.get(wrong_invoice).text
    assert ("Blocks claims" in page, "permission to ignore it" in page, step in page) == (True, True, False)
    assert manager.submit(step, {"reason": "Agreed then"}).status_code == 403
    assert "Agreed" not in owner.get(wrong_invoice).text
    assert step in owner.get(wrong_invoice).text
    server.run(give_permissions(server, account, ["override_blocks"]))
    assert step in manager.get(wrong_invoice).text
    assert manager.submit(step, {"reason": "Agreed then"}).status_code == 303
    assert "Agreed" in owner.get(wrong_invoice).text


def test_a_wrong_level_is_an_error_at_its_field_and_the_others_are_kept(owner: Browser) -> None:
    response = owner.submit(LEVELS_FORM, usual_levels(check_total="stop", check_abn="block"))
    assert response.status_code == 422
    assert require_linked_errors(response.text) == ["check_total"]
    assert selected_level(response.text, "check_abn") == "block"
    assert selected_level(owner.get(PAGE).text, "check_abn") == "warn"


def test_others_see_the_levels_without_a_form(
    owner: Browser, new_browser: Callable[..., Browser], new_account: Callable[..., Account]
) -> None:
    form = usual_levels(check_total="block", duplicates_need_participant="yes")
    assert owner.submit(LEVELS_FORM, form).status_code == 303
    for role in ("viewer", "manager"):
        other = new_browser(new_account(role))
        page = other.get(PAGE).text
        assert (LEVELS_FORM in page, "<select" in page) == (False, False)
        assert f"{WARNINGS['check_total'].description} Block claims" in main_text(page)
        assert "“Possible duplicate” compares only invoices of the same participant." in page
        assert other.submit(LEVELS_FORM, usual_levels()).status_code == 403
    assert selected_level(owner.get(PAGE).text, "check_total") == "block"
