"""Each page of the documentation site in Chromium, light and dark, on a screen and on a phone; and its search."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from plankeeper.http.public.documentation import SITE
from support.chromium import ACTION_TIMEOUT
from support.documentation import require_site, site_pages
from support.server import RunningServer, wait_until

AXE = Path(__file__).parent / "axe/axe.min.js"
WIDE = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 900}
RUN_AXE = "options => axe.run(document, options).then(results => results.violations)"

BROKEN_CODES = """() => [...document.querySelectorAll('td code, th code')]
    .filter(code => /^\\w+$/.test(code.textContent) && code.getClientRects().length > 1)
    .map(code => code.textContent)"""

# Questions of readers, and the page that answers each. It must be among the first three results.
QUESTIONS = {
    "rotate key": "/docs/command-line",
    "rate limit": "/docs/api/idempotency",
    "verify signature": "/docs/webhooks",
    "not_found": "/docs/api/errors",
    "restore backup": "/docs/operations/backup",
    "PLANKEEPER_PUBLIC_URL": "/docs/settings",
    "next_cursor": "/docs/api/lists",
    "import csv": "/docs/import-and-export",
    "contact_priority": "/docs/api/team-members",
    "two-factor": "/docs/console",
}


@dataclass
class WatchedPage:
    """A page of a browser, and what it reported: errors, and hosts from which it loaded something."""

    page: Any
    errors: list[str] = field(default_factory=list[str])
    hosts: set[str] = field(default_factory=set[str])

    def visit(self, path: str) -> None:
        self.errors.clear()
        self.hosts.clear()
        self.page.goto(path, wait_until="load")


def leave_out_search(context: Any) -> None:
    """Empty the search index, from which each visit of a page would build the search again for half a second."""
    index = json.loads((SITE / "search/search_index.json").read_text())
    context.route("**/search/search_index.json", lambda route: route.fulfill(json=index | {"docs": []}))


def watch(context: Any) -> WatchedPage:
    found = WatchedPage(context.new_page())
    found.page.set_default_timeout(ACTION_TIMEOUT)
    found.page.on("pageerror", lambda error: found.errors.append(str(error)))
    found.page.on("console", lambda message: found.errors.append(message.text) if message.type == "error" else None)
    found.page.on("request", lambda request: found.hosts.add(urlsplit(request.url).netloc))
    return found


@pytest.fixture(scope="module")
def strict(chromium: Any, server: RunningServer) -> Iterator[WatchedPage]:
    """A page under the content security policy of the server, on which the search finds nothing."""
    require_site()
    context = chromium.new_context(base_url=server.url, viewport=WIDE, reduced_motion="reduce")
    leave_out_search(context)
    yield watch(context)
    context.close()


@pytest.fixture(scope="module")
def searching(chromium: Any, server: RunningServer) -> Iterator[WatchedPage]:
    """A page under the same policy with the index of the search."""
    require_site()
    context = chromium.new_context(base_url=server.url, viewport=WIDE, reduced_motion="reduce")
    yield watch(context)
    context.close()


@pytest.fixture(scope="module")
def with_axe(chromium: Any, server: RunningServer) -> Iterator[WatchedPage]:
    """A page without the policy, because axe-core is a script of another origin."""
    require_site()
    context = chromium.new_context(base_url=server.url, viewport=WIDE, bypass_csp=True, reduced_motion="reduce")
    leave_out_search(context)
    found = watch(context)
    found.page.add_init_script(path=str(AXE))
    yield found
    context.close()


@pytest.mark.parametrize("path", [*site_pages(), "/docs/api"])
def test_a_page_has_no_errors_light_dark_and_on_a_phone(strict: WatchedPage, server: RunningServer, path: str) -> None:
    page = strict.page
    page.set_viewport_size(WIDE)
    strict.visit(path)
    assert page.title()
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size(PHONE)
    width, shown = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
    page.emulate_media(color_scheme="light")
    assert strict.errors == []
    assert strict.hosts == {urlsplit(server.url).netloc}
    assert width <= shown, "the page is wider than the screen of a phone"


@pytest.mark.parametrize("path", site_pages())
def test_a_page_has_no_axe_violations(with_axe: WatchedPage, path: str) -> None:
    page = with_axe.page
    with_axe.visit(path)
    found = page.evaluate(RUN_AXE, {"resultTypes": ["violations"]})
    page.emulate_media(color_scheme="dark")
    page.wait_for_function("document.body.dataset.mdColorScheme === 'slate'")
    found += page.evaluate(RUN_AXE, {"resultTypes": ["violations"], "runOnly": ["color-contrast"]})
    page.emulate_media(color_scheme="light")
    page.wait_for_function("document.body.dataset.mdColorScheme === 'default'")
    assert [
        f"{each['id']}: {each['nodes'][0]['html'][:200]}: {each['nodes'][0]['failureSummary']}" for each in found
    ] == []


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_search_finds_the_page_that_answers_a_question(searching: WatchedPage, question: str) -> None:
    page = searching.page
    page.set_viewport_size(WIDE)
    searching.visit("/docs/domain")
    box = page.get_by_role("textbox", name="Search")
    box.fill(question)
    box.press("End")  # the search listens to keys: this is the only one, so it never looks for a part of the question
    results = page.locator(".md-search-result__item")
    results.first.wait_for()
    links = [each.get_attribute("href") for each in page.locator(".md-search-result__item > a").all()]
    paths = list(dict.fromkeys(urlsplit(link).path for link in links))
    assert QUESTIONS[question] in paths[:3]
    assert searching.errors == []


@pytest.mark.parametrize("path", ["/docs/api/errors", "/docs/api/lists", "/docs/api/events", "/docs/keep-a-copy"])
def test_a_table_breaks_no_code_within_a_word(strict: WatchedPage, path: str) -> None:
    strict.page.set_viewport_size(WIDE)
    strict.visit(path)
    assert strict.page.evaluate(BROKEN_CODES) == []


def test_samples_are_in_tabs_and_can_be_copied(strict: WatchedPage) -> None:
    page = strict.page
    page.set_viewport_size(WIDE)
    strict.visit("/docs/first-request")
    page.locator(".tabbed-labels label", has_text="Python").first.click()
    sample = page.locator(".tabbed-block", has_text="httpx").first
    assert sample.is_visible()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    sample.hover()
    sample.get_by_title("Copy to clipboard").click()
    wait_until(lambda: "httpx" in page.evaluate("navigator.clipboard.readText()"))
    assert strict.errors == []


def test_the_theme_can_be_chosen_and_is_kept(strict: WatchedPage) -> None:
    page = strict.page
    strict.visit("/docs")
    page.get_by_title("Switch to light mode").click()
    page.get_by_title("Switch to dark mode").click()
    assert page.evaluate("document.body.dataset.mdColorScheme") == "slate"
    strict.visit("/docs/api/lists")
    assert page.evaluate("document.body.dataset.mdColorScheme") == "slate"
    page.evaluate("localStorage.clear()")
    assert strict.errors == []


def test_an_unknown_address_shows_a_page_that_leads_on(strict: WatchedPage) -> None:
    response = strict.page.goto("/docs/no/such/page")
    assert response.status == 404
    strict.page.get_by_role("link", name="home page").click()
    strict.page.wait_for_url("**/docs")


def test_a_forbidden_script_would_be_seen(strict: WatchedPage) -> None:
    """So that the tests above can fail."""
    strict.visit("/docs")
    strict.page.evaluate("document.body.append(Object.assign(document.createElement('script'), {text: 'hit()'}))")
    assert [each for each in strict.errors if "Security Policy" in each]


def test_the_reference_sends_requests_under_the_policy(strict: WatchedPage) -> None:
    page = strict.page
    page.set_viewport_size(WIDE)
    strict.visit("/docs/api")
    page.locator(".opblock-summary-control", has_text="/api/public/v1/me").first.click()
    page.get_by_role("button", name="Try it out").click()
    with page.expect_response("**/api/public/v1/me") as response:
        page.get_by_role("button", name="Execute").click()
    assert response.value.status == 401
    assert [each for each in strict.errors if "Security Policy" in each] == []
