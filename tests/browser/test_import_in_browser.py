"""Importing in a browser, with and without JavaScript: an office's file, the same file again, an undo; an export."""

import csv
import io
from collections.abc import Callable
from typing import Any

import pytest

from support.client import Client
from support.console import Account, LoadCounter, add_session
from support.imports import OFFICE_FILE
from support.server import RunningServer

FILE = OFFICE_FILE.replace("Ama Owusu", "")  # there are no account managers
PEOPLE = ("Róisín Kavanagh", "Bee Thompson", "Cy Nguyễn")


@pytest.fixture
def manager_page(page: Any, server: RunningServer, new_account: Callable[..., Account]) -> Any:
    """A page of a manager who is signed in."""
    add_session(page.context, server, new_account("manager"))
    return page


def check_file(page: Any, name: str, content: str) -> None:
    page.get_by_label("File", exact=True).set_input_files(
        {"name": name, "mimeType": "text/csv", "buffer": content.encode()}
    )
    page.get_by_role("button", name="Check file").click()


def test_an_office_imports_its_file_and_takes_it_back(visitor: Any) -> None:
    visitor.goto("/console/participants")
    loads = LoadCounter(visitor)
    visitor.get_by_role("link", name="Import", exact=True).click()
    check_file(visitor, "people.csv", FILE)
    for text in ("31 Feb 1980 doesn’t exist", "line 2 has the same NDIS number", "is before the plan start"):
        visitor.get_by_text(text).first.wait_for()
    with visitor.expect_navigation(wait_until="load"):
        visitor.locator(".outcomes").get_by_role("link", name="Errors").click()
    assert visitor.locator(".import-rows tbody tr").count() == 3
    with visitor.expect_download() as download:
        visitor.get_by_role("link", name="Download the rows with errors").click()
    assert download.value.path().read_text(encoding="utf-8-sig").startswith("First Name,Surname,DOB")
    visitor.get_by_role("button", name="Import 3 rows, skip 3").click()
    visitor.get_by_text("3 rows imported.").wait_for()
    for name in PEOPLE:
        visitor.get_by_role("link", name=name).wait_for()
    visitor.wait_for_load_state()
    assert loads.count == 4  # the file, what it would do, the rows with errors, what it did

    # The same file again duplicates nobody.
    visitor.get_by_role("link", name="New import").click()
    check_file(visitor, "people.csv", FILE)
    visitor.get_by_text("There is nothing to import").wait_for()

    visitor.goto("/console/imports")
    visitor.get_by_role("link", name="people.csv").last.click()
    visitor.get_by_role("link", name="Undo this import").click()
    visitor.get_by_text("3 new records are deleted.").wait_for()
    visitor.get_by_role("button", name="Undo this import").click()
    visitor.get_by_text("The import has been undone.").wait_for()
    visitor.goto("/console/participants")
    assert visitor.get_by_text("Kavanagh").count() == 0


def test_a_filtered_list_is_taken_to_a_spreadsheet_without_another_page(visitor: Any, client: Client) -> None:
    for name, status in (("Ann", "Active"), ("Ben", "Inactive"), ("Cleo", "Active")):
        client.create("/participants", {"first_name": name, "status": status})
    visitor.goto("/console/participants?status=Active")
    loads = LoadCounter(visitor)
    with visitor.expect_download() as download:
        visitor.get_by_role("link", name="Download CSV").click()
    rows = list(csv.reader(io.StringIO(download.value.path().read_text(encoding="utf-8-sig"))))
    assert ([row[0] for row in rows], loads.count) == (["Name", "Ann", "Cleo"], 0)


def test_a_row_with_the_number_of_somebody_else_is_ticked(visitor: Any, client: Client) -> None:
    roisin = {"first_name": "Róisín", "last_name": "Kavanagh", "date_of_birth": "1975-06-22"}
    client.create("/participants", roisin | {"participant_number": "430205409"})
    others = "".join(f"Bee,Thompson,1/2/1990,43021{number}\n" for number in range(1000, 1060))
    visitor.goto("/console/imports/new")
    check_file(visitor, "people.csv", f"First name,Surname,DOB,NDIS number\nNoah,Wright,4/4/1963,430205409\n{others}")
    visitor.get_by_label("Include line 2").check()
    visitor.get_by_role("button", name="Next page").click()
    visitor.get_by_role("link", name="Previous page").click()  # the tick is kept
    assert visitor.get_by_label("Include line 2").is_checked()
    visitor.locator("summary").filter(has_text="This NDIS number is Róisín Kavanagh’s").click()
    visitor.get_by_text("Kavanagh → Wright").first.wait_for()
    visitor.get_by_role("button", name="Import 61 rows and ticked ones").click()
    visitor.get_by_text("61 rows imported.").wait_for()
    assert client.get("/participants?participant_number=430205409").json()["data"][0]["first_name"] == "Noah"


def test_fifteen_rows_of_a_check_fit_a_screen(manager_page: Any) -> None:
    manager_page.set_viewport_size({"width": 1280, "height": 900})
    manager_page.goto("/console/imports/new")
    people = "".join(f"Bee,Thompson,1/2/1990,43021{number},Fitzroy,vic\n" for number in range(1000, 1060))
    check_file(
        manager_page, "people.csv", f"First name,Surname,DOB,NDIS number,Suburb,State\nAda,x,31/2/1990,,,\n{people}"
    )
    manager_page.locator(".import-rows").wait_for()
    manager_page.wait_for_load_state()  # the table is there before its stylesheet
    bottoms = manager_page.locator(".import-rows tbody tr").evaluate_all(
        "rows => rows.map(each => each.getBoundingClientRect().bottom)"
    )
    assert len([each for each in bottoms if each <= 900]) >= 15
    for width in (390, 320):
        manager_page.set_viewport_size({"width": width, "height": 844})
        assert manager_page.locator("html").evaluate("each => each.scrollWidth") == width


def test_columns_are_chosen_in_a_browser(visitor: Any) -> None:
    visitor.goto("/console/imports/new")
    check_file(visitor, "kinds.csv", "Art,Farbe\nBesuch,teal\n")
    visitor.get_by_label("What the file contains").select_option("note-types")
    visitor.get_by_role("button", name="Use this record type").click()
    visitor.get_by_label("Art").select_option("note_type")
    visitor.get_by_label("Farbe").select_option("badge_color")
    visitor.get_by_role("button", name="Check file").click()
    visitor.get_by_role("button", name="Import 1 row").click()
    visitor.get_by_text("1 row imported.").wait_for()


def test_a_script_in_a_colour_is_shown_as_text(
    fresh_page: Any, server: RunningServer, new_account: Callable[..., Account]
) -> None:
    dialogs: list[str] = []
    manager_page = fresh_page
    add_session(manager_page.context, server, new_account("manager"))
    manager_page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    for color in ('"><script>alert(1)</script>', "red;}body{display:none", "url(javascript:alert(1))"):
        manager_page.goto("/console/note-types/new")
        manager_page.get_by_label("Note type", exact=True).fill("<img src=x onerror=alert(1)>")
        manager_page.get_by_label("Badge colour").fill(color)
        manager_page.get_by_role("button", name="Create note type").click()
        manager_page.get_by_role("cell").filter(has_text=color).wait_for()
    assert (
        manager_page.locator("svg circle").evaluate_all("found => found.map(each => each.getAttribute('fill'))")
        == ["none"] * 3
    )
    assert dialogs == []
