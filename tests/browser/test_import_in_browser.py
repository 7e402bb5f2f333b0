"""Importing in a browser: a file with errors, the corrected file, and note types with their colours."""

from collections.abc import Callable
from typing import Any

import pytest

from support.console import Account, fill_sign_in_form


@pytest.fixture
def manager_page(page: Any, new_account: Callable[..., Account]) -> Any:
    """A page of a manager who is signed in."""
    fill_sign_in_form(page, new_account("manager").email)
    page.get_by_role("heading", name="Participants").wait_for()
    return page


def choose_file(page: Any, name: str, content: str) -> None:
    page.get_by_label("Record type").select_option("note-types")
    page.get_by_label("File", exact=True).set_input_files(
        {"name": name, "mimeType": "text/csv", "buffer": content.encode()}
    )
    page.get_by_role("button", name="Check file").click()


def test_a_file_is_rejected_with_errors_and_imported_without(manager_page: Any) -> None:
    manager_page.get_by_role("link", name="Settings").click()
    manager_page.get_by_role("link", name="Import").click()
    with manager_page.expect_download() as download:
        manager_page.get_by_role("link", name="note-types.csv").click()
    header, example, _ = download.value.path().read_text(encoding="utf-8-sig").split("\n")
    assert header.startswith("note_type,") or ",note_type" in header

    choose_file(manager_page, "kinds.csv", "note_type,badge_color\n,teal\nVisit,red\n")
    manager_page.get_by_role("alert").filter(has_text="1 line has an error").wait_for()
    manager_page.get_by_role("row").filter(has_text="Line 2").filter(has_text="Note type").wait_for()
    assert manager_page.get_by_role("button", name="Import").count() == 0

    manager_page.get_by_role("link", name="Upload corrected file").click()
    choose_file(manager_page, "kinds.csv", f"{header}\n{example}\n")
    manager_page.get_by_role("button", name="Import").click()
    manager_page.get_by_role("heading", name="kinds.csv imported").wait_for()

    manager_page.get_by_role("link", name="Note types").click()
    manager_page.get_by_role("row").filter(has_text="Phone call").filter(has_text="#0b7285").wait_for()
    drawn = manager_page.locator("svg circle").evaluate_all("found => found.map(each => getComputedStyle(each).fill)")
    assert drawn == ["rgb(11, 114, 133)", "rgb(0, 128, 128)"]


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
