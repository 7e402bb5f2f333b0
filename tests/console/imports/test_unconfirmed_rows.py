"""Rows of an import whose number is on record with another name and date of birth: skipped unless they are ticked."""

import csv
import io
import re
from collections.abc import Callable
from typing import Any

import pytest

from support.client import Client
from support.console import Account, Browser
from support.imports import confirm, counts, import_path, rows, upload
from support.sweeps import sweep

HEAD = "participant_number,first_name,last_name,date_of_birth,city\n"
ROISIN = {
    "participant_number": "430205409",
    "first_name": "Róisín",
    "last_name": "Kavanagh",
    "date_of_birth": "1975-06-22",
}
WARNING = "This NDIS number is Róisín Kavanagh’s (born 22 Jun 1975)."


def people(client: Client) -> list[tuple[str, str]]:
    return [(each["first_name"], each["city"]) for each in client.get("/participants").json()["data"]]


@pytest.fixture
def roisin(client: Client) -> dict[str, Any]:
    return client.create("/participants", ROISIN)


def check(browser: Browser, *lines: str) -> Any:
    return upload(browser, (HEAD + "\n".join(lines) + "\n").encode(), "participants")


def test_a_row_about_somebody_else_is_skipped(owner: Browser, client: Client, roisin: dict[str, Any]) -> None:
    page = check(owner, "430 205 409,Noah,Wright,4/4/1963,Geelong", "430205410,Bee,Thompson,1/2/1990,Fitzroy")
    assert counts(page) == {"Rows": 2, "New": 1, "Unconfirmed": 1}
    shown = rows(owner.get(import_path(page), params={"show": "unconfirmed"}))
    values = "NDIS number 430 205 409 First name Noah Last name Wright Date of birth 4/4/1963 Suburb Geelong"
    record = "Open the record with the number of line 2"
    assert shown == [f"Include line 2 Line 2 Noah Wright Unconfirmed {WARNING} {record} {values}"]
    assert f'href="/console/participants/{roisin["id"]}"' in page.text
    done = confirm(owner, import_path(page))
    assert counts(done) == {"Rows": 2, "New": 1, "Unconfirmed": 1}
    assert people(client) == [("Róisín", None), ("Bee", "Fitzroy")]
    table = owner.get(f"{import_path(page)}/rejected.csv").content.decode("utf-8-sig")
    assert [row[1:] for row in csv.reader(io.StringIO(table))][1:] == [
        ["Noah", "Wright", "4/4/1963", "Geelong", WARNING]
    ]


@pytest.mark.usefixtures("roisin")
def test_a_ticked_row_is_imported(owner: Browser, client: Client) -> None:
    page = check(owner, "430205409,Noah,Wright,4/4/1963,Geelong")
    path = import_path(page)
    assert "Import ticked rows" in page.text
    nothing = owner.submit(path, {"line": "2"})
    assert (nothing.status_code, people(client)) == (422, [("Róisín", None)])
    assert confirm(owner, path, {"line": "2", "include": "2"}).status_code == 200
    assert people(client) == [("Noah", "Geelong")]


@pytest.mark.usefixtures("roisin")
def test_ticks_are_kept_over_pages_and_can_be_taken_back(owner: Browser) -> None:
    others = [f"43020{number},Bee,Thompson,1/2/1990,Fitzroy" for number in range(6000, 6060)]
    path = import_path(check(owner, "430205409,Noah,Wright,4/4/1963,Geelong", *others))
    first = owner.get(path).text
    goal = re.search(r'name="goal" value="(after=\d+)">Next page', first)
    assert goal
    moved = owner.submit(f"{path}/included", {"line": "2", "include": "2", "goal": goal[1]})
    assert moved.headers["location"] == f"{path}?{goal[1]}"
    second = owner.get(moved.headers["location"])
    assert counts(second) == {"Rows": 61, "New": 60, "Changed": 1, "Unconfirmed": 1, "With warnings": 1}
    assert 'name="include" value="2" checked' in owner.get(path, params={"show": "unconfirmed"}).text
    back = re.search(r'href="\?(before=\d+)"', second.text)
    assert back
    assert "Noah" in owner.get(f"{path}?{back[1]}").text
    owner.submit(f"{path}/included", {"line": "2", "goal": ""})
    assert counts(owner.get(path)) == {"Rows": 61, "New": 60, "Unconfirmed": 1}
    elsewhere = owner.submit(f"{path}/included", {"goal": "https://example.com/?show=x&next=/nope"})
    assert elsewhere.headers["location"].partition("?")[0] == path


@sweep(
    "line, is_unconfirmed",
    [
        ("Noah,Wright,4/4/1963", True),
        ("Noah,Kavanagh,4/4/1963", True),
        ("Róisín,Wright,4/4/1963", True),
        ("Noah,Wright,22/6/1975", False),  # the same date of birth
        ("roisin,KAVANAGH,4/4/1963", False),  # the same name
        ("Róisín Mary,Kavanagh,4/4/1963", False),
        (",Kavanagh,4/4/1963", False),
        ("Noah,Wright,", False),  # no date of birth
        (",,4/4/1963", False),
    ],
)
@pytest.mark.usefixtures("roisin")
def test_name_and_date_of_birth_must_both_differ(owner: Browser, line: str, is_unconfirmed: bool) -> None:
    found = counts(check(owner, f"430205409,{line},Geelong"))
    assert found.get("Unconfirmed", 0) == is_unconfirmed


@pytest.mark.parametrize(
    "name, is_unconfirmed", [("Copper Quokka", True), ("Marble Bilby Mobility", False), ("The Bilby", False)]
)
def test_a_provider_with_no_word_of_the_name_in_common(
    owner: Browser, client: Client, name: str, is_unconfirmed: bool
) -> None:
    client.create("/providers", {"entity_name": "Marble Bilby", "abn": "51824753556"})
    page = upload(owner, f"abn,entity_name\n51 824 753 556,{name}\n".encode(), "providers")
    assert counts(page).get("Unconfirmed", 0) == is_unconfirmed
    assert ("This ABN is Marble Bilby’s." in page.text) == is_unconfirmed


@pytest.mark.usefixtures("roisin")
def test_only_the_person_who_checked_a_file_can_tick(
    owner: Browser, new_browser: Callable[..., Browser], new_account: Callable[..., Account]
) -> None:
    path = import_path(check(owner, "430205409,Noah,Wright,4/4/1963,Geelong"))
    other = new_browser(new_account("manager"))
    assert other.submit(f"{path}/included", {"line": "2", "include": "2"}).status_code == 404
