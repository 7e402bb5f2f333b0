"""Attacks on every page: forged forms, ids of other plan managers, insufficient roles, and injected markup."""

import re
from collections.abc import Callable, Iterator
from itertools import count, cycle
from typing import Any

import pytest

from plankeeper.access.policy import ROLES
from plankeeper.console.shell.routing import PageRoute
from support.attacks import PAYLOADS, PageParser
from support.console import Browser, create_account
from support.factories import DOWNLOADS, FORMS, PAGES, SeededPlanManager, missing_ids, route_name, seed_plan_manager
from support.server import RunningServer
from support.sweeps import sweep

NO_IDS = {
    "token",
    "reset_token",
    "approval_token",
    "number",
    "name",
}  # secrets of the invited and of those who forgot their password, and a file that all may have
# The start of single sign-on is for everybody, and the same with every id.
WITH_IDS = [each for each in [*PAGES, *FORMS] if set(each.path_params) - NO_IDS and not each.calls_provider]
WITHOUT_IDS = [each for each in PAGES if each not in WITH_IDS and each.role in ROLES]
WITH_ROLES = [each for each in [*PAGES, *FORMS] if each.role in ROLES[1:]]

# What a form carries that is looked at before the id is.
FORM_FIELDS = {"engaged_ms": "0", "active_ms": "0", "idle_count": "0"}


@pytest.fixture(scope="module")
def seeded(server: RunningServer) -> Iterator[SeededPlanManager]:
    found = seed_plan_manager(server, lambda name: f"ours {name}")
    yield found
    found.client.http.close()


@pytest.fixture(scope="module")
def signed_in(seeded: SeededPlanManager) -> Iterator[Browser]:
    browser = seeded.browser()
    yield browser
    browser.http.close()


@pytest.fixture(scope="module")
def browsers_by_role(server: RunningServer, seeded: SeededPlanManager) -> Iterator[dict[str, Browser]]:
    browsers = {role: Browser(server.url) for role in ROLES}
    for role, browser in browsers.items():
        assert browser.sign_in(server.run(create_account(server, seeded.plan_manager_id, role))).status_code == 303
    yield browsers
    for browser in browsers.values():
        browser.http.close()


@pytest.fixture(scope="module")
def other_browser(server: RunningServer) -> Iterator[Browser]:
    """The owner of another plan manager, which has everything too."""
    seeded = seed_plan_manager(server)
    browser = seeded.browser()
    yield browser
    browser.http.close()
    seeded.client.http.close()


def request_page(browser: Browser, seeded: SeededPlanManager, entry: PageRoute, **more: Any) -> Any:
    path = seeded.path(entry)
    return browser.get(path) if entry.method == "GET" else browser.submit(path, **more)


def test_the_seeded_plan_manager_has_data_for_every_page(seeded: SeededPlanManager) -> None:
    assert list(missing_ids(seeded)) == []


@sweep("entry", PAGES, ids=route_name)
def test_every_page_is_shown_to_the_owner(seeded: SeededPlanManager, signed_in: Browser, entry: PageRoute) -> None:
    response = request_page(signed_in, seeded, entry)
    assert response.status_code in (200, 303)


@sweep("entry", WITH_IDS, ids=route_name)
def test_resources_of_another_plan_manager_are_not_found(
    seeded: SeededPlanManager, other_browser: Browser, entry: PageRoute
) -> None:
    before = seeded.event_count()
    response = request_page(other_browser, seeded, entry, **({} if entry.method == "GET" else {"form": FORM_FIELDS}))
    assert response.status_code == 404
    assert not any(text in response.text for text in seeded.texts.values())
    assert seeded.event_count() == before


@sweep("entry", WITHOUT_IDS, ids=route_name)
def test_no_page_shows_records_of_another_plan_manager(
    seeded: SeededPlanManager, other_browser: Browser, entry: PageRoute
) -> None:
    shown = request_page(other_browser, seeded, entry).text
    assert [name for name, text in seeded.texts.items() if text in shown] == []


@sweep("entry", WITH_ROLES, ids=route_name)
def test_insufficient_roles_are_rejected(
    seeded: SeededPlanManager, browsers_by_role: dict[str, Browser], entry: PageRoute
) -> None:
    before = seeded.event_count()
    response = request_page(browsers_by_role[ROLES[ROLES.index(entry.role) - 1]], seeded, entry)
    assert response.status_code == 403
    assert seeded.event_count() == before


@sweep("entry", FORMS, ids=route_name)
def test_forged_forms_do_nothing(
    seeded: SeededPlanManager, signed_in: Browser, other_browser: Browser, entry: PageRoute
) -> None:
    path, before, ours = seeded.path(entry), seeded.event_count(), {"Origin": signed_in.url}
    forgeries = {
        "without a token": ("", ours),
        "a wrong token": ("x" * 64, ours),
        "another's token": (other_browser.csrf(), ours),
        "another site": (signed_in.csrf(), {"Origin": "https://evil.example"}),
        "no origin": (signed_in.csrf(), {}),
        "a sandbox": (signed_in.csrf(), {"Origin": "null"}),
    }
    found = {
        way: signed_in.http.post(path, data={"csrf": token}, headers=headers).status_code
        for way, (token, headers) in forgeries.items()
    }
    assert found == dict.fromkeys(forgeries, 403)
    assert seeded.event_count() == before


# All payloads at once, where a field takes so much and pages show all of it; else one of them in turn.
EVERYTHING = " ".join(PAYLOADS.values())
SHORT_FIELDS = ("number", "abn")  # 50 characters
CUT_SHORT = (
    "line.claim_batch_ref",
    "line.payment_ref",
    "line.service_item_number",
    "file.first_name",
    "imported.rejected",
    "request.request_id",
    "request.user_agent",
)


def attacking_texts() -> Callable[[str], str]:
    """The value of a field by its name: payloads, and a number that tells the fields apart."""
    numbers, turns = count(10), cycle(PAYLOADS.values())
    return lambda name: f"{next(turns) if name.endswith((*SHORT_FIELDS, *CUT_SHORT)) else EVERYTHING} {next(numbers)}"


@pytest.fixture(scope="module")
def adversarial_pages(server: RunningServer) -> tuple[SeededPlanManager, dict[str, PageParser]]:
    """A plan manager with payloads in every field, and all its pages."""
    seeded = seed_plan_manager(server, attacking_texts())
    browser = seeded.browser()
    pages: dict[str, PageParser] = {}
    for entry in PAGES:
        if entry in DOWNLOADS:
            continue
        shape = pages[route_name(entry)] = PageParser()
        shape.feed(request_page(browser, seeded, entry).text)
    for event in seeded.event_ids():
        shape = pages[f"event {event}"] = PageParser()
        shape.feed(browser.get(f"/console/activity/{event}").text)
    shape = pages["POST /console/imports"] = PageParser()
    shape.feed(seeded.preview)
    browser.http.close()
    seeded.client.http.close()
    return seeded, pages


# Texts that no page shows, with the reason.
NOT_DISPLAYED = {
    "invoice.s3_key": "where a file is kept is of use to programs",
    "invoice.email_message_id": "likewise",
}


def test_no_text_becomes_markup(adversarial_pages: tuple[SeededPlanManager, dict[str, PageParser]]) -> None:
    _, shown = adversarial_pages
    assert {name: shape.violations for name, shape in shown.items() if shape.violations} == {}


def test_every_text_is_shown_verbatim(adversarial_pages: tuple[SeededPlanManager, dict[str, PageParser]]) -> None:
    found, shown = adversarial_pages
    everything = re.sub(r"\s+", " ", " ".join(shape.text for shape in shown.values()))
    missing = [name for name, text in found.texts.items() if text not in everything and name not in NOT_DISPLAYED]
    assert missing == []
