"""Access in the console: every view and export is recorded, shown to owners, and exported."""

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
def participant_id(server: RunningServer, plan_manager_id: UUID) -> str:
    row = {"id": str(uuid7()), "first_name": "Ada"}
    assert not server.run(import_records(server, plan_manager_id, "participants", [row])).errors
    return row["id"]


def shown(owner: Browser, count: int, query: str = "") -> list[str]:
    """The rows of the page, once there are as many."""

    def rows() -> list[str]:
        text = unescape(owner.get(ACCESS + query).text)
        found = re.findall(r"<tr>\s*<td.*?</tr>", text, flags=re.DOTALL)
        return [" ".join(re.sub(r"<[^>]+>", " ", each).split()) for each in found]

    wait_until(lambda: len(rows()) >= count)
    assert len(rows()) == count
    return rows()


def test_views_lists_and_exports_are_recorded_with_the_person(owner: Browser, participant_id: str) -> None:
    page = f"/console/participants/{participant_id}"
    for path in (page, f"{page}/edit/person", "/console/participants?q=ada", f"{page}/data.json"):
        assert owner.get(path).status_code == 200
    assert owner.get(f"/console/participants/{uuid7()}").status_code == 404
    rows = shown(owner, 4)
    assert all("Robin Hale User" in row for row in rows)
    assert [re.search("Viewed|Listed|Exported", row)[0] for row in rows] == [  # type: ignore[index]
        "Exported",
        "Listed",
        "Viewed",
        "Viewed",
    ]
    assert "(q=ada)" in rows[1]
    assert shown(owner, 4, f"?resource_id={participant_id}") == rows
    assert shown(owner, 0, f"?resource_id={uuid7()}") == []
    assert shown(owner, 4, "?name=robin+hale") == rows
    assert owner.get(f"{ACCESS}?resource_id=nonsense").status_code == 422


def test_the_records_are_exported_as_csv_and_the_export_is_an_event(owner: Browser, participant_id: str) -> None:
    owner.get(f"/console/participants/{participant_id}")
    shown(owner, 1)
    response = owner.get(f"{ACCESS}.csv?resource_id={participant_id}")
    [row] = csv.DictReader(io.StringIO(response.text.removeprefix("\ufeff")))
    assert (row["actor_name"], row["action"], row["resource_id"]) == ("Robin Hale", "viewed", participant_id)
    activity = unescape(owner.activity("?type=export.created"))
    assert "access_records" in activity
    assert participant_id in activity


def test_only_owners_see_the_records(new_browser: Callable[..., Browser], new_account: Callable[..., Account]) -> None:
    manager = new_browser(new_account("manager"))
    assert manager.get(ACCESS).status_code == 403
    assert manager.get(f"{ACCESS}.csv").status_code == 403
    assert ACCESS not in manager.get("/console/settings/people").text
