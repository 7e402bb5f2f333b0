"""Entering an invoice in Chromium: the keys, the lines, and the sums that appear while somebody types."""

import re
from typing import Any

import pytest

from support.client import Client

NEW = "/console/invoices/new"
ITEM = "01_011_0107_1_1"


@pytest.fixture
def records(client: Client) -> None:
    client.create("/providers", {"entity_name": "Amber Gardens", "abn": "51824753556"})
    person = {"first_name": "Ann", "last_name": "Lee", "participant_number": "430205409"}
    client.create("/participants", person)


def type_keys(page: Any, *keys: str) -> None:
    """Type texts, and press the keys in brackets, such as `[Enter]`."""
    for each in keys:
        if each.startswith("["):
            page.keyboard.press(each.strip("[]"))
        else:
            page.keyboard.type(each)


def choose_suggestion(page: Any, text: str, name: str) -> None:
    """Fill the focused field, and take the suggestion with a name. Key by key, others could be suggested meanwhile."""
    page.keyboard.insert_text(text)
    page.get_by_role("option", name=name).wait_for()
    type_keys(page, "[ArrowDown]", "[Enter]")


@pytest.mark.parametrize("has_script", [True], indirect=True)
def test_an_invoice_is_entered_with_the_keyboard_alone(visitor: Any, client: Client, records: None) -> None:
    visitor.goto(NEW)
    choose_suggestion(visitor, "518247", "Amber Gardens")
    type_keys(visitor, "[Enter]")
    choose_suggestion(visitor, "ann", "Ann Lee")
    type_keys(visitor, "[Enter]", "INV-9", "[Enter]", "3/11/2026", "[Enter]")
    first = visitor.get_by_role("group", name="Line 1", exact=True)
    first.get_by_label("Support item").focus()
    type_keys(visitor, ITEM, "[Tab]", "Mowing", "[Tab]", "2/11/2026", "[Enter]", "[Enter]", "60", "[Enter]", "2")
    assert first.get_by_label("Quantity", exact=True).input_value() == "60"
    type_keys(visitor, "[Alt+w]", "[Enter]")
    assert first.get_by_label("Quantity", exact=True).input_value() == "2"
    check = visitor.locator("[data-check]")
    check.get_by_text("Everything adds up.").wait_for()
    note = "This is the first invoice from this provider: check who it is."
    sums = "Lines $120.00 GST $0.00 Together $120.00"
    assert re.sub(r"\s+", " ", check.inner_text()).startswith(f"{note} {sums}")
    assert first.get_by_label("Total").get_attribute("placeholder") == "$120.00"
    type_keys(visitor, "[Alt+c]")  # the second line
    second = visitor.get_by_role("group", name="Line 2", exact=True)
    assert second.get_by_label("Description").input_value() == "Mowing"
    second.get_by_label("Unit price").fill("10")
    check.get_by_text("$140.00").first.wait_for()
    second.get_by_label("Total").focus()
    type_keys(visitor, "[Enter]")  # the third line, which stays empty
    assert visitor.get_by_role("group", name="Line 3", exact=True).get_by_label("Support item").is_visible()
    second.get_by_label("Unit price").focus()
    type_keys(visitor, "[Alt+x]")
    visitor.get_by_text("Line 2 is removed.").wait_for()
    type_keys(visitor, "[Enter]")  # puts it back
    assert second.get_by_label("Unit price").is_visible()
    visitor.get_by_label("Total", exact=True).last.fill("141")
    check.get_by_text("the invoice says $141.00").wait_for()
    with visitor.expect_navigation():
        type_keys(visitor, "[Alt+Enter]")
    visitor.get_by_text("Invoice INV-9 added. Enter the next one.").wait_for()
    assert visitor.get_by_label("Invoice number").input_value() == ""
    [invoice] = client.get("/invoices", include="line_items").json()["data"]
    assert (invoice["invoice_number"], invoice["total"], invoice["subtotal"]) == ("INV-9", 141, 140)
    assert [each["total_price"] for each in invoice["line_items"]] == [120, 20]


def test_lines_are_added_and_removed_with_and_without_javascript(visitor: Any, client: Client, records: None) -> None:
    visitor.goto(NEW)
    visitor.get_by_label("Quantity", exact=True).fill("3")
    visitor.get_by_label("Unit price", exact=True).fill("5")
    visitor.get_by_role("button", name="Duplicate: line 1").click()
    visitor.get_by_role("group", name="Line 2", exact=True).get_by_label("Quantity", exact=True).fill("4")
    visitor.get_by_role("button", name="Update totals").last.click()
    visitor.locator("[data-check]").get_by_text("$35.00").first.wait_for()
    visitor.get_by_role("button", name="Remove: line 1").click()
    visitor.get_by_text("Line 1 is removed.").wait_for()
    visitor.get_by_role("button", name="Add invoice").click()
    visitor.get_by_text("An invoice without number added.").wait_for()
    [invoice] = client.get("/invoices", include="line_items").json()["data"]
    assert [each["total_price"] for each in invoice["line_items"]] == [20]


@pytest.mark.parametrize("has_script", [True], indirect=True)
def test_a_number_becomes_its_record_when_the_field_is_left(visitor: Any, client: Client, records: None) -> None:
    client.create("/participants", {"first_name": "Ann", "last_name": "Lee", "participant_number": "430205410"})
    visitor.goto(NEW)
    visitor.wait_for_load_state()
    type_keys(visitor, "51 824 753 556", "[Tab]")
    visitor.get_by_text("ABN 51 824 753 556", exact=True).wait_for()
    assert visitor.get_by_label("Provider").input_value() == "Amber Gardens"
    choose_suggestion(visitor, "430205410", "Ann Lee")
    visitor.get_by_text("NDIS 430 205 410", exact=True).wait_for()
    type_keys(visitor, "x")
    visitor.get_by_text("NDIS 430 205 410", exact=True).wait_for(state="hidden")


@pytest.mark.parametrize("has_script", [True], indirect=True)
def test_lines_survive_the_end_of_the_session(visitor: Any, client: Client, records: None) -> None:
    visitor.goto(NEW)
    visitor.get_by_label("Quantity", exact=True).fill("3")
    visitor.get_by_role("button", name="Add line").click()
    visitor.get_by_role("group", name="Line 2", exact=True).get_by_label("Quantity", exact=True).fill("7")
    fields = {"path": NEW, "isUnsaved": True, "fields": [["line-1-quantity", "3"], ["line-2-quantity", "7"]]}
    script = """fields => sessionStorage.setItem("plankeeper-draft", JSON.stringify({
        ...fields, account: document.body.dataset.account, planManager: document.body.dataset.planManager,
        time: Date.now() }))"""
    visitor.evaluate(script, fields)
    visitor.goto(NEW)
    visitor.get_by_text("Your changes were kept.").wait_for()
    second = visitor.get_by_role("group", name="Line 2", exact=True)
    assert second.get_by_label("Quantity", exact=True).input_value() == "7"


@pytest.mark.parametrize("has_script", [True], indirect=True)
def test_an_invoice_is_held_released_and_undone_with_keys(visitor: Any, client: Client) -> None:
    made = client.create("/invoices", {"invoice_number": "INV-1", "total": 10, "line_items": [{"total_price": 10}]})
    visitor.goto(f"/console/invoices/{made['id']}")
    type_keys(visitor, "[h]")
    reason = visitor.get_by_role("textbox", name="Reason")
    assert reason.input_value().startswith("No participant, No provider")  # the open warnings
    reason.fill("Price above limit")
    with visitor.expect_navigation():
        type_keys(visitor, "[Control+Enter]")
    visitor.get_by_text("by Robin Hale: Price above limit.").wait_for()
    with visitor.expect_navigation():
        type_keys(visitor, "[r]")
    visitor.get_by_text("Invoice INV-1 released.").wait_for()
    visitor.get_by_role("status").get_by_role("link", name="Undo").click()
    visitor.get_by_role("button", name="Undo change").click()
    visitor.get_by_text("by Robin Hale: Price above limit.").wait_for()
    visitor.wait_for_load_state()
    type_keys(visitor, "[a]")
    assert visitor.get_by_role("combobox", name="Assigned to").locator("option:checked").inner_text() == "Robin Hale"
    type_keys(visitor, "[Escape]", "[e]")
    visitor.get_by_role("heading", name="Edit invoice INV-1").wait_for()
