"""Where Debian installs Chromium, and what tests do on its pages."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

AXE = Path(__file__).parents[1] / "browser/axe/axe.min.js"
# The rules whose result depends on the colours of a page.
COLOR_RULES = ("color-contrast", "link-in-text-block")
# Milliseconds for a click and the like: they allow for a busy machine, and are no bound of the product.
ACTION_TIMEOUT = 60_000
RUN_AXE = "options => axe.run(document, options).then(results => results.violations)"

# The headless build comes first: it needs 40 % less processor time for the same pages.
PROGRAMS = ("chromium-headless-shell", "chromium")


def chromium_program() -> str | None:
    """The path of Chromium; null if it is not installed."""
    return next((path for path in map(shutil.which, PROGRAMS) if path), None)


def chromium_flags() -> list[str]:
    """The options of its command line. For root, as in a container, Chromium runs only without its sandbox."""
    # A new process for each page that comes after one of another site takes as long as three pages.
    flags = ["--renderer-process-limit=1"]
    return [*flags, "--no-sandbox"] if os.geteuid() == 0 else flags


def axe_violations(
    page: Any, more_rules: Sequence[str] = (), themes: Sequence[str] = ("light", "dark")
) -> list[dict[str, Any]]:
    """The findings of axe-core on a page as it is: of all its rules and `more_rules` in the first theme, of colours in
    the others.

    It needs a page whose policy is bypassed. The page is light afterwards.
    """
    # Not as an initial script: that would be compiled for every page, also for those on which nothing looks for it.
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text())
    every_rule = {"rules": {name: {"enabled": True} for name in more_rules}}
    found: list[dict[str, Any]] = []
    for theme in themes:
        rules = every_rule if theme == themes[0] else {"runOnly": list(COLOR_RULES)}
        page.emulate_media(color_scheme=theme)
        found += page.evaluate(RUN_AXE, {"resultTypes": ["violations"], **rules})
    if themes[-1] != "light":
        page.emulate_media(color_scheme="light")
    return found


def pause_clock(page: Any) -> None:
    """From here on the page's time goes by only where the test says so."""
    page.clock.install(time="2026-01-01T00:00:00")
    # Until the next call, time passes as usual, and a clock can't be set back.
    page.clock.pause_at("2026-01-01T01:00:00")


def copy_text(button: Any) -> str:
    """Click on a button that copies a text. Returns what it says then, for two seconds."""
    script = """button => new Promise(resolve => {
        new MutationObserver(() => resolve(button.textContent)).observe(button, { childList: true });
        button.click();
    })"""
    return button.evaluate(script)


def click(page: Any, role: str, name: str, *, exact: bool = True) -> None:
    """Click on the first link or button with a name that leads to a page, and wait for the page."""
    with page.expect_navigation(wait_until="load"):
        page.get_by_role(role, name=name, exact=exact).first.click()


def search_everywhere(page: Any, text: str) -> None:
    """Search with the field that every page has, and wait for the page with the results."""
    page.locator("[data-search-field]").fill(text)
    with page.expect_navigation(wait_until="load"):
        page.locator("[data-search-field]").press("Enter")
