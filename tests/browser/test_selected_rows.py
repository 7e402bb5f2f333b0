"""Selected rows of a list in Chromium: boxes, the key, the bar, all that match, and the page after a change."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from support.client import Client
from support.console import Account, open_signed_in
from support.server import RunningServer

LIST = "/console/participants"


@pytest.fixture
def people(new_client: Callable[..., Client], plan_manager_id: UUID, import_rows: Callable[..., Any]) -> None:
    """Three participants and an account manager."""
    client = new_client(plan_manager_id)
    for name in ("Ada", "Bea", "Cleo"):
        client.create("/participants", {"first_name": name})
    manager = {"id": str(uuid7()), "first_name": "Morgan", "last_name": "Lee", "email": "morgan@example.com"}
    import_rows(client, "account-managers", [manager])


@pytest.fixture
def console(page: Any, server: RunningServer, people: None, new_account: Callable[..., Account]) -> Any:
    open_signed_in(page, server, new_account("manager"), LIST)
    return page


def test_rows_are_selected_with_the_key_and_changed_at_once(console: Any) -> None:
    bar = console.locator("[data-selection]")
    assert not bar.is_visible()
    for key in ("j", "x", "j", "x", "j", "x", "x"):
        console.keyboard.press(key)
    assert bar.get_by_role("status").inner_text() == "2 selected"
    bar.get_by_role("button", name="Set account manager").click()
    console.get_by_role("heading", name="Set the account manager of 2 participants").wait_for()
    console.wait_for_load_state()
    console.get_by_label("New account manager").fill("morgan")
    console.get_by_role("option", name="Morgan Lee").click()
    console.get_by_role("button", name="Set account manager").click()
    console.get_by_role("heading", name="Changed (2)").wait_for()
    console.wait_for_url(lambda url: url.endswith(LIST))  # reloading the page sends nothing again
    console.reload()
    assert console.get_by_role("cell", name="Morgan Lee").count() == 2


def test_one_box_selects_all_rows(console: Any) -> None:
    console.get_by_label("Select all rows of this page").check()
    bar = console.locator("[data-selection]")
    assert bar.get_by_role("status").inner_text() == "3 selected"
    console.get_by_role("checkbox", name="Bea").uncheck()
    assert bar.get_by_role("status").inner_text() == "2 selected"
    assert console.get_by_label("Select all rows of this page").evaluate("box => box.indeterminate")
    bar.get_by_role("button", name="Clear selection").click()
    bar.wait_for(state="hidden")
    assert console.locator("tbody input:checked").count() == 0


@pytest.fixture
def long_list(client: Client, people: None) -> None:
    """61 participants in New South Wales, which are two pages, besides three others."""
    items = [{"last_name": f"P{number:02}", "state": "NSW"} for number in range(61)]
    assert client.post("/participants/bulk", {"items": items}).status_code == 200


def test_all_that_match_are_changed_and_undone(long_list: None, visitor: Any, has_script: bool) -> None:
    visitor.goto(f"{LIST}?state=NSW")
    rest = visitor.get_by_label("Select all 61 that match")
    if has_script:
        assert not rest.is_visible()
        visitor.get_by_role("checkbox", name="P01").check()
        assert visitor.get_by_role("status").inner_text() == "1 selected"
        rest.check()
        assert visitor.locator("tbody input:checked").count() == 50
        assert visitor.get_by_role("status").inner_text() == "All 61 selected"
        visitor.get_by_role("checkbox", name="P00").uncheck()  # so that it is not all any more
        assert visitor.get_by_role("status").inner_text() == "49 selected"
        visitor.get_by_role("checkbox", name="P00").check()
        assert not rest.is_checked()
    rest.focus()
    visitor.keyboard.press("Space")
    visitor.get_by_role("button", name="Set account manager").click()
    visitor.get_by_role("heading", name="Set the account manager of 61 participants").wait_for()
    assert not has_script or "id=" not in visitor.url
    assert visitor.get_by_text("All participants that match: State: NSW.").is_visible()
    visitor.get_by_label("New account manager").fill("Morgan Lee")
    visitor.get_by_label("New account manager").press("Tab")
    visitor.get_by_role("button", name="Set account manager").click()
    visitor.get_by_role("heading", name="Account manager set: 61 participants").wait_for()
    visitor.get_by_role("link", name="Undo all 61 changes").click()
    visitor.get_by_role("button", name="Undo 61 changes").click()
    visitor.get_by_role("heading", name="Undone: 61 changes").wait_for()


def test_all_participants_of_an_account_manager_are_reassigned(long_list: None, visitor: Any, has_script: bool) -> None:
    visitor.goto("/console/account-managers")
    visitor.get_by_role("link", name="Edit Morgan Lee").click()
    visitor.get_by_role("link", name="Reassign all of Morgan Lee’s participants").click()
    visitor.get_by_text("No participants match.").wait_for()
    visitor.get_by_role("link", name="Back to the list").click()
    assert "account_manager=" in visitor.url
