"""The keys of the console, and the header on a phone."""

from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import pytest

from plankeeper.console.shell.templating import SHORTCUTS
from support.client import Client
from support.console import Account, open_account_menu, open_signed_in
from support.server import RunningServer

PHONE = {"width": 390, "height": 844}
NAMES = ["Acacia", "Banksia", "Callistemon"]


@pytest.fixture
def console(
    server: RunningServer, page: Any, new_account: Callable[..., Account], new_key: Callable[..., str],
    plan_manager_id: UUID,
) -> Iterator[Any]:  # fmt: skip
    """The list of three providers, on a page of Chromium."""
    client = Client(server.url, new_key(plan_manager_id), plan_manager_id)
    for name in NAMES:
        client.create("/providers", {"entity_name": name})
    client.http.close()
    open_signed_in(page, server, new_account("manager"), "/console/providers")
    return page


def wait_for_page(page: Any, heading: str) -> None:
    page.get_by_role("heading", name=heading).wait_for()
    page.wait_for_load_state()


def focused_text(page: Any) -> str:
    return page.evaluate("document.activeElement.innerText")


def press(page: Any, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)


def test_j_and_k_move_in_a_list_and_enter_opens_a_record(console: Any) -> None:
    shown = console.locator(".rows td.lead a").all_inner_texts()
    assert sorted(shown) == NAMES
    found: list[str] = []
    for key in ("j", "j", "j", "j", "k"):
        press(console, key)
        found.append(focused_text(console))
    assert found == [shown[0], shown[1], shown[2], shown[2], shown[1]]
    press(console, "Enter")
    wait_for_page(console, shown[1])
    press(console, "e")
    console.get_by_role("heading", name=f"Edit {shown[1]}").wait_for()


def test_a_click_anywhere_in_a_row_opens_the_record(console: Any) -> None:
    row = console.get_by_role("row").filter(has_text="Banksia")
    box = row.bounding_box()
    console.mouse.click(box["x"] + box["width"] - 20, box["y"] + box["height"] / 2)
    console.get_by_role("heading", name="Banksia").wait_for()


def test_g_and_a_letter_go_to_a_page(console: Any) -> None:
    for key, path in {"i": "/console/invoices", "p": "/console/participants", "s": "/console/settings"}.items():
        console.keyboard.type("g" + key)  # in one call: the page soon forgets the first key
        console.wait_for_url(lambda url, path=path: url.endswith(path))


@pytest.mark.parametrize("keys, label", [("/", "Search everything"), ("Control+k", "Search, or go to a page")])
def test_search_is_focused_and_letters_are_only_typed_there(console: Any, keys: str, label: str) -> None:
    press(console, keys, "j", "e", "?", "g", "i")
    field = console.get_by_label(label)
    assert field.input_value() == "je?gi"
    assert field.evaluate("each => each === document.activeElement")
    assert console.url.endswith("/console/providers")


def test_the_list_of_keys_opens_and_keys_of_one_letter_can_be_turned_off(console: Any) -> None:
    press(console, "?")
    dialog = console.get_by_role("dialog", name="Keyboard shortcuts")
    assert dialog.locator("dt").all_inner_texts() == [" ".join(keys.split()) for keys in SHORTCUTS]
    dialog.get_by_label("Single-key shortcuts").uncheck()
    press(console, "Escape", "?", "j")
    assert not dialog.is_visible()
    assert console.locator(".rows a:focus").count() == 0
    console.reload()
    press(console, "j")
    assert console.locator(".rows a:focus").count() == 0
    console.get_by_role("button", name="Keyboard shortcuts").click()
    dialog.get_by_label("Single-key shortcuts").check()
    press(console, "Escape", "j")
    assert console.locator(".rows a:focus").count() == 1


def test_control_and_enter_save_a_form(console: Any) -> None:
    console.get_by_role("link", name="Banksia").click()
    wait_for_page(console, "Banksia")
    press(console, "e")
    wait_for_page(console, "Edit Banksia")
    console.get_by_label("Name", exact=True).fill("Boronia")
    press(console, "Control+Enter")
    console.get_by_role("heading", name="Boronia").wait_for()


def test_menus_close_with_escape_and_with_a_click_elsewhere(console: Any) -> None:
    for close in (lambda: press(console, "Escape"), lambda: console.mouse.click(300, 700)):
        open_account_menu(console)
        console.get_by_role("button", name="Sign out").wait_for()
        close()
        console.get_by_role("button", name="Sign out").wait_for(state="hidden")


def test_on_a_phone_the_menu_opens_from_one_bar(console: Any) -> None:
    console.set_viewport_size(PHONE)
    assert console.locator(".top").bounding_box()["height"] < 60
    assert not console.get_by_role("navigation", name="Main").is_visible()
    console.locator(".menu-button > summary").click()
    console.get_by_role("navigation", name="Menu").get_by_role("link", name="Participants").click()
    console.wait_for_url("**/console/participants")


def test_on_a_phone_a_list_has_two_lines_for_each_record(console: Any) -> None:
    console.set_viewport_size(PHONE)
    heights = [each.bounding_box()["height"] for each in console.locator(".rows tbody tr").all()]
    assert len(heights) == 3
    assert max(heights) < 90


def test_a_password_can_be_shown(page: Any) -> None:
    page.goto("/console/sign-in")
    field = page.get_by_label("Password")
    field.fill("violet-harbour")
    assert field.get_attribute("type") == "password"
    page.get_by_role("button", name="Show password").click()
    assert field.get_attribute("type") == "text"
    page.get_by_role("button", name="Hide password").click()
    assert field.get_attribute("type") == "password"


def test_a_text_that_is_cut_off_has_a_title(console: Any, server: RunningServer) -> None:
    console.set_viewport_size({"width": 800, "height": 600})
    console.evaluate("document.querySelector('.rows td.lead a').textContent = 'Banksia Support '.repeat(20)")
    console.locator(".rows td.lead").first.hover()
    assert console.locator(".rows td.lead").first.get_attribute("title") == ("Banksia Support " * 20).strip()


@pytest.mark.parametrize("field", ["[data-search-field]", "#participant", ".palette input"])
def test_the_number_of_suggestions_is_announced(console: Any, client: Client, field: str) -> None:
    for name in ("Banksia", "Banksiadale"):
        client.create("/participants", {"first_name": name})
    console.goto("/console/activity")
    if field == ".palette input":
        console.keyboard.press("Control+k")
    if field == "#participant":
        console.locator("summary", has_text="Filter").click()
    region = console.locator(f"{field} ~ [aria-live=polite]")
    assert region.inner_text() == ""
    count = 2 if field == "#participant" else 3  # and the provider
    announcements = {"banksia": f"{count} results", "zzzz": "No results", "banksiadale": "1 result"}
    for text, announced in announcements.items():
        console.locator(field).fill(text)
        region.filter(has_text=announced).wait_for()
        assert region.inner_text() == announced
    console.route("**/console/search/suggest*", lambda route: route.abort())
    console.locator(field).fill("zzzz")
    console.wait_for_function("each => each.textContent === ''", arg=region.element_handle())
