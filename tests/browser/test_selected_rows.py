"""Selected rows of a list in Chromium: boxes, the key, the bar, and the page after a change."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from support.client import Client
from support.console import Account, fill_sign_in_form, wait_until_signed_in

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
def console(page: Any, people: None, new_account: Callable[..., Account]) -> Any:
    fill_sign_in_form(page, new_account("manager").email, LIST)
    wait_until_signed_in(page)
    page.wait_for_load_state()
    return page


def test_rows_are_selected_with_the_key_and_changed_at_once(console: Any) -> None:
    bar = console.locator("[data-selection]")
    assert not bar.is_visible()
    for key in ("j", "x", "j", "x", "j", "x", "x"):
        console.keyboard.press(key)
    assert bar.get_by_role("status").inner_text() == "2 selected"
    bar.get_by_role("button", name="Set account manager").click()
    console.get_by_role("heading", name="Set the account manager of 2 participants").wait_for()
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
    console.get_by_label("Select Bea").uncheck()
    assert bar.get_by_role("status").inner_text() == "2 selected"
    assert console.get_by_label("Select all rows of this page").evaluate("box => box.indeterminate")
    bar.get_by_role("button", name="Clear selection").click()
    bar.wait_for(state="hidden")
    assert console.locator("tbody input:checked").count() == 0
