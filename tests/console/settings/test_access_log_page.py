"""The access log in the console: every view and export is recorded, shown to owners, and exported."""

import csv
import io
import re
from collections.abc import Callable
from html import unescape
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from support.console import Account, Browser
from support.importing import import_records
from support.server import RunningServer, wait_until

ACCESS = "/console/settings/access"


@pytest.fixture
def participant_ids(server: RunningServer, plan_manager_id: UUID) -> list[str]:
    """Ada, Bo and Cy, whose ids are in another order than their names."""
    rows = [{"id": str(uuid7()), "first_name": name} for name in ("Bo", "Cy", "Ada")]
    assert not server.run(import_records(server, plan_manager_id, "participants", rows)).errors
    return [rows[2]["id"], rows[0]["id"], rows[1]["id"]]


def shown(owner: Browser, count: int, query: str = "") -> list[str]:
    """The rows of the page, once there are as many."""

    def rows() -> list[str]:
        text = unescape(owner.get(ACCESS + query).text).partition("<tbody>")[2].partition("</tbody>")[0]
        cells = [re.sub(r"<[^>]+>", " ", each) for each in text.split("<tr")[1:]]
        return [" ".join(each.partition(">")[2].split()) for each in cells]

    wait_until(lambda: len(rows()) >= count)
    assert len(rows()) == count, rows()
    return rows()


def test_views_lists_and_exports_are_entries_with_the_person(owner: Browser, participant_ids: list[str]) -> None:
    ada = participant_ids[0]
    page = f"/console/participants/{ada}"
    for path in (page, "/console/participants?q=ada", f"{page}/data.json"):
        assert owner.get(path).status_code == 200
    assert owner.get(f"/console/participants/{uuid7()}").status_code == 404
    rows = shown(owner, 3)
    assert [each.partition("Robin Hale ")[2] for each in rows] == [
        "Exported Participant Ada",
        "Listed Participant Ada (Name, number, phone or email: ada)",
        "Viewed Participant Ada",
    ]
    assert shown(owner, 3, f"?record={ada}") == rows
    assert shown(owner, 0, f"?record={uuid7()}") == []
    assert shown(owner, 3, "?person=robin+hale") == rows
    assert shown(owner, 1, "?action=viewed") == rows[2:]
    assert shown(owner, 3, "?date=today") == rows
    assert shown(owner, 0, "?to=1%2F1%2F2020") == []
    assert shown(owner, 3, "?sort=at") == rows[::-1]
    assert owner.get(f"{ACCESS}?record=nonsense").status_code == 422
    assert "3 entries" in owner.get(ACCESS).text


def test_a_list_is_an_entry_of_those_whom_it_showed(owner: Browser, participant_ids: list[str]) -> None:
    ada, bo, cy = participant_ids
    owner.get("/console/participants?q=ada")
    owner.get("/console/participants?q=cy")
    shown(owner, 2)
    assert [each.rpartition(":")[2] for each in shown(owner, 1, f"?record={ada}")] == [" ada)"]
    assert shown(owner, 0, f"?record={bo}") == []
    assert [each.rpartition(":")[2] for each in shown(owner, 1, f"?record={cy}")] == [" cy)"]


def test_repeated_views_by_a_person_are_one_line(owner: Browser, participant_ids: list[str]) -> None:
    ada, bo, _ = participant_ids
    for path in (ada, bo, f"{ada}/team", f"{ada}/timeline", ada):
        owner.get(f"/console/participants/{path}")
    rows = shown(owner, 2)
    wait_until(lambda: "4 times" in owner.get(ACCESS).text)
    rows = shown(owner, 2)
    assert [each.partition("Robin Hale ")[2] for each in rows] == [
        "Viewed 4 times Participant Ada",
        "Viewed Participant Bo",
    ]
    assert "5 entries" in owner.get(ACCESS).text
    assert len(owner.get(f"{ACCESS}.csv").text.splitlines()) == 6


def test_filters_are_in_words(owner: Browser, participant_ids: list[str]) -> None:
    owner.get("/console/participants?account_manager=none&status=Active&sort=-updated_at")
    [row] = shown(owner, 1)
    text = "Participants Ada Bo Cy Status Active No account manager"
    assert sorted(re.findall(r"\w+", row.partition("Listed ")[2])) == sorted(text.split())
    assert not re.search("[0-9a-f]{8}-", row)


def test_the_file_has_names_and_its_download_is_an_event(owner: Browser, participant_ids: list[str]) -> None:
    ada = participant_ids[0]
    owner.get(f"/console/participants/{ada}")
    owner.get("/console/participants")
    shown(owner, 2)
    response = owner.get(f"{ACCESS}.csv?record={ada}")
    listed, viewed = csv.DictReader(io.StringIO(response.text.removeprefix("\ufeff")))
    assert (viewed["Who"], viewed["Action"], viewed["Names"], viewed["Record IDs"]) == (
        "Robin Hale", "Viewed", "Ada", ada,
    )  # fmt: skip
    assert sorted(listed["Names"].split("; ")) == ["Ada", "Bo", "Cy"]
    assert sorted(listed["Record IDs"].split("; ")) == sorted(participant_ids)
    activity = unescape(owner.activity("?type=export.created"))
    assert "Data downloaded" in activity
    assert "Access log" in activity


def test_only_owners_see_the_log(new_browser: Callable[..., Browser], new_account: Callable[..., Account]) -> None:
    manager = new_browser(new_account("manager"))
    assert manager.get(ACCESS).status_code == 403
    assert manager.get(f"{ACCESS}.csv").status_code == 403
    assert ACCESS not in manager.get("/console/settings/people").text


@pytest.mark.usefixtures("participant_ids")
def test_only_managers_download_the_activity(
    new_browser: Callable[..., Browser], new_account: Callable[..., Account]
) -> None:
    viewer, manager = new_browser(new_account("viewer")), new_browser(new_account("manager"))
    manager.activity()  # waits until the sequencer has listed an event: an empty list has no file
    assert viewer.get("/console/activity.csv").status_code == 403
    assert manager.get("/console/activity.csv").status_code == 200
    assert "activity.csv" not in viewer.get("/console/activity").text
    assert "activity.csv" in manager.get("/console/activity").text
