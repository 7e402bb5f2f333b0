"""Importing in a browser, with and without JavaScript: an office's file, the same file again, an undo."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from support.console import Account, LoadCounter, fill_sign_in_form, wait_until_signed_in
from support.imports import OFFICE_FILE
from support.server import RunningServer

FILE = OFFICE_FILE.replace("Ama Owusu", "")  # there are no account managers
PEOPLE = ("Róisín Kavanagh", "Bee Thompson", "Cy Nguyễn")


@pytest.fixture
def manager_page(page: Any, new_account: Callable[..., Account]) -> Any:
    """A page of a manager who is signed in."""
    fill_sign_in_form(page, new_account("manager").email)
    wait_until_signed_in(page)
    return page


@pytest.fixture(params=[True, False], ids=["with JavaScript", "without JavaScript"])
def office_page(
    request: pytest.FixtureRequest, chromium: Any, server: RunningServer, new_account: Callable[..., Account]
) -> Iterator[Any]:
    """A page of a manager, whose browser may not run scripts."""
    context = chromium.new_context(base_url=server.url, java_script_enabled=request.param)
    page = context.new_page()
    fill_sign_in_form(page, new_account("manager").email)
    wait_until_signed_in(page)
    yield page
    context.close()


def check_file(page: Any, name: str, content: str) -> None:
    page.get_by_label("File", exact=True).set_input_files(
        {"name": name, "mimeType": "text/csv", "buffer": content.encode()}
    )
    page.get_by_role("button", name="Check file").click()


def test_an_office_imports_its_file_and_takes_it_back(office_page: Any) -> None:
    page = office_page
    page.goto("/console/participants")
    loads = LoadCounter(page)
    page.get_by_role("link", name="Import", exact=True).click()
    check_file(page, "people.csv", FILE)
    for text in ("Line 4", "31 Feb 1980 doesn’t exist", "line 2 has the same NDIS number", "is before the plan start"):
        page.get_by_text(text).first.wait_for()
    page.locator(".outcomes").get_by_role("link", name="Faulty").click()
    assert page.locator(".import-rows > li").count() == 3
    with page.expect_download() as download:
        page.get_by_role("link", name="Download the faulty rows").click()
    assert download.value.path().read_text(encoding="utf-8-sig").startswith("First Name,Surname,DOB")
    page.get_by_role("button", name="Import 3 rows, skip 3").click()
    page.get_by_text("3 rows imported.").wait_for()
    for name in PEOPLE:
        page.get_by_role("link", name=name).wait_for()
    assert loads.count == 4  # the file, what it would do, the faulty rows, what it did

    # The same file again duplicates nobody.
    page.get_by_role("link", name="New import").click()
    check_file(page, "people.csv", FILE)
    page.get_by_text("There is nothing to import").wait_for()

    page.goto("/console/imports")
    page.get_by_role("link", name="people.csv").last.click()
    page.get_by_role("link", name="Undo this import").click()
    page.get_by_text("3 new records are deleted.").wait_for()
    page.get_by_role("button", name="Undo this import").click()
    page.get_by_text("The import has been undone.").wait_for()
    page.goto("/console/participants")
    assert page.get_by_text("Kavanagh").count() == 0


def test_columns_are_chosen_in_a_browser(office_page: Any) -> None:
    page = office_page
    page.goto("/console/imports/new")
    check_file(page, "kinds.csv", "Art,Farbe\nBesuch,teal\n")
    page.get_by_label("What the file contains").select_option("note-types")
    page.get_by_role("button", name="Use this record type").click()
    page.get_by_label("Art").select_option("note_type")
    page.get_by_label("Farbe").select_option("badge_color")
    page.get_by_role("button", name="Check file").click()
    page.get_by_role("button", name="Import 1 row").click()
    page.get_by_text("1 row imported.").wait_for()


def test_a_script_in_a_colour_is_shown_as_text(manager_page: Any) -> None:
    dialogs: list[str] = []
    manager_page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    manager_page.goto("/console/note-types/new")
    for color in ('"><script>alert(1)</script>', "red;}body{display:none", "url(javascript:alert(1))"):
        manager_page.goto("/console/note-types/new")
        manager_page.get_by_label("Name").fill("<img src=x onerror=alert(1)>")
        manager_page.get_by_label("Badge colour").fill(color)
        manager_page.get_by_role("button", name="Create note type").click()
        manager_page.get_by_role("cell").filter(has_text=color).wait_for()
    assert (
        manager_page.locator("svg circle").evaluate_all("found => found.map(each => each.getAttribute('fill'))")
        == ["none"] * 3
    )
    assert dialogs == []
