"""Pages show words: names, values and ids of the API occur only in code, and on the pages for developers."""

import re
from collections import Counter, deque
from collections.abc import Iterator
from html import unescape
from urllib.parse import urlsplit

import pytest
from httpx import Response

from plankeeper.cli.demo import load_demo_data
from plankeeper.console.components.labels import field_label
from plankeeper.events.event_types import EVENT_TYPES
from plankeeper.imports.columns import field_names
from plankeeper.resources.registry import RESOURCES
from support.cluster import SharedCluster
from support.console import Browser
from support.factories import DOWNLOADS, PAGES, SeededPlanManager, returns_json, route_name
from support.server import RunningServer
from support.visible_text import visible_texts

HTML_PAGES = [each for each in PAGES if each not in DOWNLOADS and not returns_json(each)]
# What isn't read as a sentence: the code of a page, and what people copy to another program, such as an id.
NOT_WORDS = {"code", "pre", "script", "style", "template"}
IDENTIFIER = re.compile(
    r"(?<![\w./@-])[a-z][a-z0-9]*(?:_[a-z0-9]+)+(?![\w@]|\.[a-z])"  # a field or a value
    r"|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?!@)"
    r"|\b(?:S3|Pm|[W]ont|True|False)\b|\bthin\b|plankeeper [a-z]+ (?:-|[a-z])"
)
MAX_OF_A_KIND = 8  # pages that differ by ids and parameters


# Where people choose and debug what other systems receive.
EVENT_TYPE_PAGES = "/console/settings/webhooks"


def identifiers(path: str, html: str) -> list[str]:
    """The texts of a page with a name, a value or an id of the API."""
    allowed = EVENT_TYPES if path.startswith(EVENT_TYPE_PAGES) else frozenset[str]()
    found = list[str]()
    for text in visible_texts(html, NOT_WORDS):
        words = [each for each in text.replace(",", " ").split() if each not in allowed]
        if IDENTIFIER.search(" ".join(words)) or EVENT_TYPES.intersection(words):
            found.append(text)
    return found


def test_identifiers_are_found() -> None:
    """So that the tests below can fail."""
    for text in (
        "on_hold", "on_hold → rejected", "Data exported (access_records)", "participant.updated",
        "Participant 017b4b70-0000-7000-8000-000000000000", "S3 key", "Won’t claim, Won" + "t claim",
        "plankeeper serve --demo",
    ):  # fmt: skip
        assert identifiers("", f"<p>About <b>{text}</b></p>"), text
    for html in ("<code>on_hold</code>", "<p>On hold", "<a href='/on_hold'>ann_lee@example.com</a>", "<p>a_file.csv"):
        assert identifiers("", html) == [], html
    assert identifiers("", "<input value=on_hold>") == ["on_hold"]
    assert identifiers("", "<p title=on_hold>") == ["on_hold"]


def test_columns_of_files_have_labels_in_words() -> None:
    labels = {field_label(name) for resource in RESOURCES for name in field_names(resource)}
    assert {each for each in labels if identifiers("", each) or re.search(r"\b(?:id|pm|url)\b", each)} == set()


def test_no_page_shows_identifiers(filled_pages: dict[str, Response], filled_office: SeededPlanManager) -> None:
    browser, found = filled_office.browser(), dict[str, list[str]]()
    for entry in HTML_PAGES:
        page = filled_pages[route_name(entry)]
        if page.is_redirect:
            page = browser.get(page.headers["location"], follow_redirects=True)
        if texts := identifiers(entry.path, page.text):
            found[route_name(entry)] = texts
    browser.http.close()
    assert found == {}


def is_page(path: str) -> bool:
    """Whether a path leads to a page, and not to a file."""
    patterns = [re.sub(r"\{\w+\}", "[^/]+", each.path) for each in DOWNLOADS]
    return not any(re.fullmatch(each, urlsplit(path).path) for each in patterns)


@pytest.fixture(scope="module")
def demo_owner(cluster: SharedCluster) -> Iterator[Browser]:
    """An owner of the sample data."""
    running = RunningServer(cluster.new_database()).start()
    credentials = running.run(load_demo_data(running.db, running.settings))
    browser = Browser(running.url)
    form = {"email": credentials.email, "password": credentials.password}
    assert browser.submit("/console/sign-in", form, "/console/sign-in").status_code == 303
    yield browser
    browser.http.close()
    running.stop()


def test_no_page_of_the_sample_data_shows_identifiers(demo_owner: Browser) -> None:
    """The pages to which links lead, some of each kind: with these, statuses, warnings and events of all kinds."""
    seen, kinds, found = {"/console"}, Counter[str](), dict[str, list[str]]()
    waiting = deque(seen)
    while waiting:
        path = waiting.popleft()
        if not is_page(path):
            continue
        response = demo_owner.get(path)
        if texts := identifiers(path, response.text):
            found[path] = texts
        for link in map(unescape, re.findall(r'<a [^>]*href="(/console[^"#]*)', response.text)):
            kind = re.sub(r"[0-9a-f-]{36}|[0-9]+", "*", urlsplit(link).path)
            if link not in seen and kinds[kind] < MAX_OF_A_KIND:
                kinds[kind] += 1
                seen.add(link)
                waiting.append(link)
    assert len(kinds) > 30
    assert found == {}
