"""Forms in a real browser, with and without JavaScript: errors, sections, contacts, unsaved changes."""

from collections.abc import Callable
from typing import Any

from uuid_utils.compat import uuid7

from plankeeper.console.components.record_picker import MAX_OPTIONS
from support.chromium import click
from support.client import Client
from support.console import (
    PASSWORD,
    Account,
    LoadCounter,
    fill_sign_in_form,
    open_signed_in,
    sign_out,
    wait_until_signed_in,
)
from support.ended_sessions import end_sessions
from support.server import RunningServer

FOCUSED = "document.activeElement.id || document.activeElement.className"


def test_an_address_is_changed_in_two_pages(visitor: Any, client: Client) -> None:
    made = client.create("/participants", {"first_name": "Ann", "city": "Hobart", "state": "TAS", "postcode": "7000"})
    visitor.goto(f"/console/participants/{made['id']}")
    loads = LoadCounter(visitor)
    click(visitor, "link", "Change address")
    visitor.get_by_label("Suburb").fill("Burnie")
    visitor.get_by_label("Postcode").fill("7320")
    click(visitor, "button", "Save changes")
    assert "Changes saved: Postcode, Suburb." in visitor.get_by_role("status").inner_text()
    assert loads.count == 2
    stored = client.get(f"/participants/{made['id']}").json()
    assert (stored["city"], stored["postcode"]) == ("Burnie", "7320")


def test_specific_exit_reasons_are_those_of_the_exit_reason(
    visitor: Any, client: Client, has_script: bool, import_rows: Callable[..., Any]
) -> None:
    parents = {"Dissatisfied": None, "Died": None, "Fees": "Dissatisfied", "Slow": "Dissatisfied", "Deceased": "Died"}
    ids = {name: str(uuid7()) for name in parents}
    rows = [{"id": ids[name], "name": name, "parent_id": ids.get(parent or "")} for name, parent in parents.items()]
    assert not import_rows(client, "exit-reasons", rows).errors
    reasons = {"exit_reason_category_id": ids["Dissatisfied"], "exit_reason_subcategory_id": ids["Deceased"]}
    made = client.create("/participants", {"first_name": "Ann", **reasons})["id"]
    visitor.goto(f"/console/participants/{made}")
    click(visitor, "link", "Change status and leaving")
    specific = visitor.get_by_label("Specific exit reason")

    def offered() -> set[str]:
        return set(specific.locator("option").all_text_contents())

    everything = {"Not set", "Fees", "Slow", "Deceased"}
    assert (offered(), specific.input_value()) == (everything, ids["Deceased"])  # also what contradicts, if it is set
    visitor.get_by_label("Exit reason", exact=True).select_option("Died")
    assert offered() == ({"Not set", "Deceased"} if has_script else everything)
    visitor.get_by_label("Exit reason", exact=True).select_option("Dissatisfied")
    assert offered() == ({"Not set", "Fees", "Slow"} if has_script else everything)
    assert specific.input_value() == ("" if has_script else ids["Deceased"])
    specific.select_option("Slow")
    if not has_script:
        visitor.get_by_label("Exit reason", exact=True).select_option("Died")
        click(visitor, "button", "Save changes")
        visitor.get_by_role("heading", name="Check these values").wait_for()
        visitor.get_by_label("Exit reason", exact=True).select_option("Dissatisfied")
    click(visitor, "button", "Save changes")
    assert client.get(f"/participants/{made}").json()["exit_reason_subcategory"]["name"] == "Slow"


def test_a_nominee_becomes_the_primary_contact_in_two_pages(visitor: Any, client: Client) -> None:
    made = client.create("/participants", {"first_name": "Ann", "approval_required": True})["id"]
    team = f"/participants/{made}/team-members"
    client.create(team, {"first_name": "Charlotte", "last_name": "McAllister", "contact_priority": 1})
    visitor.goto(f"/console/participants/{made}/team")
    loads = LoadCounter(visitor)
    click(visitor, "link", "Add team member")
    visitor.get_by_label("First name").fill("Deirdre")
    visitor.get_by_label("Email", exact=True).fill("deirdre@example.com")
    visitor.get_by_label("Role").fill("Plan nominee")
    visitor.get_by_label("Primary contact. Charlotte McAllister becomes the secondary contact").check()
    visitor.get_by_label("Approve invoices").check()
    visitor.get_by_label("View invoices").check()
    click(visitor, "button", "Add team member")
    message = visitor.get_by_role("status").inner_text()
    assert "Deirdre is now the primary contact. Charlotte McAllister is now the secondary contact." in message
    assert loads.count == 2
    members = client.get(team).json()["data"]
    assert {each["first_name"]: each["contact_priority"] for each in members} == {"Charlotte": 2, "Deirdre": 1}
    assert {each["name"] for each in members[1]["permissions"]} == {"approve_invoices", "view_invoices"}


def test_the_primary_contact_is_changed_in_one_page(visitor: Any, client: Client) -> None:
    made = client.create("/participants", {"first_name": "Ann"})["id"]
    team = f"/participants/{made}/team-members"
    for name, priority in (("Charlotte", 1), ("Deirdre", 2)):
        client.create(team, {"first_name": name, "contact_priority": priority})
    visitor.goto(f"/console/participants/{made}/team")
    loads = LoadCounter(visitor)
    click(visitor, "button", "Make primary contact: Deirdre")
    assert loads.count == 1
    assert {each["first_name"]: each["contact_priority"] for each in client.get(team).json()["data"]} == {
        "Charlotte": 2,
        "Deirdre": 1,
    }


def test_one_of_many_account_managers_is_found_by_name(
    visitor: Any, client: Client, import_rows: Callable[..., Any]
) -> None:
    names = [("Ama", "Owusu"), ("Ama", "Mensah"), *(("Person", str(number)) for number in range(MAX_OPTIONS))]
    rows = [
        {"id": str(uuid7()), "first_name": first, "last_name": last, "email": f"{first}.{last}@example.com"}
        for first, last in names
    ]
    assert not import_rows(client, "account-managers", rows).errors
    made = client.create("/participants", {"first_name": "Ann"})["id"]
    visitor.goto(f"/console/participants/{made}/edit/manager")
    loads = LoadCounter(visitor)
    visitor.get_by_label("Account manager").press_sequentially("ama")
    if visitor.evaluate("document.querySelector('.suggestions') !== null"):
        visitor.get_by_role("option", name="Ama Mensah").click()
    else:
        click(visitor, "button", "Save changes")
        visitor.get_by_label("Ama Mensah").check()
    click(visitor, "button", "Save changes")
    assert "Changes saved: Account manager." in visitor.get_by_role("status").inner_text()
    assert loads.count <= 2
    assert client.get(f"/participants/{made}").json()["account_manager"]["name"] == "Ama Mensah"


def test_the_summary_has_the_focus_and_leads_to_the_fields(visitor: Any, client: Client) -> None:
    visitor.goto("/console/participants/new")
    visitor.get_by_label("Email").fill("nobody@example")
    visitor.get_by_label("Date of birth").fill("31/2/1990")
    visitor.get_by_label("Suburb").fill("Hobart")
    click(visitor, "button", "Add participant")
    assert visitor.title().startswith("Error: New participant")
    visitor.wait_for_function(f"({FOCUSED}).includes('summary')") if visitor.evaluate(FOCUSED) == "" else None
    assert visitor.evaluate(FOCUSED) == "summary bad"
    links = visitor.get_by_role("alert").get_by_role("link")
    assert links.all_inner_texts() == [
        "Date of birth 31 Feb 1990 doesn’t exist.",
        "Email must be an email address, such as name@example.com.",
    ]
    links.nth(1).click()
    visitor.keyboard.type("x")  # wherever the focus is
    assert "x" in visitor.get_by_label("Email").input_value()
    assert visitor.get_by_label("Suburb").input_value() == "Hobart"
    assert client.get("/participants").json()["data"] == []


def test_an_implausible_value_is_saved_after_a_second_look(visitor: Any, client: Client) -> None:
    visitor.goto("/console/participants/new")
    visitor.get_by_label("First name").fill("Ann")
    visitor.get_by_label("Plan start date").fill("15 Apr 2026")
    visitor.get_by_label("Plan end date").fill("1/1/2020")
    click(visitor, "button", "Add participant")
    assert visitor.title().startswith("Check: New participant")
    assert "Plan end date is before the plan start date, 15 Apr 2026." in visitor.get_by_role("alert").inner_text()
    assert visitor.get_by_label("Plan end date").input_value() == "1 Jan 2020"
    click(visitor, "button", "Save anyway")
    assert "Ann added." in visitor.get_by_role("status").inner_text()


def test_leaving_with_changes_asks_first(
    fresh_page: Any, server: RunningServer, new_account: Callable[..., Account]
) -> None:
    page = fresh_page
    open_signed_in(page, server, new_account("manager"), "/console/participants/new")
    asked: list[str] = []

    def stay(dialog: Any) -> None:
        asked.append(dialog.type)
        dialog.dismiss()

    page.on("dialog", stay)
    page.get_by_label("First name").fill("Ann")
    page.get_by_role("link", name="Cancel").click()
    page.wait_for_timeout(50)
    assert (asked, page.get_by_label("First name").input_value()) == (["beforeunload"], "Ann")
    page.get_by_role("button", name="Add participant").click()  # sending is no leaving
    page.get_by_role("status").filter(has_text="Ann added.").wait_for()
    assert asked == ["beforeunload"]


def test_permissions_and_the_choice_of_access_fit(
    page: Any, server: RunningServer, client: Client, new_account: Callable[..., Account]
) -> None:
    made = client.create("/participants", {"first_name": "Ann"})["id"]
    open_signed_in(page, server, new_account("manager"), f"/console/participants/{made}/team-members/new")
    page.get_by_label("View budget").check()
    assert page.get_by_label("These permissions").is_checked()
    page.get_by_label("No access").check()
    assert not page.get_by_label("View budget").is_checked()


def sign_in_again(page: Any, account: Account) -> None:
    page.get_by_label("Email").fill(account.email)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    click(page, "button", "Sign in")
    wait_until_signed_in(page)


def send_after_the_end(server: RunningServer, page: Any, account: Account, path: str) -> None:
    """Sign in, change a participant, and save it after the session has ended."""
    fill_sign_in_form(page, account.email, path)
    page.get_by_label("First name").fill("Bo")
    page.get_by_label("Date of birth").fill("3/2/1990")
    end_sessions(server, account.account_id)
    click(page, "button", "Save changes")
    page.locator("[data-unsaved]").wait_for()


def shown_values(page: Any) -> tuple[str, str]:
    return page.get_by_label("First name").input_value(), page.get_by_label("Date of birth").input_value()


def test_a_form_is_kept_when_the_session_has_ended(
    server: RunningServer, client: Client, new_page: Callable[[], Any], new_account: Callable[..., Account],
    has_script: bool,
) -> None:  # fmt: skip
    person, page = new_account("manager"), new_page()
    made = client.create("/participants", {"first_name": "Ann"})["id"]
    send_after_the_end(server, page, person, f"/console/participants/{made}/edit/person")
    expected = "Your changes were kept in this tab" if has_script else "before your changes were saved"
    assert expected in page.locator("[data-unsaved]").inner_text()
    sign_in_again(page, person)
    assert shown_values(page) == (("Bo", "3/2/1990") if has_script else ("Ann", ""))
    assert client.get(f"/participants/{made}").json()["first_name"] == "Ann"
    if has_script:
        assert page.get_by_role("alert").inner_text().startswith("Your changes were kept. Nothing is saved yet")
        click(page, "button", "Save changes")
        assert "Changes saved: First name, Date of birth." in page.get_by_role("status").inner_text()
        assert page.evaluate("sessionStorage.length") == 0


def test_a_kept_form_is_not_shown_to_another_person_or_after_signing_out(
    server: RunningServer, client: Client, fresh_page: Any, new_account: Callable[..., Account]
) -> None:
    page = fresh_page
    person, other = new_account("manager"), new_account("manager")
    made = client.create("/participants", {"first_name": "Ann"})["id"]
    path = f"/console/participants/{made}/edit/person"
    send_after_the_end(server, page, person, path)
    sign_in_again(page, other)
    assert (shown_values(page), page.evaluate("sessionStorage.length")) == (("Ann", ""), 0)
    sign_out(page)
    send_after_the_end(server, page, person, path)
    sign_in_again(page, person)
    page.once("dialog", lambda dialog: dialog.accept())
    sign_out(page)
    page.get_by_role("heading", name="Sign in").wait_for()
    assert page.evaluate("sessionStorage.length") == 0
