"""Every page in Debian's Chromium: what axe-core finds, what it weighs, how wide it is, and that no text bites."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from pyotp import TOTP

from console.furnished import FILES, PAGES, Furnished, furnished, name_of
from console.people import PASSWORD, enter, made
from console.test_in_a_browser import CHROMIUM, chromium
from plankeeper.console.routing import PageRoute
from support.server import RunningServer

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="There is no Chromium to try the pages in: install it (Debian: chromium)."
)  # fmt: skip

__all__ = ["chromium"]

AXE = Path(__file__).parent / "axe/axe.min.js"
MOST = 100_000  # bytes of a page with all that belongs to it
# A click on what a text made would be needed, or none: whatever a browser does with these by itself calls hit().
POLYGLOT = "\"'></title></textarea><img src=x onerror=hit()><svg onload=hit()>"
SHORT = "'\"><svg onload=hit()>"
SHOWN = [each for each in PAGES if each not in FILES]
SCHEMES = ["light", "dark"]


@pytest.fixture(scope="module")
def home(server: RunningServer) -> Iterator[Furnished]:
    found = furnished(server)
    yield found
    found.client.http.close()


@pytest.fixture(scope="module")
def hostile(server: RunningServer) -> Iterator[Furnished]:
    numbers = count(10)
    short = ("number", "abn")
    found = furnished(server, lambda name: f"{SHORT if name.endswith(short) else POLYGLOT} {next(numbers)}")
    yield found
    found.client.http.close()


def opened(chromium: Any, found: Furnished, scheme: str, width: int) -> Any:
    """A page of a browser in which the owner is signed in; `faults` gathers what goes wrong in it."""
    # The policy of the pages keeps scripts out, and axe-core is one: it is let in here, and tried elsewhere.
    context = chromium.new_context(
        base_url=found.server.url, color_scheme=scheme, viewport={"width": width, "height": 900}, bypass_csp=True
    )
    page = context.new_page()
    page.set_default_timeout(20_000)
    enter(page, found.owner.email)
    page.get_by_role("button", name="Sign out").wait_for()
    return page


@pytest.fixture(scope="module", params=SCHEMES)
def looked_at(request: pytest.FixtureRequest, chromium: Any, home: Furnished) -> Iterator[Any]:
    page = opened(chromium, home, request.param, 1280)
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


@pytest.mark.parametrize("entry", SHOWN, ids=name_of)
def test_axe_finds_nothing(looked_at: Any, home: Furnished, entry: PageRoute) -> None:
    looked_at.goto(home.path(entry))
    assert violations(looked_at) == []


def test_axe_finds_nothing_on_answers_to_forms(looked_at: Any) -> None:
    page, file = looked_at, {"name": "kinds.csv", "mimeType": "text/csv"}
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
def test_axe_finds_nothing_before_somebody_is_inside(chromium: Any, home: Furnished, scheme: str) -> None:
    person = home.server.run(made(home.server, home.plan_manager_id, "viewer"))
    context = chromium.new_context(base_url=home.server.url, color_scheme=scheme, bypass_csp=True)
    page = context.new_page()
    page.add_init_script(path=str(AXE))
    page.goto(f"/console/invitations/{home.ids['token']}")
    found = violations(page)
    page.goto("/console/sign-in")
    found += violations(page)
    for password in ("wrong", PASSWORD):
        page.get_by_label("Email").fill(person.email)
        page.get_by_label("Password").fill(password)
        page.get_by_role("button", name="Sign in").click()
        found += violations(page)
    page.goto("/console/account/second-step")
    codes = TOTP(page.get_by_label("The secret").inner_text().replace(" ", ""))
    page.get_by_label("Code").fill(codes.now())
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Turn it on").click()
    found += violations(page)
    for path in ("/console/account", "/console/account/second-step/off", "/console/account/recovery-codes"):
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
def phone(chromium: Any, home: Furnished) -> Iterator[Any]:
    page = opened(chromium, home, "light", 390)
    yield page
    page.context.close()


@pytest.mark.parametrize("entry", SHOWN, ids=name_of)
def test_a_page_fits_a_phone_and_weighs_little(phone: Any, home: Furnished, entry: PageRoute) -> None:
    answers: list[Any] = []
    note = lambda answer: answers.append(answer)  # noqa: E731, PLW0108 - Playwright takes no method of a list
    phone.on("response", note)
    phone.goto(home.path(entry), wait_until="load")
    phone.remove_listener("response", note)
    hosts = {urlsplit(each.url).netloc for each in answers if not each.url.startswith("data:")}
    assert hosts == {urlsplit(home.server.url).netloc}, "a page loads something from elsewhere"
    assert sum(len(each.body()) for each in answers if each.status == 200) < MOST
    width, room = phone.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
    assert width <= room, "the page is wider than the screen"


@pytest.fixture(scope="module")
def bitten(chromium: Any, hostile: Furnished) -> Iterator[tuple[Any, list[str]]]:
    page = opened(chromium, hostile, "light", 1280)
    hits: list[str] = []
    page.context.expose_function("hit", lambda: hits.append("a text was run"))
    page.on("dialog", lambda dialog: (hits.append(dialog.message), dialog.dismiss()))
    page.on("pageerror", lambda error: hits.append(str(error)))
    yield page, hits
    page.context.close()


@pytest.mark.parametrize("entry", SHOWN, ids=name_of)
def test_no_text_bites(bitten: tuple[Any, list[str]], hostile: Furnished, entry: PageRoute) -> None:
    page, hits = bitten
    page.goto(hostile.path(entry), wait_until="load")
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")
    assert page.evaluate("document.querySelectorAll('[onerror], [onload], [src=x]').length") == 0
    assert hits == []


def test_a_text_that_bites_would_be_seen(bitten: tuple[Any, list[str]]) -> None:
    """So that the tests above can fail."""
    page, hits = bitten
    page.set_content(f"<title>{POLYGLOT}</title>")
    page.wait_for_function("document.querySelector('[onerror]') !== null")
    page.wait_for_timeout(200)
    assert hits
    hits.clear()
