"""Where Debian installs Chromium."""

import os
import shutil

# The headless build comes first: it needs 40 % less processor time for the same pages.
PROGRAMS = ("chromium-headless-shell", "chromium")


def chromium_program() -> str | None:
    """The path of Chromium; null if it is not installed."""
    return next((path for path in map(shutil.which, PROGRAMS) if path), None)


def chromium_flags() -> list[str]:
    """The options of its command line. For root, as in a container, Chromium runs only without its sandbox."""
    return ["--no-sandbox"] if os.geteuid() == 0 else []
