"""Every page in Debian's Chromium: what axe-core finds, what it weighs, how wide it is, and that no text bites."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from pyotp import TOTP

from console.furnished import DOWNLOADS, PAGES, SeededPlanManager, route_name, seed_plan_manager
from console.people import PASSWORD, create_account, fill_sign_in_form
from console.test_in_a_browser import CHROMIUM, chromium
from plankeeper.console.routing import PageRoute
from support.server import RunningServer

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="There is no Chromium to try the pages in: install it (Debian: chromium)."
)  # fmt: skip

__all__ = ["chromium"]

AXE = Path(__file__).parent / "axe/axe.min.js"
MAX_PAGE_BYTES = 100_000  # bytes of a page with all that belongs to it
# A click on what a text made would be needed, or none: whatever a browser does with these by itself calls hit().
XSS_POLYGLOT = "\"'></title></textarea><img src=x onerror=hit()><svg onload=hit()>"
SHORT_XSS = "'\"><svg onload=hit()>"
HTML_PAGES = [each for each in PAGES if each not in DOWNLOADS]
SCHEMES = ["light", "dark"]


@pytest.fixture(scope="module")
def seeded(server: RunningServer) -> Iterator[SeededPlanManager]:
    created = seed_plan_manager(server)
    yield created
    created.client.http.close()


@pytest.fixture(scope="module")
def adversarial(server: RunningServer) -> Iterator[SeededPlanManager]:
    numbers = count(10)
    short = ("number", "abn")
    created = seed_plan_manager(
        server, lambda name: f"{SHORT_XSS if name.endswith(short) else XSS_POLYGLOT} {next(numbers)}"
    )
    yield created
    created.client.http.close()


def open_page(chromium: Any, seeded: SeededPlanManager, scheme: str, width: int) -> Any:
    """A page of a browser in which the owner is signed in; `faults` gathers what goes wrong in it."""
    # The policy of the pages keeps scripts out, and axe-core is one: it is let in here, and tried elsewhere.
    context = chromium.new_context(
        base_url=seeded.server.url, color_scheme=scheme, viewport={"width": width, "height": 900}, bypass_csp=True
    )
    page = context.new_page()
    page.set_default_timeout(20_000)
    fill_sign_in_form(page, seeded.owner.email)
    page.get_by_role("button", name="Sign out").wait_for()
    return page


@pytest.fixture(scope="module", params=SCHEMES)
def axe_page(request: pytest.FixtureRequest, chromium: Any, seeded: SeededPlanManager) -> Iterator[Any]:
    page = open_page(chromium, seeded, request.param, 1280)
    page.add_init_script(path=str(AXE))
    yield page
    page.context.close()


def violations(page: Any) -> list[str]:
    """What axe-core finds on a page as it is shown; what is folded away is looked at too."""
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{each['impact']}: {each['id']}: {each['nodes'][0]['html'][:200]}: {each['nodes'][0]['failureSummary']}"
        for each in found["violations"]
    ]


@pytest.mark.parametrize("entry", HTML_PAGES, ids=route_name)
def test_page_has_no_axe_violations(axe_page: Any, seeded: SeededPlanManager, entry: PageRoute) -> None:
    axe_page.goto(seeded.path(entry))
    assert violations(axe_page) == []


def test_form_results_have_no_axe_violations(axe_page: Any) -> None:
    page, file = axe_page, {"name": "kinds.csv", "mimeType": "text/csv"}
    found: list[str] = []
    for path, fields, button in (
        ("/console/settings/keys/new", {"Name": "Report"}, "Create key"),
        ("/console/settings/webhooks/new", {"Address": "https://example.com/more"}, "Create endpoint"),
        ("/console/settings/webhooks/new", {"Address": "http://example.com"}, "Create endpoint"),
        ("/console/settings/people/invite", {"Email": "somebody@example.com"}, "Make the link"),
        ("/console/participants?q=nobody-is-called-so", {}, "Show"),
        ("/console/nowhere", {}, ""),
    ):
        page.goto(path)
        for label, text in fields.items():
            page.get_by_label(label).fill(text)
        if button:
            page.get_by_role("button", name=button).click()
        found += violations(page)
    for content in ("note_type,badge_color\n,teal\n", "note_type\nCourt\n"):
        page.goto("/console/import")
        page.get_by_label("What the file holds").select_option("note-types")
        page.get_by_label("File", exact=True).set_input_files(file | {"buffer": content.encode()})
        page.get_by_role("button", name="Check the file").click()
        found += violations(page)
    assert found == []


@pytest.mark.parametrize("scheme", SCHEMES)
def test_public_pages_have_no_axe_violations(chromium: Any, seeded: SeededPlanManager, scheme: str) -> None:
    person = seeded.server.run(create_account(seeded.server, seeded.plan_manager_id, "viewer"))
    context = chromium.new_context(base_url=seeded.server.url, color_scheme=scheme, bypass_csp=True)
    page = context.new_page()
    page.add_init_script(path=str(AXE))
    page.goto(f"/console/invitations/{seeded.ids['token']}")
    found = violations(page)
    page.goto("/console/sign-in")
    found += violations(page)
    for password in ("wrong", PASSWORD):
        page.get_by_label("Email").fill(person.email)
        page.get_by_label("Password").fill(password)
        page.get_by_role("button", name="Sign in").click()
        found += violations(page)
    page.goto("/console/account/two-factor")
    codes = TOTP(page.get_by_label("The secret").inner_text().replace(" ", ""))
    page.get_by_label("Code").fill(codes.now())
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Turn it on").click()
    found += violations(page)
    for path in ("/console/account", "/console/account/two-factor/off", "/console/account/recovery-codes"):
        page.goto(path)
        found += violations(page)
    page.get_by_role("button", name="Sign out").click()
    page.get_by_label("Email").fill(person.email)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_label("Code").wait_for()
    found += violations(page)
    context.close()
    assert found == []


@pytest.fixture(scope="module")
def phone_page(chromium: Any, seeded: SeededPlanManager) -> Iterator[Any]:
    page = open_page(chromium, seeded, "light", 390)
    yield page
    page.context.close()


@pytest.mark.parametrize("entry", HTML_PAGES, ids=route_name)
def test_a_page_fits_a_phone_and_stays_small(phone_page: Any, seeded: SeededPlanManager, entry: PageRoute) -> None:
    responses: list[Any] = []
    note = lambda response: responses.append(response)  # noqa: E731, PLW0108 - Playwright takes no method of a list
    phone_page.on("response", note)
    phone_page.goto(seeded.path(entry), wait_until="load")
    phone_page.remove_listener("response", note)
    hosts = {urlsplit(each.url).netloc for each in responses if not each.url.startswith("data:")}
    assert hosts == {urlsplit(seeded.server.url).netloc}, "a page loads something from elsewhere"
    assert sum(len(each.body()) for each in responses if each.status == 200) < MAX_PAGE_BYTES
    width, room = phone_page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
    assert width <= room, "the page is wider than the screen"


@pytest.fixture(scope="module")
def adversarial_page(chromium: Any, adversarial: SeededPlanManager) -> Iterator[tuple[Any, list[str]]]:
    page = open_page(chromium, adversarial, "light", 1280)
    hits: list[str] = []
    page.context.expose_function("hit", lambda: hits.append("a text was run"))
    page.on("dialog", lambda dialog: (hits.append(dialog.message), dialog.dismiss()))
    page.on("pageerror", lambda error: hits.append(str(error)))
    yield page, hits
    page.context.close()


@pytest.mark.parametrize("entry", HTML_PAGES, ids=route_name)
def test_no_text_executes_as_script(
    adversarial_page: tuple[Any, list[str]], adversarial: SeededPlanManager, entry: PageRoute
) -> None:
    page, hits = adversarial_page
    page.goto(adversarial.path(entry), wait_until="load")
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")
    assert page.evaluate("document.querySelectorAll('[onerror], [onload], [src=x]').length") == 0
    assert hits == []


def test_the_sweep_detects_executed_text(adversarial_page: tuple[Any, list[str]]) -> None:
    """So that the tests above can fail."""
    page, hits = adversarial_page
    page.set_content(f"<title>{XSS_POLYGLOT}</title>")
    page.wait_for_function("document.querySelector('[onerror]') !== null")
    page.wait_for_timeout(200)
    assert hits
    hits.clear()
