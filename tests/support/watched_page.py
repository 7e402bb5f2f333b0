"""A page of Chromium that notes what goes wrong, and the checks that every page of the console passes."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from support.chromium import ACTION_TIMEOUT, axe_violations

MAX_PAGE_SIZE = 100_000  # bytes, with all that belongs to a page
# A click on what a text made would be needed, or none: whatever a browser does with these by itself calls hit().
XSS_POLYGLOT = "\"'></title></textarea><img src=x onerror=hit()><svg onload=hit()>"
SHORT_XSS = "'\"><svg onload=hit()>"
# Of names that begin otherwise than what is seen: axe-core doesn't look at them by itself.
MORE_RULES = ("label-content-name-mismatch",)
OPEN_ALL = "document.querySelectorAll('details').forEach(each => { each.open = true })"
# Of WCAG 2.2, and not by itself either. Menus that cover other parts of the page are closed, and bars that stick to the
# window don't, because how much of a link they cover depends on what else the page shows. The menus of the main part
# are then opened one by one.
TARGET_SIZES = """async () => {
    const options = { resultTypes: ["violations"], runOnly: ["target-size"] };
    const isAt = (part, ...positions) => positions.includes(getComputedStyle(part).position);
    const covers = (part) => part.localName !== "summary" && isAt(part, "absolute", "fixed");
    const menus = [...document.querySelectorAll("details")].filter((each) => [...each.children].some(covers));
    menus.forEach((each) => { each.open = false; });
    const bars = [...document.querySelectorAll("body *")].filter((each) => isAt(each, "sticky", "fixed"));
    bars.forEach((each) => { each.style.position = "static"; });
    const { violations } = await axe.run(document, options);
    for (const each of menus.filter((menu) => menu.closest("main"))) {
        each.open = true;
        violations.push(...(await axe.run(each, options)).violations);
        each.open = false;
    }
    bars.forEach((each) => { each.style.position = ""; });
    return violations;
}"""


WIDE = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 900}


class View(NamedTuple):
    """How axe-core looks at a page: in one size, and with its colours in each of these themes."""

    size: dict[str, int]
    themes: tuple[str, ...]


EVERY_VIEW = (View(WIDE, ("light", "dark")), View(PHONE, ("light", "dark")))
SINGLE_VIEWS = tuple(View(size, (theme,)) for theme in ("light", "dark") for size in (WIDE, PHONE))


@dataclass
class Watched:
    """A page of a browser, its server, and what was seen to go wrong in it."""

    page: Any
    url: str
    hits: list[str] = field(default_factory=list[str])
    sizes: dict[str, int] = field(default_factory=dict[str, int])  # of files that never change, by their address

    def size(self, response: Any) -> int:
        """The bytes of the body of a response."""
        if "/static/" not in response.url:
            return len(response.body())
        if response.url not in self.sizes:
            self.sizes[response.url] = len(response.body())
        return self.sizes[response.url]


@contextmanager
def watched_page(chromium: Any, url: str) -> Iterator[Watched]:
    # The policy of the pages keeps scripts out, and axe-core is one: it is let in here, and tried elsewhere.
    context = chromium.new_context(base_url=url, viewport=WIDE, bypass_csp=True, reduced_motion="reduce")
    found = Watched(context.new_page(), url)
    found.page.set_default_timeout(ACTION_TIMEOUT)
    context.expose_function("hit", lambda: found.hits.append("a text was run"))
    found.page.on("dialog", lambda dialog: (found.hits.append(dialog.message), dialog.dismiss()))
    found.page.on("pageerror", lambda error: found.hits.append(str(error)))
    yield found
    context.close()


def violations(page: Any, themes: tuple[str, ...] = ("light", "dark")) -> list[str]:
    """The findings of axe-core on a page with all of its sections open, and they stay open."""
    page.evaluate(OPEN_ALL)
    found = axe_violations(page, MORE_RULES, themes) + page.evaluate(TARGET_SIZES)
    page.evaluate(OPEN_ALL)
    return [
        f"{each['impact']}: {each['id']}: {each['nodes'][0]['html'][:200]}: {each['nodes'][0]['failureSummary']}"
        for each in found
    ]


def submit(page: Any, name: str) -> None:
    """Click on a button, and wait for the next page: until then the old one may still be shown."""
    with page.expect_navigation(wait_until="load"):
        page.get_by_role("button", name=name).click()


def visit(watched: Watched, path: str, views: Iterable[View]) -> None:
    """Load a page, and check that it is light, safe and accessible in these views, and fits a phone."""
    watched.page.set_viewport_size(WIDE)
    responses = _load(watched.page, path)
    hosts = {urlsplit(each.url).netloc for each in responses if not each.url.startswith("data:")}
    assert hosts == {urlsplit(watched.url).netloc}, "a page loads something from elsewhere"
    size = sum(watched.size(each) for each in responses if each.status == 200)
    assert size < MAX_PAGE_SIZE, size
    check(watched, views)


def check(watched: Watched, views: Iterable[View]) -> None:
    """Check that the page as it is ran no text, is accessible in these views, and fits a phone."""
    page = watched.page
    assert page.evaluate("document.querySelectorAll('[onerror], [onload], [src=x]').length") == 0
    for view in views:
        page.set_viewport_size(view.size)
        found = violations(page, view.themes)
        assert not found, (view, found)
    assert not watched.hits, watched.hits
    page.set_viewport_size(PHONE)
    width, shown = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
    assert width <= shown, "the page is wider than the screen"


def _load(page: Any, path: str) -> list[Any]:
    """Load a page. Returns the responses of everything that is loaded with it."""
    requests: list[Any] = []
    responses: list[Any] = []
    # What the page before is still loading, such as a page of a document, belongs to no request that is noted here.
    page.evaluate("window.stop()")
    # Playwright takes no method of a list.
    notes = {"request": lambda each: requests.append(each), "response": lambda each: responses.append(each)}  # noqa: PLW0108
    for event, note in notes.items():
        page.on(event, note)
    page.goto(path, wait_until="load")
    for event, note in notes.items():
        page.remove_listener(event, note)
    # Forms are checked while they are filled in.
    return [each for each in responses if each.request in requests and each.request.method == "GET"]
