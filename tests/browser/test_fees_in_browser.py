"""The office's own fees in Chromium: made, claimed and taken, with and without scripts."""

import os
from collections.abc import Iterator
from typing import Any

import pytest

from support.chromium import ACTION_TIMEOUT
from support.client import Client
from support.cluster import SharedCluster
from support.console import Account, create_account, open_signed_in
from support.factories import create_client
from support.fees import LAST_DAY, MONTH, FeeOffice, running_fee_server
from support.server import RunningServer

PAGE = "/console/payments/fees"
NAME = f"{LAST_DAY:%B %Y}"
WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def fee_server(cluster: SharedCluster) -> Iterator[RunningServer]:
    with running_fee_server(cluster) as running:
        yield running


@pytest.fixture
def client(fee_server: RunningServer) -> Iterator[Client]:
    made = fee_server.run(create_client(fee_server))
    yield made
    made.http.close()


@pytest.fixture
def office(fee_server: RunningServer, client: Client) -> FeeOffice:
    found = FeeOffice(fee_server, client)
    for _ in range(2):
        found.managed()
    return found


@pytest.fixture
def owner(fee_server: RunningServer, office: FeeOffice) -> Account:
    return fee_server.run(create_account(fee_server, office.plan_manager_id, "owner"))


@pytest.fixture
def screen(chromium: Any, fee_server: RunningServer, has_script: bool) -> Iterator[Any]:
    """A page of a wide window with scripts, or of a phone without them."""
    size = WIDE if has_script else PHONE
    context = chromium.new_context(
        base_url=fee_server.url, java_script_enabled=has_script, reduced_motion="reduce", viewport=size
    )
    opened = context.new_page()
    opened.set_default_timeout(ACTION_TIMEOUT)
    yield opened
    context.close()


def keep_picture(page: Any, name: str) -> None:
    """Check the width, and keep a picture in the folder that PICTURES names."""
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
    if folder := os.environ.get("PICTURES"):
        page.screenshot(path=f"{folder}/fees-{name}-{page.evaluate('innerWidth')}.png", full_page=True)


def test_fees_are_made_claimed_and_taken(screen: Any, owner: Account, office: FeeOffice) -> None:
    open_signed_in(screen, office.server, owner, PAGE)
    screen.get_by_role("heading", name=f"Fees for {NAME}").wait_for()
    make_fees(screen)
    claim_fees(screen, office)
    take_fees(screen)
    assert [each["taken"] for each in office.client.get("/fees", month=MONTH).json()["data"]] == [104.45, 104.45]


def make_fees(page: Any) -> None:
    """Look at who gets a fee, make the fees, and find their invoices."""
    page.get_by_text("Who gets a fee").click()
    page.get_by_role("link", name="Robin Hale").first.wait_for()
    keep_picture(page, "preview")
    page.get_by_role("button", name="Make 2 fees").click()
    page.get_by_text("2 fees made: $208.90.").wait_for()
    page.get_by_text(f"No fee is to be made for {NAME}.").wait_for()
    keep_picture(page, "made")
    page.get_by_role("link", name=NAME, exact=True).click()
    page.get_by_text("2 invoices · $208.90").first.wait_for()
    page.go_back()


def claim_fees(page: Any, office: FeeOffice) -> None:
    """Claim the fees with the invoice that the office has, and have the agency pay them."""
    page.goto("/console/claims/new")
    page.get_by_role("button", name="Make claim batch").click()
    page.get_by_role("button", name="Mark as submitted").click()
    page.get_by_role("link", name="Record results").wait_for()
    office.answer(page.url.rpartition("/")[2])


def take_fees(page: Any) -> None:
    """Take what the agency has paid, as one amount with one reference."""
    page.goto(PAGE)
    page.get_by_role("heading", name="$208.90 can be taken").wait_for()
    keep_picture(page, "to-take")
    page.get_by_role("button", name="Take fees").click()
    page.get_by_text("Transfer this amount with the reference F000001.").wait_for()
    page.get_by_role("heading", name="$208.90 of fees taken").wait_for()
    keep_picture(page, "taken")
    page.goto(PAGE)
    page.get_by_role("link", name="F000001").wait_for()
    assert page.get_by_role("button", name="Take fees").count() == 0
