"""Attacks on every page: forged forms, ids of other plan managers, and injected markup."""

import re
from collections.abc import Callable, Iterator
from itertools import count, cycle
from typing import Any

import pytest

from plankeeper.access.policy import ROLES
from plankeeper.console.shell.routing import PageRoute
from support.attacks import PAYLOADS, PageParser
from support.console import Browser
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
def other_browser(filled_office: SeededPlanManager) -> Iterator[Browser]:
    """The owner of another plan manager, which has everything too."""
    browser = filled_office.browser()
    yield browser
    browser.http.close()


def request_page(browser: Browser, seeded: SeededPlanManager, entry: PageRoute, **more: Any) -> Any:
    path = seeded.path(entry)
    return browser.get(path) if entry.method == "GET" else browser.submit(path, **more)


def test_the_seeded_plan_manager_has_data_for_every_page(seeded: SeededPlanManager) -> None:
    assert list(missing_ids(seeded)) == []


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


# Every form meets a wrong token and a wrong origin, and the first of each kind of form meets all of them: whatever
# the form is, the same functions check them before its handler runs.
WRONG_TOKENS, WRONG_ORIGINS = ("", "x" * 64, "another's"), ("https://evil.example", None, "null")


def kind_of_form(entry: PageRoute) -> tuple[bool, ...]:
    """What the checks of a form's token look at."""
    shown_again = entry.on_error is not None and entry.form_path is not None
    return entry.role in ROLES, entry.role == "anyone", shown_again, entry.checks_credentials, entry.upload is not None


def forgeries_of(entry: PageRoute) -> Iterator[tuple[str, str | None]]:
    """The tokens and the origins of forged forms, one of them right (`ours`)."""
    index = FORMS.index(entry)
    if kind_of_form(entry) in map(kind_of_form, FORMS[:index]):
        yield WRONG_TOKENS[index % 3], "ours"
        yield "ours", WRONG_ORIGINS[index % 3]
    else:
        yield from ((token, "ours") for token in WRONG_TOKENS)
        yield from (("ours", origin) for origin in WRONG_ORIGINS)


@sweep("entry", FORMS, ids=route_name)
def test_forged_forms_do_nothing(
    seeded: SeededPlanManager, signed_in: Browser, other_browser: Browser, entry: PageRoute
) -> None:
    path, before = seeded.path(entry), seeded.event_count()
    tokens, origins = {"ours": signed_in.csrf(), "another's": other_browser.csrf()}, {"ours": signed_in.url}
    for token, origin in forgeries_of(entry):
        headers = {"Origin": origins.get(origin, origin)} if origin else {}
        form = {"csrf": tokens.get(token, token)}
        assert signed_in.http.post(path, data=form, headers=headers).status_code == 403, (token, origin)
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
        response = request_page(browser, seeded, entry)
        assert response.status_code in (200, 303), route_name(entry)
        if entry not in DOWNLOADS:
            shape = pages[route_name(entry)] = PageParser()
            shape.feed(response.text)
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
