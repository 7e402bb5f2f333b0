"""Debian's Chromium, and a page of it that fails the test when a script of the page fails."""

import os
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import pytest

from support.chromium import chromium_flags, chromium_program
from support.client import Client
from support.console import Account, fill_sign_in_form, wait_until_signed_in
from support.server import RunningServer


@pytest.fixture(scope="package")
def chromium(server: RunningServer) -> Iterator[Any]:
    """Playwright has an event loop in the tests' thread: it comes after what runs one there, and goes before."""
    from playwright.sync_api import sync_playwright

    program = chromium_program()
    if program is None:
        reason = "Chromium is not installed. On Debian: apt-get install chromium-headless-shell"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=chromium_flags())
        yield browser
        browser.close()


@pytest.fixture
def page(chromium: Any, server: RunningServer) -> Iterator[Any]:
    """A page that fails the test when a script fails or the policy of the pages is broken."""
    context = chromium.new_context(base_url=server.url)
    opened = context.new_page()
    opened.set_default_timeout(20_000)
    errors: list[str] = []
    opened.on("pageerror", lambda error: errors.append(str(error)))
    opened.on("console", lambda message: errors.append(message.text) if "Security Policy" in message.text else None)
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
        opened.set_default_timeout(20_000)
        return opened

    yield open_page
    for each in contexts:
        each.close()


@pytest.fixture
def new_visitor(new_page: Callable[[], Any], new_account: Callable[..., Account]) -> Callable[[str], Any]:
    """Open a page for a signed-in account with a role."""

    def sign_in(role: str) -> Any:
        opened = new_page()
        fill_sign_in_form(opened, new_account(role).email)
        wait_until_signed_in(opened)
        opened.wait_for_load_state("load")
        return opened

    return sign_in


@pytest.fixture
def visitor(new_visitor: Callable[[str], Any]) -> Any:
    """A page of a manager who has signed in."""
    return new_visitor("manager")
