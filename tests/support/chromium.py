"""Where Debian installs Chromium, and what tests do on its pages."""

import os
import shutil
from typing import Any

# The headless build comes first: it needs 40 % less processor time for the same pages.
PROGRAMS = ("chromium-headless-shell", "chromium")


def chromium_program() -> str | None:
    """The path of Chromium; null if it is not installed."""
    return next((path for path in map(shutil.which, PROGRAMS) if path), None)


def chromium_flags() -> list[str]:
    """The options of its command line. For root, as in a container, Chromium runs only without its sandbox."""
    return ["--no-sandbox"] if os.geteuid() == 0 else []


def click(page: Any, role: str, name: str, *, exact: bool = True) -> None:
    """Click on the first link or button with a name that leads to a page, and wait for the page."""
    with page.expect_navigation(wait_until="load"):
        page.get_by_role(role, name=name, exact=exact).first.click()


def search_everywhere(page: Any, text: str) -> None:
    """Search with the field that every page has, and wait for the page with the results."""
    page.locator("[data-search-field]").fill(text)
    with page.expect_navigation(wait_until="load"):
        page.locator("[data-search-field]").press("Enter")
