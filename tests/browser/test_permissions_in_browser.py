"""A supervisor gives a colleague a permission, and limits a viewer to the participants of an account manager."""

import os
from collections.abc import Callable
from datetime import date
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from support.client import Client
from support.console import Account, open_signed_in
from support.importing import import_records
from support.server import RunningServer

PEOPLE = "/console/settings/people"
PHONE = {"width": 390, "height": 900}


@pytest.fixture
def manager_id(server: RunningServer, plan_manager_id: UUID) -> str:
    """The id of an account manager, Morgan Lee."""
    row = {"id": str(uuid7()), "first_name": "Morgan", "last_name": "Lee", "email": "morgan@example.com"}
    assert not server.run(import_records(server, plan_manager_id, "account-managers", [row])).errors
    return row["id"]


def screenshot(page: Any, name: str) -> None:
    """A picture of the page, if the environment names a folder for it."""
    if folder := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=f"{folder}/{name}.png", full_page=True)


def test_a_colleague_is_permitted_to_ignore_a_blocking_warning(
    page: Any, server: RunningServer, new_account: Callable[..., Account], client: Client
) -> None:
    page.set_viewport_size(PHONE)
    owner, colleague = new_account("owner"), new_account("manager")
    invoice = client.create("/invoices", {"invoice_date": date(2026, 1, 15).isoformat(), "total": 100})["id"]
    open_signed_in(page, server, colleague, f"/console/invoices/{invoice}")
    page.get_by_text("An owner can give you the permission to ignore it.").first.wait_for()
    open_signed_in(page, server, owner, f"{PEOPLE}/{colleague.account_id}/role")
    page.get_by_label("Ignore blocking warnings").check()
    screenshot(page, "role")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("status").filter(has_text="saved").wait_for()
    page.get_by_role("cell", name="Ignore blocking warnings").wait_for()
    screenshot(page, "people")
    open_signed_in(page, server, colleague, f"/console/invoices/{invoice}")
    assert page.get_by_text("An owner can give you the permission").count() == 0
    page.get_by_text("Ignore…").first.click()
    page.get_by_role("textbox", name="Reason").first.fill("The provider confirmed it")
    page.get_by_role("button", name="Ignore warning").first.click()
    page.get_by_role("status").filter(has_text="ignored").wait_for()


def test_a_viewer_sees_only_the_participants_of_an_account_manager(
    page: Any, server: RunningServer, new_account: Callable[..., Account], client: Client, manager_id: str
) -> None:
    page.set_viewport_size(PHONE)
    owner, viewer = new_account("owner"), new_account("viewer")
    client.create("/participants", {"first_name": "Indira", "last_name": "Inside", "account_manager_id": manager_id})
    outside = client.create("/participants", {"first_name": "Otto", "last_name": "Outside"})["id"]
    open_signed_in(page, server, owner, f"{PEOPLE}/{viewer.account_id}/role")
    page.get_by_label("Participants of").select_option("Morgan Lee")
    page.get_by_label("May download CSV and XLSX files").uncheck()
    page.get_by_role("button", name="Save").click()
    page.get_by_text("Participants of Morgan Lee").wait_for()
    open_signed_in(page, server, viewer, "/console/participants")
    page.get_by_role("link", name="Inside, Indira").wait_for()
    screenshot(page, "limited")
    assert page.get_by_text("Outside").count() == 0
    assert page.get_by_role("link", name="Download CSV").count() == 0
    page.goto("/console/search?q=outside")
    page.get_by_text("Nothing").or_(page.get_by_text("No ")).first.wait_for()
    assert page.get_by_text("Otto").count() == 0
    page.goto(f"/console/participants/{outside}")
    page.get_by_role("heading", name="Page not found").wait_for()
    page.goto("/console/activity")
    page.get_by_text("limited to the participants of one account manager").wait_for()
    screenshot(page, "closed")
    page.goto("/console")
    screenshot(page, "home")
