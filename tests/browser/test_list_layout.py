"""The layout of lists in Chromium: more columns than by default, and long names of saved views."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from support.client import Client
from support.console import Account, fill_sign_in_form, wait_until_signed_in

LIST = "/console/participants"
LONG_NAME = "Participants of Tasmania whose plans have ended and are active"[:60]
FITS = "each => each.scrollWidth <= each.clientWidth"


@pytest.fixture
def console(
    page: Any, new_client: Callable[..., Client], plan_manager_id: UUID, new_account: Callable[..., Account]
) -> Any:
    """The list with a participant who has a value in each column."""
    person = {
        "first_name": "Wilhelmina", "last_name": "Featherstonehaugh", "preferred_name": "Mina", "status": "Inactive",
        "participant_number": "430205409", "plan_start_date": "2025-12-28", "plan_end_date": "2026-12-28",
        "phone_number": "0491570006", "email": "wilhelmina.featherstonehaugh@example.com",
        "date_of_birth": "1975-12-28",
    }  # fmt: skip
    new_client(plan_manager_id).create("/participants", person)
    page.set_viewport_size({"width": 1280, "height": 900})
    fill_sign_in_form(page, new_account("manager").email, f"{LIST}?status=Inactive")
    wait_until_signed_in(page)
    return page


def test_two_more_columns_fit_a_small_screen(console: Any) -> None:
    console.get_by_text("Columns ▾").click()
    for label in ("Preferred name", "Date of birth"):
        console.get_by_label(label, exact=True).check()
    console.get_by_role("button", name="Save", exact=True).click()
    console.get_by_role("columnheader", name="Date of birth").wait_for()
    assert console.locator(".scroll").evaluate(FITS)
    assert console.locator("html").evaluate(FITS)


def test_a_long_name_of_a_saved_view_stays_in_its_button(console: Any) -> None:
    menu = console.locator(".saved-views > summary")
    menu.click()
    console.get_by_label("Name", exact=True).fill(LONG_NAME)
    console.get_by_role("button", name="Save view").click()
    console.get_by_text(f"View “{LONG_NAME}” saved.").wait_for()
    assert menu.evaluate(FITS)
    console.set_viewport_size({"width": 390, "height": 800})
    tabs, button = console.locator(".views").bounding_box(), menu.bounding_box()
    assert button["y"] > tabs["y"] + tabs["height"]
