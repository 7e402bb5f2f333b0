"""Every page in Chromium: what axe-core finds, its size, its width, and that no text runs as a script.

In the short form, axe-core looks at each page once, and the pages take turns with the themes and widths. With
PLANKEEPER_SOAK=1 it looks at each page in both themes and both widths.
"""

import os
import time
from collections.abc import Iterator
from itertools import count, cycle
from typing import Any

import pytest
from pyotp import TOTP

from plankeeper.console.shell.routing import PageRoute
from plankeeper.console.views.pages import LISTS
from support.console import PASSWORD, add_session, create_account, open_account_menu
from support.factories import DOWNLOADS, PAGES, SeededPlanManager, returns_json, route_name, seed_plan_manager
from support.imports import confirm, import_path, upload
from support.server import RunningServer
from support.watched_page import (
    EVERY_VIEW,
    PHONE,
    SHORT_XSS,
    SINGLE_VIEWS,
    WIDE,
    XSS_POLYGLOT,
    View,
    Watched,
    submit,
    violations,
    visit,
    watched_page,
)

IS_FULL_RUN = os.environ.get("PLANKEEPER_SOAK") == "1"
HTML_PAGES = [each for each in PAGES if each not in DOWNLOADS and not returns_json(each)]
# Each page with the views in which axe-core looks at it.
CASES = [
    (each, EVERY_VIEW if IS_FULL_RUN else (view,)) for each, view in zip(HTML_PAGES, cycle(SINGLE_VIEWS), strict=False)
]
NARROW = {"width": 320, "height": 800}


@pytest.fixture(scope="module")
def seeded(server: RunningServer) -> Iterator[SeededPlanManager]:
    """A plan manager with a text that attacks in every field."""
    numbers = count(10)
    short = ("number", "abn")
    created = seed_plan_manager(
        server, lambda name: f"{SHORT_XSS if name.endswith(short) else XSS_POLYGLOT} {next(numbers)}"
    )
    yield created
    created.client.http.close()


@pytest.fixture(scope="module")
def watched(chromium: Any, seeded: SeededPlanManager) -> Iterator[Watched]:
    """A page for the owner."""
    with watched_page(chromium, seeded.server.url) as found:
        add_session(found.page.context, seeded.server, seeded.owner)
        yield found


@pytest.mark.parametrize("entry, views", CASES, ids=[route_name(each) for each in HTML_PAGES])
def test_a_page_is_accessible_light_safe_and_fits_a_phone(
    watched: Watched, seeded: SeededPlanManager, entry: PageRoute, views: tuple[View, ...]
) -> None:
    visit(watched, seeded.path(entry), views)


def test_lists_with_open_filters_are_accessible_on_the_narrowest_screen(
    watched: Watched, seeded: SeededPlanManager
) -> None:
    page, found = watched.page, dict[str, list[str]]()
    page.set_viewport_size(NARROW)
    deliveries = f"/console/settings/webhooks/{seeded.ids['endpoint_id']}/deliveries"
    for path in (*(each.path for each in LISTS.values()), deliveries):
        page.goto(path)
        page.locator("summary", has_text="Filter").click()
        assert page.locator(".list-fields").is_visible()
        found[path] = violations(page)
        width = page.evaluate("document.documentElement.scrollWidth")
        found[path] += [f"{width} px wide"] if width > NARROW["width"] else []
    assert found == {path: [] for path in found}


def test_groups_are_accessible_and_fit_a_phone_and_paper(watched: Watched, seeded: SeededPlanManager) -> None:
    page = watched.page
    found: dict[str, list[str]] = {}
    for definition in LISTS.values():
        for group in (each.name for each in definition.groupings):
            path = f"{definition.path}?group={group}"
            page.set_viewport_size(WIDE)
            page.goto(path, wait_until="load")
            assert page.locator("table.groups tbody tr").count(), path
            found[path] = violations(page)
            page.set_viewport_size(PHONE)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
            page.emulate_media(media="print")
            assert [page.locator(each).is_visible() for each in (".toolbar", ".top")] == [False, False], path
            assert page.locator("table.groups tfoot").is_visible(), path
            page.emulate_media(media="screen")
    assert {path: each for path, each in found.items() if each} == {}
    assert watched.hits == []
    assert seeded


def test_the_choice_of_all_that_match_is_accessible_and_fits_a_phone(
    watched: Watched, seeded: SeededPlanManager
) -> None:
    page = watched.page
    items = [{"last_name": f"Many {number}", "postcode": "2650"} for number in range(61)]
    assert seeded.client.post("/participants/bulk", {"items": items}).status_code == 200
    page.set_viewport_size(PHONE)
    page.goto("/console/participants?q=Many")
    page.get_by_role("checkbox", name="Many 0", exact=True).check()
    page.get_by_label("Select all 61 that match").check()
    for heading in (None, "Set the account manager of 61 participants"):
        if heading:
            submit(page, "Set account manager")
            page.get_by_role("heading", name=heading).wait_for()
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_a_text_that_runs_would_be_seen(watched: Watched) -> None:
    """So that the tests above can fail."""
    page, hits = watched.page, watched.hits
    page.set_content(f"<title>{XSS_POLYGLOT}</title>")
    page.wait_for_function("document.querySelector('[onerror]') !== null")
    deadline = time.monotonic() + 20
    while not hits and time.monotonic() < deadline:
        page.wait_for_timeout(20)
    assert hits
    hits.clear()


def test_form_results_have_no_axe_violations(watched: Watched, seeded: SeededPlanManager) -> None:
    page, file = watched.page, {"name": "kinds.csv", "mimeType": "text/csv"}
    page.set_viewport_size(WIDE)
    found: list[str] = []
    for path, fields, button in (
        ("/console/settings/keys/new", {"Name": "Report"}, "Create key"),
        ("/console/settings/webhooks/new", {"URL": "https://example.com/more"}, "Create endpoint"),
        ("/console/settings/webhooks/new", {"URL": "http://example.com"}, "Create endpoint"),
        ("/console/settings/people/invite", {"Email": "somebody@example.com"}, "Create invitation"),
        ("/console/participants/new", {"Email": "nobody@example", "Postcode": "1"}, "Add participant"),
        ("/console/participants/new", {"First name": "Ann", "Phone": "abc"}, "Add participant"),
        ("/console/providers/new", {"ABN": "1"}, "Add provider"),
        ("/console/participants?q=nobody-is-called-so", {}, ""),
        ("/console/nowhere", {}, ""),
    ):
        page.goto(path)
        for label, text in fields.items():
            page.get_by_label(label).fill(text)
        if button:
            submit(page, button)
        found += violations(page)
    files = {"note-types": ("note_type,badge_color\n,teal\n", "note_type\nCourt\n")}
    # The first provider has the number of another one, and has to be ticked.
    files["providers"] = ("entity_name,abn,state\nMarble Bilby,51824753556,\nQuoll,,XX\n",)
    browser = seeded.browser()
    confirm(browser, import_path(upload(browser, b"entity_name,abn\nCopper Quokka,51824753556\n", "providers")))
    browser.http.close()
    for resource, content in [(name, each) for name, contents in files.items() for each in contents]:
        page.goto("/console/imports/new")
        page.get_by_label("Record type").select_option(resource)
        page.get_by_label("File", exact=True).set_input_files(file | {"buffer": content.encode()})
        submit(page, "Check file")
        found += violations(page)
    assert found == []


def test_open_suggestions_have_no_axe_violations(watched: Watched) -> None:
    page = watched.page
    page.set_viewport_size(WIDE)
    found: list[str] = []
    for path, field, text in (
        ("/console/providers", "[data-search-field]", "p@example.com"),
        ("/console/activity", "#participant", "p@example.com"),
        ("/console/activity", ".palette input", "home"),
    ):
        page.goto(path)
        if field == ".palette input":
            page.keyboard.press("Control+k")
        if field == "#participant":
            page.locator("summary", has_text="Filter").click()
        page.locator(field).press_sequentially(text)
        page.locator(".suggestions [role=option]:visible").first.wait_for()
        found += violations(page)
    assert found == []


def test_public_pages_have_no_axe_violations(chromium: Any, seeded: SeededPlanManager) -> None:
    person = seeded.server.run(create_account(seeded.server, seeded.plan_manager_id, "viewer"))
    context = chromium.new_context(base_url=seeded.server.url, bypass_csp=True, reduced_motion="reduce")
    page = context.new_page()
    page.goto(f"/console/invitations/{seeded.ids['token']}")
    found = violations(page)
    page.goto("/console/sign-in")
    found += violations(page)
    for password in ("wrong", PASSWORD):
        page.get_by_label("Email").fill(person.email)
        page.get_by_label("Password").fill(password)
        submit(page, "Sign in")
        found += violations(page)
    page.goto("/console/account/two-factor")
    codes = TOTP(page.get_by_label("Setup key").inner_text().replace(" ", ""))
    page.get_by_label("Code").fill(codes.now())
    page.get_by_label("Password").fill(PASSWORD)
    submit(page, "Turn on")
    found += violations(page)
    for path in ("/console/account", "/console/account/two-factor/off", "/console/account/recovery-codes"):
        page.goto(path)
        found += violations(page)
    open_account_menu(page)
    submit(page, "Sign out")
    page.get_by_label("Email").fill(person.email)
    page.get_by_label("Password").fill(PASSWORD)
    submit(page, "Sign in")
    page.get_by_label("Code").wait_for()
    found += violations(page)
    context.close()
    assert found == []
