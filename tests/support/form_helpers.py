"""Forms as a browser would send them, and their results."""

import re
from html import unescape
from typing import Any

from support.console import Browser
from support.server import RunningServer


def form_fields(browser: Browser, path: str) -> dict[str, Any]:
    """The fields of the page's form as a browser would send them untouched."""
    match = re.search(r'<form method="post"[^>]* class="card">(.*?)</form>', browser.get(path).text, re.DOTALL)
    assert match, path
    page = match[1]
    form: dict[str, Any] = {}
    for tag in re.findall(r"<input [^>]*>", page):
        name, value = re.search(r'name="([^"]+)"', tag), re.search(r'value="([^"]*)"', tag)
        if name and (not re.search('type="(checkbox|radio)"', tag) or " checked" in tag):
            form.setdefault(name[1], []).append(unescape(value[1]) if value else "on")
    for name, text in re.findall(r'<textarea [^>]*name="([^"]+)"[^>]*>\n(.*?)</textarea>', page, re.DOTALL):
        form[name] = [unescape(text).replace("\n", "\r\n")]
    for name, options in re.findall(r'<select [^>]*name="([^"]+)"[^>]*>(.*?)</select>', page, re.DOTALL):
        chosen = re.search(r'value="([^"]*)" selected|<option selected>([^<]*)<', options) or re.search(
            r'value="([^"]*)"', options
        )
        form[name] = [unescape(next(each for each in chosen.groups() if each is not None))] if chosen else []
    del form["csrf"]
    return form


def submit_form(browser: Browser, path: str, values: dict[str, Any]) -> Any:
    """Open a page, fill in its form, and submit it: the page and the form have the same path."""
    return browser.submit(path, form_fields(browser, path) | values)


def save_anyway(browser: Browser, path: str, form: dict[str, Any]) -> Any:
    """Submit a form whose values are probably wrong, and confirm what its page then shows."""
    shown = browser.submit(path, form)
    assert "<h2>Check these values</h2>" in shown.text
    return browser.submit(path, form | {"save_anyway": "yes", "confirmed_warning": shown_warnings(shown.text)})


def shown_warnings(page: str) -> list[str]:
    """The hidden fields with which the form confirms the warnings that it shows."""
    return re.findall(r'<input type="hidden" name="confirmed_warning" value="([0-9a-f]+)">', page)


def event_summaries(server: RunningServer, resource_id: str) -> list[str]:
    statement = """
        select type || ' by ' || actor_kind || ' ' || actor_name from events where resource_id = $1 order by id
    """
    return server.run(server.db.rows(str, statement, resource_id))


def require_linked_errors(page: str) -> list[str]:
    """The names of the fields that the error summary links to, each of which has the same message beside it."""
    summary = re.search(r'<div class="summary bad" role="alert" tabindex="-1" autofocus>(.*?)</div>', page, re.DOTALL)
    assert summary, page
    assert "<h2>There is a problem</h2>" in summary[1]
    assert re.search(r"<title>Error: ", page)
    items = [each.strip() for each in re.findall(r"<li>(.*?)</li>", summary[1], re.DOTALL)]
    links = [re.fullmatch(r'<a href="#([^"]+)">(.+)</a>', each) for each in items]
    assert items
    assert all(links), items
    for name, message in (found.groups() for found in links if found):
        field = re.search(rf'<(?:input|select|textarea) [^>]*\bid="{name}"[^>]*>', page)
        assert field, f"the page has no field {name}"
        assert len(re.findall(rf' id="{name}"', page)) == 1
        beside = re.search(
            rf'<p class="field-error" id="{name}-error"><span class="unseen">Error:</span> (.*?)</p>', page
        )
        assert beside
        assert beside[1] == message
        owner = field[0] if "aria-describedby" in field[0] else page  # a group of boxes is described as a whole
        assert re.search(rf'aria-describedby="[^"]*\b{name}-error\b[^"]*"', owner)
        assert 'aria-invalid="true"' in field[0] or 'role="radiogroup" class="has-error" aria-describedby' in page
    return [found[1] for found in links if found]
