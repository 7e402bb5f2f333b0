"""Debian's Chromium, and pages of it that fail the test when a script of the page fails.

A process, a context and a page of Chromium cost more than most tests do, so they are shared: `page` and `visitor` are
the same page in all tests, without cookies and without anything that it stored. A test that watches the page's events,
or changes its clock or its scripts, takes a `fresh_page`.
"""

import os
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import pytest

from support.chromium import ACTION_TIMEOUT, chromium_flags, chromium_program
from support.client import Client
from support.console import Account, add_session
from support.server import RunningServer
from support.tls_front import TlsFront

VIEWPORT = {"width": 1280, "height": 720}


@pytest.fixture(scope="package")
def public_front() -> Iterator[TlsFront]:
    """What stands at the public host for Chromium: a test says which server is behind it."""
    with TlsFront() as front:
        yield front


@pytest.fixture(scope="package")
def chromium(server: RunningServer, public_front: TlsFront) -> Iterator[Any]:
    """Playwright has an event loop in the tests' thread: it comes after what runs one there, and goes before."""
    from playwright.sync_api import sync_playwright

    program = chromium_program()
    if program is None:
        reason = "Chromium is not installed. On Debian: apt-get install chromium-headless-shell"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=[*chromium_flags(), *public_front.flags])
        yield browser
        browser.close()


def note_errors(page: Any) -> list[str]:
    """Scripts that fail on a page from now on, and breaches of the policy of the pages."""
    errors: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if "Security Policy" in message.text else None)
    return errors


class SharedPage:
    """A page of Chromium that each test gets as if it were new."""

    def __init__(self, chromium: Any, url: str, *, has_script: bool) -> None:
        self.context = chromium.new_context(
            base_url=url, java_script_enabled=has_script, reduced_motion="reduce", viewport=VIEWPORT
        )
        self.page = self.context.new_page()
        self.page.set_default_timeout(ACTION_TIMEOUT)
        self.errors = note_errors(self.page)

    def reset(self) -> list[str]:
        """Take away what a test left. Returns the errors since the last time."""
        self.context.set_offline(False)
        self.page.unroute_all()
        for each in self.context.pages:
            if each is not self.page:
                each.close()
        if self.page.url.startswith("http"):
            self.page.evaluate("localStorage.clear(); sessionStorage.clear()")
        self.page.goto("about:blank")
        self.context.clear_cookies()
        self.page.set_viewport_size(VIEWPORT)
        self.page.emulate_media(media="screen", color_scheme="light")
        errors = self.errors[:]
        self.errors.clear()
        return errors


@pytest.fixture(scope="package")
def shared_pages(chromium: Any, server: RunningServer) -> Iterator[Callable[[bool], SharedPage]]:
    """The page that runs scripts, and the one that doesn't."""
    opened = dict[bool, SharedPage]()

    def get(has_script: bool) -> SharedPage:
        if has_script not in opened:
            opened[has_script] = SharedPage(chromium, server.url, has_script=has_script)
        return opened[has_script]

    yield get
    for each in opened.values():
        each.context.close()


@pytest.fixture
def page(shared_pages: Callable[[bool], SharedPage]) -> Iterator[Any]:
    """A page that fails the test when a script fails or the policy of the pages is broken."""
    shared = shared_pages(True)
    yield shared.page
    assert shared.reset() == []


@pytest.fixture
def fresh_page(chromium: Any, server: RunningServer) -> Iterator[Any]:
    """The same in a browser of its own."""
    context = chromium.new_context(base_url=server.url, viewport=VIEWPORT)
    opened = context.new_page()
    opened.set_default_timeout(ACTION_TIMEOUT)
    errors = note_errors(opened)
    yield opened
    context.close()
    assert errors == []


@pytest.fixture
def client(new_client: Callable[..., Client], plan_manager_id: UUID) -> Client:
    """A client of the plan manager that the visitor works for."""
    return new_client(plan_manager_id)


@pytest.fixture(params=[True, False], ids=["with JavaScript", "without JavaScript"])
def has_script(request: pytest.FixtureRequest) -> bool:
    """Whether the browser runs scripts."""
    return request.param


@pytest.fixture
def new_page(chromium: Any, server: RunningServer, has_script: bool) -> Iterator[Callable[[], Any]]:
    """Opens a page in a browser of its own, which has no cookies yet."""
    contexts: list[Any] = []

    def open_page() -> Any:
        context = chromium.new_context(base_url=server.url, java_script_enabled=has_script, reduced_motion="reduce")
        contexts.append(context)
        opened = context.new_page()
        opened.set_default_timeout(ACTION_TIMEOUT)
        return opened

    yield open_page
    for each in contexts:
        each.close()


@pytest.fixture
def new_visitor(
    shared_pages: Callable[[bool], SharedPage], server: RunningServer, new_account: Callable[..., Account],
    has_script: bool,
) -> Iterator[Callable[[str], Any]]:  # fmt: skip
    """The page for a signed-in account with a role. It shows nothing yet."""
    shared = shared_pages(has_script)

    def sign_in(role: str) -> Any:
        add_session(shared.context, server, new_account(role))
        return shared.page

    yield sign_in
    assert shared.reset() == []


@pytest.fixture
def visitor(new_visitor: Callable[[str], Any]) -> Any:
    """The page for a manager who is signed in."""
    return new_visitor("manager")
