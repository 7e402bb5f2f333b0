"""Participants and their teams in a real browser."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from plankeeper.console.participants.form import SECTIONS
from support.client import Client
from support.console import Account, open_signed_in
from support.server import RunningServer


def test_a_participant_is_added_found_and_saved_unchanged(
    server: RunningServer, page: Any, new_account: Callable[..., Account], new_key: Callable[..., str],
    plan_manager_id: UUID,
) -> None:  # fmt: skip
    open_signed_in(page, server, new_account("manager"), "/console/participants")
    page.get_by_role("link", name="New participant").first.click()
    page.get_by_label("First name").fill("Ann")
    page.get_by_label("Last name").fill("Lee")
    page.get_by_label("NDIS number").fill("430123456")
    page.get_by_label("Plan start date").fill("1/7/2026")
    page.get_by_text("Leaving (only if the participant has left)").click()
    page.get_by_label("Reason details").fill("First line\nsecond line")
    page.get_by_role("button", name="Add participant").click()
    page.get_by_role("status").filter(has_text="Ann Lee added.").wait_for()
    page.get_by_role("region", name="Plan").get_by_text("1 Jul 2026").wait_for()
    page.get_by_role("link", name="Participants").first.click()
    page.get_by_label("Name, number, phone or email").fill("ann le")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="Lee, Ann").click()
    # A form that is sent back untouched changes nothing: what a browser does to texts is taken out again.
    client = Client(server.url, new_key(plan_manager_id), plan_manager_id)
    before = client.get("/participants").json()["data"]
    assert before[0]["reason_for_leaving"] == "First line\nsecond line"
    record = page.url.partition("?")[0]
    for section in SECTIONS:
        page.goto(f"{record}/edit/{section}")
        page.get_by_role("button", name="Save changes").click()
        page.get_by_role("status").filter(has_text="Changes saved.").wait_for()
    assert client.get("/participants").json()["data"] == before
    client.http.close()
    updated = "select count(*) from events where plan_manager_id = $1 and type = 'participant.updated'"
    assert server.run(server.db.one(int, updated, plan_manager_id)) == 0


def test_a_team_member_is_added_and_its_permissions_edited(
    server: RunningServer, page: Any, new_account: Callable[..., Account], new_key: Callable[..., str],
    plan_manager_id: UUID,
) -> None:  # fmt: skip
    client = Client(server.url, new_key(plan_manager_id), plan_manager_id)
    ann = client.create("/participants", {"first_name": "Ann"})["id"]
    open_signed_in(page, server, new_account("manager"), f"/console/participants/{ann}/team")
    page.get_by_role("link", name="Add team member").click()
    page.get_by_label("First name").fill("Pat")
    page.get_by_label("Email", exact=True).fill("pat@example.com")
    page.get_by_label("View budget").check()
    page.get_by_label("Primary contact").check()
    page.get_by_role("button", name="Add team member").click()
    page.get_by_role("status").filter(has_text="Pat added to the team.").wait_for()
    page.get_by_role("link", name="Edit Pat").click()
    page.get_by_label("View budget").uncheck()
    page.get_by_label("View invoices").check()
    page.get_by_label("View documents").check()
    page.get_by_role("button", name="Save changes").click()
    for label, granted in (("View budget", "No"), ("View invoices", "Yes"), ("View documents", "Yes")):
        page.locator(f'td[data-label="{label}"]').filter(has_text=granted).wait_for()
    [member] = client.get(f"/participants/{ann}/team-members").json()["data"]
    assert [each["name"] for each in member["permissions"]] == ["view_invoices", "view_documents"]
    client.http.close()
