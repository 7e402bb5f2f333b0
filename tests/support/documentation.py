"""The built documentation site, as the server serves it."""

import json
import os

import pytest

from plankeeper.http.public.documentation import NOT_FOUND_PATH, SITE


def site_files() -> dict[str, tuple[str, str]]:
    """The file and the media type of each address. Empty if the site isn't built."""
    file = SITE / "manifest.json"
    return json.loads(file.read_text())["files"] if file.exists() else {}


def site_pages() -> list[str]:
    """The addresses of all pages."""
    return [path for path, (name, _) in site_files().items() if name.endswith(".html") and path != NOT_FOUND_PATH]


def require_site() -> None:
    """Fail or skip a test that needs the site."""
    if not site_files():
        reason = "the documentation site isn't built: run `make docs`"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
