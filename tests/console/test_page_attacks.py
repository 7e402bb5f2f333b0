"""Attacks on every page, made from the table of pages: forged forms, ids of others, roles too low, texts that bite."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import count
from typing import Any

import pytest

from console.furnished import FILES, FORMS, PAGES, Furnished, furnished, name_of, without_ids
from console.people import Browser, made
from plankeeper.accounts.policy import ROLES
from plankeeper.console.routing import PageRoute
from support.server import RunningServer

NO_IDS = {"token", "name"}  # a secret of who is invited, and a file that all may have
WITH_IDS = [each for each in [*PAGES, *FORMS] if set(each.path_params) - NO_IDS]
WITH_ROLES = [each for each in [*PAGES, *FORMS] if each.role in ROLES[1:]]

# What a form carries that is looked at before the id is.
FORM = {"engaged_ms": "0", "active_ms": "0", "idle_count": "0"}

PAYLOADS = {
    "script": "<script>hit()</script>",
    "attribute": "\"'><img src=x onerror=hit()>",
    "handler": "\" autofocus onfocus=hit() x='",
    "address": "javascript:hit()",
    "closing": "</textarea></title></style><svg onload=hit()>",
    "template": "{{ 7 * 7 }}{% raw %}${7*7}",
    "escaped": "&lt;script&gt;hit()&lt;/script&gt;",
    "style": "red;background:url(javascript:hit())",
}


@pytest.fixture(scope="module")
def home(server: RunningServer) -> Iterator[Furnished]:
    found = furnished(server, lambda name: f"ours {name}")
    yield found
    found.client.http.close()


@pytest.fixture(scope="module")
def signed_in(home: Furnished) -> Iterator[Browser]:
    browser = home.browser()
    yield browser
    browser.http.close()


@pytest.fixture(scope="module")
def by_role(server: RunningServer, home: Furnished) -> Iterator[dict[str, Browser]]:
    found = {role: Browser(server.url) for role in ROLES}
    for role, browser in found.items():
        assert browser.sign_in(server.run(made(server, home.plan_manager_id, role))).status_code == 303
    yield found
    for browser in found.values():
        browser.http.close()


@pytest.fixture(scope="module")
def stranger(server: RunningServer) -> Iterator[Browser]:
    """The owner of another plan manager, which has everything too."""
    found = furnished(server)
    browser = found.browser()
    yield browser
    browser.http.close()
    found.client.http.close()


def ask(browser: Browser, found: Furnished, entry: PageRoute, **more: Any) -> Any:
    path = found.path(entry)
    return browser.get(path) if entry.method == "GET" else browser.send(path, **more)


def test_the_plan_manager_has_something_for_every_page(home: Furnished) -> None:
    assert list(without_ids(home)) == []


@pytest.mark.parametrize("entry", PAGES, ids=name_of)
def test_every_page_is_shown_to_the_owner(home: Furnished, signed_in: Browser, entry: PageRoute) -> None:
    answer = ask(signed_in, home, entry)
    assert answer.status_code in (200, 303), answer.text


@pytest.mark.parametrize("entry", WITH_IDS, ids=name_of)
def test_what_is_another_plan_managers_is_not_there(home: Furnished, stranger: Browser, entry: PageRoute) -> None:
    before = home.events()
    answer = ask(stranger, home, entry, **({} if entry.method == "GET" else {"form": FORM}))
    assert answer.status_code == 404, answer.text
    assert not any(text in answer.text for text in home.texts.values())
    assert home.events() == before


@pytest.mark.parametrize("entry", WITH_ROLES, ids=name_of)
def test_a_role_that_is_too_low_opens_nothing(home: Furnished, by_role: dict[str, Browser], entry: PageRoute) -> None:
    before = home.events()
    answer = ask(by_role[ROLES[ROLES.index(entry.role) - 1]], home, entry)
    assert answer.status_code == 403, answer.text
    assert home.events() == before


@pytest.mark.parametrize("entry", FORMS, ids=name_of)
def test_a_form_that_is_not_ours_does_nothing(
    home: Furnished, signed_in: Browser, stranger: Browser, entry: PageRoute
) -> None:
    path, before, ours = home.path(entry), home.events(), {"Origin": signed_in.url}
    forgeries = {
        "without a token": ("", ours), "a wrong token": ("x" * 64, ours), "another's token": (stranger.csrf(), ours),
        "another site": (signed_in.csrf(), {"Origin": "https://evil.example"}), "no origin": (signed_in.csrf(), {}),
        "a sandbox": (signed_in.csrf(), {"Origin": "null"}),
    }  # fmt: skip
    found = {
        way: signed_in.http.post(path, data={"csrf": token}, headers=headers).status_code
        for way, (token, headers) in forgeries.items()
    }
    assert found == dict.fromkeys(forgeries, 403)
    assert home.events() == before


class Shape(HTMLParser):
    """What a page is made of, and what is wrong with it."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.faults, self.said = list[str](), ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.said += " ".join(found.values()) + " "
        self.faults += [f"<{tag} {name}>" for name in found if name.startswith("on") or name == "style"]
        if tag == "script" and not found.get("src", "").startswith("/console/assets/"):
            self.faults.append(f"<script> {found}")
        for name in ("href", "src", "action", "formaction", "xlink:href"):
            address = found.get(name, "/")
            picture = tag == "img" and address.startswith("data:image/svg+xml")
            if not address.startswith(("/", "#", "?", "mailto:", "https://example.com")) and not picture:
                self.faults.append(f"<{tag} {name}={address}>")

    def handle_data(self, data: str) -> None:
        self.said += data


@pytest.fixture(scope="module", params=PAYLOADS.values(), ids=PAYLOADS)
def hostile(request: pytest.FixtureRequest, server: RunningServer) -> tuple[Furnished, dict[str, Shape]]:
    """A plan manager with a payload in every field, and all its pages."""
    numbers = count(10)  # a number tells the fields apart, and fits where only 50 characters do
    found = furnished(server, lambda _name: f"{request.param} {next(numbers)}")
    browser = found.browser()
    shown: dict[str, Shape] = {}
    for entry in PAGES:
        if entry in FILES:
            continue
        shape = shown[name_of(entry)] = Shape()
        shape.feed(ask(browser, found, entry).text)
    for event in found.every_event():
        shape = shown[f"event {event}"] = Shape()
        shape.feed(browser.get(f"/console/activity/{event}").text)
    shape = shown["POST /console/import"] = Shape()
    shape.feed(found.preview)
    browser.http.close()
    found.client.http.close()
    return found, shown


# Texts that no page shows, with the reason.
NOT_SHOWN = {
    "invoice.s3_key": "where a file is kept is of use to programs",
    "invoice.email_message_id": "likewise",
}


def test_no_text_becomes_part_of_a_page(hostile: tuple[Furnished, dict[str, Shape]]) -> None:
    _, shown = hostile
    assert {name: shape.faults for name, shape in shown.items() if shape.faults} == {}


def test_every_text_is_shown_as_it_was_written(hostile: tuple[Furnished, dict[str, Shape]]) -> None:
    found, shown = hostile
    everything = re.sub(r"\s+", " ", " ".join(shape.said for shape in shown.values()))
    missing = [name for name, text in found.texts.items() if text not in everything and name not in NOT_SHOWN]
    assert missing == []
