"""Importing in a real browser: a file with faults, then without; and note types with their colours."""

from collections.abc import Callable
from typing import Any

import pytest

from console.people import Person, enter
from console.test_in_a_browser import chromium, page, pytestmark  # noqa: F401 - fixtures, and when they are there


@pytest.fixture
def inside(page: Any, new_person: Callable[..., Person]) -> Any:  # noqa: F811
    """A page of a manager who is signed in."""
    enter(page, new_person("manager").email)
    page.get_by_role("heading", name="Participants").wait_for()
    return page


def choose(page: Any, name: str, content: str) -> None:  # noqa: F811
    page.get_by_label("What the file holds").select_option("note-types")
    page.get_by_label("File", exact=True).set_input_files(
        {"name": name, "mimeType": "text/csv", "buffer": content.encode()}
    )
    page.get_by_role("button", name="Check the file").click()


def test_a_file_is_imported_with_faults_and_then_without(inside: Any) -> None:
    inside.get_by_role("link", name="Settings").click()
    inside.get_by_role("link", name="Import").click()
    with inside.expect_download() as download:
        inside.get_by_role("link", name="note-types.csv").click()
    header, example, _ = download.value.path().read_text(encoding="utf-8-sig").split("\n")
    assert header.startswith("note_type,") or ",note_type" in header

    choose(inside, "kinds.csv", "note_type,badge_color\n,teal\nVisit,red\n")
    inside.get_by_role("alert").filter(has_text="1 line has a fault").wait_for()
    inside.get_by_role("row").filter(has_text="Line 2").filter(has_text="Note type").wait_for()
    assert inside.get_by_role("button", name="Import").count() == 0

    inside.get_by_role("link", name="Choose the file again").click()
    choose(inside, "kinds.csv", f"{header}\n{example}\n")
    inside.get_by_role("button", name="Import").click()
    inside.get_by_role("heading", name="kinds.csv is imported").wait_for()

    inside.get_by_role("link", name="Note types").click()
    inside.get_by_role("row").filter(has_text="Phone call").filter(has_text="#0b7285").wait_for()
    drawn = inside.locator("svg circle").evaluate_all("found => found.map(each => getComputedStyle(each).fill)")
    assert drawn == ["rgb(11, 114, 133)", "rgb(0, 128, 128)"]


def test_a_colour_that_is_a_script_is_text(inside: Any) -> None:
    dialogs: list[str] = []
    inside.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    inside.goto("/console/note-types/new")
    for color in ('"><script>alert(1)</script>', "red;}body{display:none", "url(javascript:alert(1))"):
        inside.goto("/console/note-types/new")
        inside.get_by_label("Name").fill("<img src=x onerror=alert(1)>")
        inside.get_by_label("Badge colour").fill(color)
        inside.get_by_role("button", name="Create note type").click()
        inside.get_by_role("cell").filter(has_text=color).wait_for()
    assert (
        inside.locator("svg circle").evaluate_all("found => found.map(each => each.getAttribute('fill'))")
        == ["none"] * 3
    )
    assert dialogs == []
