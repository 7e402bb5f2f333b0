"""Erasure and legal holds in the console: for owners, confirmed a second time."""

import asyncio
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from threading import Event
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from plankeeper.privacy import person_export
from support.console import Account, Browser
from support.importing import import_records
from support.server import RunningServer

HOLDS = "/console/settings/legal-holds"


CreateParticipant = Callable[..., str]


@pytest.fixture
def create_participant(server: RunningServer, plan_manager_id: UUID) -> CreateParticipant:
    """Create a participant with a team member, and return the path of its page."""

    def create(**fields: str) -> str:
        participant_id = str(uuid7())
        member = {"participant_id": participant_id, "first_name": "Bo", "email": f"{uuid7().hex}@example.com"}
        rows: dict[str, dict[str, Any]] = {"participants": {"id": participant_id, **fields}, "team-members": member}
        for resource, row in rows.items():
            report = server.run(import_records(server, plan_manager_id, resource, [row]))
            assert not report.errors, report.errors
        return f"/console/participants/{participant_id}"

    return create


@pytest.fixture
def page(create_participant: CreateParticipant) -> str:
    return create_participant(first_name="Ada", last_name="O’Neil & Sons")


def text_of(browser: Browser, path: str) -> str:
    response = browser.get(path)
    assert response.status_code == 200, path
    return unescape(response.text)


def test_an_owner_erases_a_participant_after_entering_the_name(
    owner: Browser, page: str, create_participant: CreateParticipant
) -> None:
    other = create_participant(reason_for_leaving="Ada moved out")
    assert f'href="{page}/data"' in text_of(owner, page)
    assert f'href="{page}/erase"' in text_of(owner, f"{page}/data")
    shown = text_of(owner, f"{page}/erase")
    for expected in (
        "Erase everything about Ada O’Neil & Sons?",
        "<li>1 participant deleted</li>",
        "<li>1 team member deleted</li>",
        "Ada moved out",
        "To confirm, enter: Ada O’Neil & Sons",
    ):
        assert expected in shown
    refused = owner.submit(f"{page}/erase", {"confirmation": "Ada"})
    assert refused.status_code == 422
    assert "must be exactly “Ada O’Neil & Sons”" in unescape(refused.text)
    assert owner.get(page).status_code == 200
    erased = owner.submit(f"{page}/erase", {"confirmation": " Ada O’Neil & Sons "})
    assert (erased.status_code, erased.headers["location"]) == (303, "/console/participants")
    assert owner.get(page).status_code == 404
    assert owner.get(other).status_code == 200
    assert "Nothing about this person is left to erase." in text_of(owner, f"{page}/erase")


def test_a_participant_that_was_deleted_is_erased_by_its_id(owner: Browser, page: str) -> None:
    participant_id = page.rpartition("/")[2]
    assert owner.submit(f"{page}/delete").status_code == 303
    assert f"To confirm, enter: {participant_id}" in text_of(owner, f"{page}/erase")
    assert owner.submit(f"{page}/erase", {"confirmation": participant_id}).status_code == 303


def test_a_legal_hold_prevents_the_erasure_until_it_is_released(owner: Browser, page: str) -> None:
    name = "Ada O’Neil & Sons"
    assert "Place legal hold" in text_of(owner, f"{page}/hold")
    for reason in ("", "  ", "two\nlines", "x" * 256):
        assert owner.submit(f"{page}/hold", {"reason": reason}).status_code == 422
    placed = owner.submit(f"{page}/hold", {"reason": "Case <12>"})
    assert (placed.status_code, placed.headers["location"]) == (303, HOLDS)
    listed = text_of(owner, HOLDS)
    assert name in listed
    assert "Case <12>" in listed
    shown = text_of(owner, f"{page}/erase")
    assert "A legal hold keeps this person’s data: Case <12>" in shown
    assert "Erase permanently" not in shown
    assert owner.submit(f"{page}/erase", {"confirmation": name}).status_code == 422
    assert owner.submit(f"{page}/hold", {"reason": "again"}).status_code == 422
    assert owner.get(page).status_code == 200
    assert "Release legal hold" in text_of(owner, f"{page}/hold")
    assert owner.submit(f"{page}/hold/release", {}).status_code == 303
    assert "There are no legal holds." in text_of(owner, HOLDS)
    assert owner.submit(f"{page}/hold/release", {}).status_code == 404
    assert owner.submit(f"{page}/erase", {"confirmation": name}).status_code == 303


def test_a_hold_on_an_erased_person_says_so(owner: Browser, page: str) -> None:
    notice, participant_id = "This person’s data was erased.", page.rpartition("/")[2]
    assert notice not in text_of(owner, f"{page}/hold")
    assert owner.submit(f"{page}/delete").status_code == 303
    assert notice not in text_of(owner, f"{page}/hold")
    assert owner.submit(f"{page}/erase", {"confirmation": participant_id}).status_code == 303
    assert notice in text_of(owner, f"{page}/hold")
    assert owner.submit(f"{page}/hold", {"reason": "Case 12"}).status_code == 303
    shown = text_of(owner, f"{page}/hold")
    assert notice in shown
    assert "Case 12" in shown


def test_an_owner_downloads_everything_about_a_participant(owner: Browser, page: str) -> None:
    participant_id = page.rpartition("/")[2]
    shown = text_of(owner, f"{page}/data")
    assert re.search(r"<dt>Team members</dt><dd>1</dd>", shown)
    document = owner.get(f"{page}/data.json")
    assert document.headers["content-disposition"] == f'attachment; filename="participant-{participant_id}.json"'
    assert document.json()["participant"]["last_name"] == "O’Neil & Sons"
    readable = owner.get(f"{page}/data.html")
    assert readable.headers["content-type"] == "text/html; charset=utf-8"
    assert "O’Neil &amp; Sons" in readable.text
    assert readable.text.startswith("<!doctype html>")


def test_a_file_is_a_download_while_it_is_made(owner: Browser, page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    export, started, is_over = person_export.export_person, Event(), Event()

    async def export_slowly(*arguments: Any) -> person_export.PersonExport:
        started.set()
        while not is_over.is_set():
            await asyncio.sleep(0.01)
        return await export(*arguments)

    monkeypatch.setattr(person_export, "export_person", export_slowly)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(owner.http.get, f"{page}/data.json")
        try:
            assert started.wait(60)
            for name in ("data.json", "data.html"):
                rejected = owner.get(f"{page}/{name}")
                assert (rejected.status_code, rejected.headers["retry-after"]) == (429, "5")
                assert "Another download of yours is in progress." in rejected.text
        finally:
            is_over.set()
        assert first.result().status_code == 200
    assert owner.get(f"{page}/data.json").status_code == 200


def test_managers_neither_export_nor_erase_nor_hold(
    new_browser: Callable[..., Browser], new_account: Callable[..., Account], page: str
) -> None:
    manager = new_browser(new_account("manager"))
    assert f'href="{page}/data"' not in text_of(manager, page)
    assert HOLDS not in text_of(manager, page)
    for path in (f"{page}/data", f"{page}/data.json", f"{page}/data.html", f"{page}/erase", f"{page}/hold", HOLDS):
        assert manager.get(path).status_code == 403
    for path in (f"{page}/erase", f"{page}/hold", f"{page}/hold/release"):
        assert manager.submit(path, {"confirmation": "Ada O’Neil & Sons", "reason": "none"}).status_code == 403


def test_a_participant_that_never_was_is_not_found(owner: Browser) -> None:
    assert owner.get(f"/console/participants/{UUID(int=7)}/erase").status_code == 404
    assert owner.submit(f"/console/participants/{UUID(int=7)}/hold", {"reason": "none"}).status_code == 404
