"""Debian's Chromium, and a page of it that fails the test when a script of the page fails."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.server import RunningServer

CHROMIUM = next((path for path in ("/usr/bin/chromium", shutil.which("chromium") or "") if Path(path).is_file()), None)


@pytest.fixture(scope="package")
def chromium(server: RunningServer) -> Iterator[Any]:
    """Playwright has an event loop in the tests' thread: it comes after what runs one there, and goes before."""
    from playwright.sync_api import sync_playwright

    if CHROMIUM is None:
        reason = "There is no Chromium: install it (Debian: apt-get install chromium)."
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    # As root, which it is in a container, Chromium runs without its sandbox only.
    flags = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=flags)
        yield browser
        browser.close()


@pytest.fixture
def page(chromium: Any, server: RunningServer) -> Iterator[Any]:
    """A page that fails the test when a script fails or the policy of the pages is broken."""
    context = chromium.new_context(base_url=server.url)
    opened = context.new_page()
    opened.set_default_timeout(20_000)
    faults: list[str] = []
    opened.on("pageerror", lambda error: faults.append(str(error)))
    opened.on("console", lambda said: faults.append(said.text) if "Security Policy" in said.text else None)
    yield opened
    context.close()
    assert faults == []
