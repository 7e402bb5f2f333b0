"""Jobs of an office in Chromium, with and without JavaScript, and the number of pages that each takes.

| job | tests |
|---|---|
| find a participant | here |
| see everything about a participant | `test_record_pages_in_browser` |
| change an address, see who did it, undo it | `test_forms_in_browser`, and here |
| add a nominee as the primary contact | `test_forms_in_browser` |
| settle possible duplicates | here |
| total the invoices of a provider between two dates | here |
| import a file of participants, export a list | `test_import_in_browser` |
| create an API key, mend an endpoint that fails | here |
| invite a colleague | here |
| see what needs attention | `test_home_in_browser` |
"""

from collections.abc import Callable
from datetime import date, datetime
from typing import Any
from urllib.parse import quote

import pytest
from uuid_utils.compat import uuid7

from plankeeper.webhooks import client as webhook_client
from support.chromium import click, search_everywhere
from support.client import Client
from support.console import PASSWORD, LoadCounter, fill_sign_in_form, open_account_menu, sign_out, wait_until_signed_in
from support.receiver import Receiver
from support.server import RunningServer, wait_until
from support.sweeps import sweep
from support.webhooks import poll_once

Import = Callable[..., Any]
LINE = {"service_item_number": "01_011_0107_1_1", "quantity": 1}
ROISIN = {
    "first_name": "Róisín", "last_name": "Kavanagh", "preferred_name": "Ro", "participant_number": "430205409",
    "email": "roisin.kavanagh@example.com", "phone_number": "0491 571 266",
}  # fmt: skip


def message(page: Any) -> str:
    """The message of the page about the form that was sent."""
    return page.get_by_role("status").first.inner_text()


def heading(page: Any) -> str:
    return page.get_by_role("heading", level=1).inner_text()


@pytest.fixture
def today(server: RunningServer) -> date:
    return datetime.now(server.settings.time_zone).date()


@pytest.fixture
def import_invoices(client: Client, import_rows: Import) -> Callable[..., list[str]]:
    """Imports invoices with one correct line, on hold unless they say otherwise: their ids."""

    def import_all(*invoices: dict[str, Any]) -> list[str]:
        rows = [
            {"id": str(uuid7()), "claim_status": "on_hold", "tax": 0, "subtotal": each["total"],
             "line_items": [LINE | {"unit_price": each["total"], "total_price": each["total"]}]} | each
            for each in invoices
        ]  # fmt: skip
        report = import_rows(client, "invoices", rows)
        assert not report.errors, report.errors
        return [each["id"] for each in rows]

    return import_all


@pytest.fixture
def participants(client: Client) -> None:
    client.create("/participants", ROISIN)
    client.create("/participants", {"first_name": "Bo", "last_name": "Chen", "participant_number": "430205410"})


@pytest.mark.parametrize("has_script", [True], indirect=True)
@sweep(
    "text",
    [
        "avanagh", "roisin kav", "Kavanagh, Róisín", "Kavanah", "430 205 409", "205409", "roisin.kavanagh@",
        "0491571266", "0491 571 266", "Ro",
    ],
)  # fmt: skip
def test_a_participant_is_found_in_two_pages(visitor: Any, participants: None, text: str) -> None:
    visitor.goto("/console/providers")
    loads = LoadCounter(visitor)
    search_everywhere(visitor, text)
    if heading(visitor) == "Search":
        assert visitor.get_by_role("link", name="Bo Chen").count() == 0
        click(visitor, "link", "Róisín Kavanagh", exact=False)
    assert heading(visitor).startswith("Róisín Kavanagh")
    assert loads.count <= 2


def test_somebody_of_the_team_leads_to_the_participant(visitor: Any, client: Client) -> None:
    person = client.create("/participants", ROISIN)["id"]
    client.create(f"/participants/{person}/team-members", {"first_name": "Charlotte", "role": "Plan nominee"})
    visitor.goto("/console/providers")
    loads = LoadCounter(visitor)
    search_everywhere(visitor, "charlo")
    assert visitor.get_by_text("Plan nominee of Róisín Kavanagh").is_visible()
    click(visitor, "link", "Charlotte")
    click(visitor, "link", "Róisín Kavanagh")
    assert loads.count == 3


def test_a_change_is_seen_and_undone_in_two_pages(visitor: Any, client: Client) -> None:
    path = f"/participants/{client.create('/participants', ROISIN | {'city': 'Hobart'})['id']}"
    visitor.goto(f"/console{path}/edit/address")
    visitor.get_by_label("Suburb").fill("Burnie")
    click(visitor, "button", "Save changes")
    loads = LoadCounter(visitor)
    click(visitor, "link", "Undo")
    assert visitor.get_by_role("row", name="Suburb").inner_text().split() == ["Suburb", "Burnie", "Hobart"]
    click(visitor, "button", "Undo change")
    assert (message(visitor), loads.count) == ("Undone: Suburb. Undo", 2)
    assert client.get(path).json()["city"] == "Hobart"
    # The timeline, which the page is now, has both changes, who made them, and an undo for each.
    for change, text in (("Hobart → Burnie", "Suburb changed"), ("Burnie → Hobart", "Suburb changed")):
        before, after = change.split(" → ")
        entry = visitor.locator(".timeline > li").filter(has_text=f"before {before}").filter(has_text=f"after {after}")
        assert entry.get_by_text(text, exact=True).is_visible()
        assert entry.get_by_text("Robin Hale").is_visible()
        assert entry.get_by_role("link", name="Undo").is_visible()


def test_a_participant_is_deleted_and_restored_with_the_team(visitor: Any, client: Client) -> None:
    path = f"/participants/{client.create('/participants', ROISIN)['id']}"
    client.create(f"{path}/team-members", {"first_name": "Charlotte", "contact_priority": 1})
    before = client.get(path).json(), client.get(f"{path}/team-members").json()["data"]
    visitor.goto(f"/console{path}")
    loads = LoadCounter(visitor)
    visitor.get_by_label("More actions").click()
    click(visitor, "link", "Delete")
    click(visitor, "button", "Delete participant")
    assert (message(visitor), loads.count) == ("Róisín Kavanagh moved to the trash. Undo", 2)
    assert client.get(path).status_code == 404
    click(visitor, "link", "Undo")
    click(visitor, "button", "Restore participant")
    assert (heading(visitor), loads.count) == ("Róisín Kavanagh “Ro”", 4)
    assert visitor.get_by_text("Charlotte").first.is_visible()
    after = client.get(path).json(), client.get(f"{path}/team-members").json()["data"]
    assert after[0] | {"updated_at": None} == before[0] | {"updated_at": None}
    assert [each["first_name"] for each in after[1]] == [each["first_name"] for each in before[1]]


def test_six_duplicates_are_found_in_two_pages_and_each_is_settled_in_one_more(
    new_visitor: Callable[[str], Any], client: Client, import_invoices: Callable[..., list[str]], today: date
) -> None:
    person = client.create("/participants", ROISIN)["id"]
    provider = client.create("/providers", {"entity_name": "Pewter Pelican", "abn": "51824753556"})["id"]
    invoice = {"participant_id": person, "pm_provider_id": provider, "invoice_date": today.isoformat()}
    numbers = [f"INV-{number}" for number in range(6)]
    import_invoices(*(invoice | {"invoice_number": each, "total": 100, "claim_status": "paid"} for each in numbers))
    duplicates = import_invoices(
        *(invoice | {"invoice_number": each, "total": 100} for each in numbers),
        invoice | {"invoice_number": "INV-9", "total": 109, "invoice_date": None},
    )[:6]
    visitor = new_visitor("owner")  # only owners ignore what blocks claims
    loads = LoadCounter(visitor)
    visitor.goto("/console")
    click(visitor, "link", "Possible duplicate")
    listed = visitor.locator("table.list tbody td.lead").all_inner_texts()
    assert (sorted(listed), loads.count) == (numbers, 2)
    click(visitor, "link", listed[0])
    for number in listed:
        loads.count = 0
        assert heading(visitor) == f"Invoice {number} · Pewter Pelican · Róisín Kavanagh · $100.00"
        assert visitor.get_by_role("link", name="Open the earlier invoice").is_visible()
        visitor.get_by_text("Ignore…").click()
        visitor.get_by_role("textbox", name="Reason").fill("The first one was withdrawn")
        click(visitor, "button", "Ignore warning")
        assert loads.count == 1
    assert message(visitor) == "“Possible duplicate” ignored."  # there is no next invoice
    with visitor.expect_navigation(wait_until="load"):
        visitor.locator(".crumbs").get_by_role("link", name="Invoices").click()
    assert visitor.get_by_text("No invoices match.").is_visible()
    for id_ in duplicates:
        state = client.get(f"/invoices/{id_}").json()["state_management"]
        assert (state["errors"], state["ignored_errors"]) == (["possible_duplicate"], ["possible_duplicate"])


def test_invoices_of_a_provider_between_two_dates_over_an_amount_are_one_page_with_their_total(
    visitor: Any, client: Client, import_invoices: Callable[..., list[str]]
) -> None:
    pelican = client.create("/providers", {"entity_name": "Pewter Pelican Psychology Group"})["id"]
    other = client.create("/providers", {"entity_name": "Amber & Sons"})["id"]
    rows = [
        (pelican, "2026-06-30", "1500.00"), (pelican, "2026-07-01", "1000.01"), (pelican, "2026-08-15", "999.99"),
        (pelican, "2026-09-30", "2000.50"), (pelican, "2026-10-01", "1500.00"), (other, "2026-08-01", "4000.00"),
    ]  # fmt: skip
    import_invoices(
        *({"invoice_number": f"INV-{number}", "pm_provider_id": provider, "invoice_date": day, "total": total}
          for number, (provider, day, total) in enumerate(rows)),
    )  # fmt: skip
    visitor.goto("/console/invoices")
    loads = LoadCounter(visitor)
    visitor.locator("summary", has_text="Filter").click()
    visitor.locator(".list-fields").get_by_label("Provider").fill("pelican")
    visitor.get_by_label("Invoice date from", exact=True).fill("1/7/2026")
    visitor.get_by_label("Invoice date to", exact=True).fill("30/9/2026")
    visitor.get_by_label("Total from").fill("1,000")
    click(visitor, "button", "Apply filters")
    assert visitor.locator(".list-summary").inner_text() == "2 invoices · $3,000.51"
    assert sorted(visitor.locator("table.list tbody td.lead").all_inner_texts()) == ["INV-1", "INV-3"]
    assert loads.count == 1


def test_a_key_is_created_and_its_requests_are_seen_in_four_pages(
    server: RunningServer, visitor: Any, client: Client
) -> None:
    visitor.goto("/console/settings/keys")
    loads = LoadCounter(visitor)
    click(visitor, "link", "New API key")
    visitor.get_by_label("Name").fill("Report")
    click(visitor, "button", "Create key")
    program = Client(server.url, visitor.locator("#secret").inner_text(), client.plan_manager_id)
    assert [program.get(f"/participants{rest}").status_code for rest in ("", f"/{uuid7()}")] == [200, 404]
    program.http.close()
    click(visitor, "link", "Done")
    click(visitor, "link", "Report")
    assert (heading(visitor).startswith("Report"), loads.count) == (True, 4)

    def has_requests() -> bool:
        visitor.reload()
        return visitor.get_by_role("cell", name="404").count() > 0

    wait_until(has_requests)  # they appear within two seconds
    assert visitor.get_by_role("cell", name="200").first.is_visible()


def test_a_failing_endpoint_is_found_mended_and_used_again_in_six_pages(
    server: RunningServer,
    new_visitor: Callable[[str], Any],
    client: Client,
    receivers: Callable[[], Receiver],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(webhook_client, "is_public", lambda _address: True)  # or the responses wouldn't be kept
    server.run(server.db.execute("delete from webhook_endpoints"))  # a worker sends for all plan managers
    old, new = receivers(), receivers()
    old.respond = lambda _headers, _body: (503, {}, b'{"error": "the ledger has moved"}')
    client.create("/webhook-endpoints", {"url": old.url, "event_types": ["note_type.created"]})
    client.create("/participants", ROISIN)  # Home is not empty
    client.create("/note-types", {"note_type": "Visit"})
    wait_until(lambda: poll_once(server) == 1)  # once the event is in the feed
    owner = new_visitor("owner")
    loads = LoadCounter(owner)
    owner.goto("/console")
    assert owner.locator(".notices").get_by_text("Failing").is_visible()
    click(owner, "link", old.url)
    assert owner.get_by_text("Every attempt has failed since").is_visible()
    click(owner, "link", "note_type.created")
    assert owner.get_by_label("Response of attempt 1").inner_text() == '{"error": "the ledger has moved"}'
    assert '"note_type.created"' in owner.locator("#payload").inner_text()
    assert loads.count == 3  # found, and explained
    click(owner, "link", "Edit endpoint")
    owner.get_by_label("URL").fill(new.url)
    click(owner, "button", "Save endpoint")
    click(owner, "button", "Send now")
    assert loads.count == 6
    assert poll_once(server) == 1
    assert [each.body for each in new.received] == [each.body for each in old.received]
    owner.reload()
    assert owner.locator(".facts").get_by_text("succeeded").is_visible()
    assert owner.get_by_role("heading", name="Attempt 2 204").is_visible()
    owner.goto("/console")
    assert "Failing" not in owner.locator(".notices").inner_text()


def invite_viewer(owner: Any, email: str) -> str:
    """Invite a colleague from any page, and return the link of the invitation."""
    click(owner, "link", "Settings")
    click(owner, "link", "People")
    click(owner, "link", "Invite a person")
    owner.get_by_label("Email").fill(email)
    owner.get_by_label("Name").fill("Sam Okafor")
    owner.get_by_label("Role").select_option("viewer")
    click(owner, "button", "Create invitation")
    mail_url = owner.get_by_role("link", name="Write an email").get_attribute("href") or ""
    assert mail_url.startswith(f"mailto:{quote(email)}?")
    return owner.get_by_label("Invitation link").inner_text()


def assert_only_views(viewer: Any) -> None:
    """A viewer sees the records, and nothing that changes them."""
    click(viewer, "link", "Participants")
    assert viewer.get_by_role("link", name="New participant").count() == 0
    click(viewer, "link", "Kavanagh, Róisín", exact=False)
    assert viewer.get_by_role("link", name="Change address").count() == 0
    click(viewer, "link", "Settings")
    assert viewer.get_by_role("link", name="People").count() == 1
    assert viewer.get_by_role("link", name="Import", exact=True).count() == 0
    response = viewer.goto("/console/settings/people/invite")
    assert (response.status, heading(viewer)) == (403, "You don’t have permission to do this")
    open_account_menu(viewer)
    assert viewer.locator(".account-menu").get_by_text("viewer").is_visible()


def test_a_colleague_is_invited_in_four_pages_and_joins_in_two(
    new_visitor: Callable[[str], Any], new_page: Callable[[], Any], client: Client
) -> None:
    client.create("/participants", ROISIN)
    email = f"{uuid7()}@example.com"
    owner = new_visitor("owner")
    owner.goto("/console")
    loads = LoadCounter(owner)
    link = invite_viewer(owner, email)
    assert loads.count == 4

    colleague = new_page()
    loads = LoadCounter(colleague)
    colleague.goto(link)
    assert colleague.get_by_text(f"You’ve been invited as a viewer ({email}).").is_visible()
    colleague.get_by_label("Password").fill(PASSWORD)
    click(colleague, "button", "Join")
    assert (message(colleague).startswith("You joined"), loads.count) == (True, 2)
    sign_out(colleague)
    colleague.get_by_role("heading", name="Sign in").wait_for()
    fill_sign_in_form(colleague, email)
    wait_until_signed_in(colleague)
    assert_only_views(colleague)
    click(owner, "link", "Done")
    assert owner.get_by_role("row", name="Sam Okafor").get_by_text("viewer").is_visible()
