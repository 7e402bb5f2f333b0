"""Home of `serve --demo` on the day of the test: there is something in each chart and each line."""

import re
from collections.abc import Iterator
from html import unescape

import pytest

from plankeeper.cli.demo import DemoCredentials, load_demo_data
from plankeeper.cli.sample_data import DemoPlanManager, plan_managers
from plankeeper.resources.invoices.warnings import WARNINGS
from support.cluster import SharedCluster
from support.console import Browser
from support.server import RunningServer, wait_until

LARGER, SMALLER = plan_managers()
CHARTS = (
    "Invoices received per week", "Unpaid invoices by age", "Plans ending per week", "Spend by provider, last 90 days",
)  # fmt: skip


@pytest.fixture(scope="module")
def demo_server(cluster: SharedCluster) -> Iterator[RunningServer]:
    running = RunningServer(cluster.new_database()).start()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def credentials(demo_server: RunningServer) -> DemoCredentials:
    return demo_server.run(load_demo_data(demo_server.db, demo_server.settings))


@pytest.fixture
def demo_owner(demo_server: RunningServer, credentials: DemoCredentials) -> Iterator[Browser]:
    browser = Browser(demo_server.url)
    form = {"email": credentials.email, "password": credentials.password}
    assert browser.submit("/console/sign-in", form, "/console/sign-in").status_code == 303
    yield browser
    browser.http.close()


# The flaws of the sample invoices. Others follow from the providers, such as one with an invalid ABN.
PLANNED = {
    "missing_invoice_number", "missing_participant", "missing_provider", "inactive_participant", "check_total",
    "check_dates", "check_item_code", "possible_duplicate",
}  # fmt: skip


@pytest.mark.parametrize("plan_manager", [LARGER, SMALLER], ids=["larger", "smaller"])
def test_nothing_on_home_is_empty(demo_owner: Browser, plan_manager: DemoPlanManager) -> None:
    demo_owner.submit("/console/plan-managers", {"plan_manager_id": str(plan_manager.id)})
    page = demo_owner.get("/console").text
    assert unescape(plan_manager.name) in unescape(page)
    tiles = dict(re.findall(r'class="tile-label">([^<]+)</span>\s*<strong>([\d,]+)</strong>', page))
    assert list(tiles) == [
        "Invoices on hold", "Waiting for approval", "Late to claim", "Plans ending in 30 days",
        "Plans expired, still active", "No account manager", "Lines to pay",
    ]  # fmt: skip
    assert "0" not in tiles.values()
    warnings = page.partition("On hold by warning")[2].partition("</table>")[0]
    codes = set(re.findall(r'<th scope="row"><a href="[^"]+warning=(\w+)', warnings))
    assert PLANNED < codes < WARNINGS.keys()
    for title in CHARTS:
        chart = page.partition(f">{title}</h2>")[2].partition('<div class="card">')[0]
        assert "<svg" in chart or "<li>" in chart, title
    for text in ("No invoices were received", "There are no unpaid invoices", "No plan ends"):
        assert text not in page
    wait_until(lambda: "Nothing has changed yet." not in demo_owner.get("/console").text)  # once events are in the feed
