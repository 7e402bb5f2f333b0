"""The pages of the office's own fees: preview, make, take."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from support.client import Client
from support.cluster import SharedCluster
from support.console import Browser, create_account, main_text
from support.factories import create_client
from support.fees import FEE_ITEM, LAST_DAY, MONTH, FeeOffice, running_fee_server
from support.server import RunningServer

PAGE = "/console/payments/fees"
SETTINGS = "/console/settings/fees"
NAME = f"{LAST_DAY:%B %Y}"


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
    return FeeOffice(fee_server, client)


@pytest.fixture
def sign_in(fee_server: RunningServer, office: FeeOffice) -> Iterator[Callable[..., Browser]]:
    opened: list[Browser] = []

    def open_browser(role: str = "owner") -> Browser:
        opened.append(browser := Browser(fee_server.url))
        browser.sign_in(fee_server.run(create_account(fee_server, office.plan_manager_id, role)))  # pyright: ignore[reportArgumentType]
        return browser

    yield open_browser
    for each in opened:
        each.http.close()


def take_form(page: str) -> dict[str, Any]:
    [seen] = re.findall(r'name="seen" value="([^"]+)"', page)
    return {"month": MONTH, "seen": seen, "taken_on": "2026-01-15"}


def test_fees_are_previewed_and_made(office: FeeOffice, sign_in: Callable[..., Browser]) -> None:
    office.managed()
    office.managed()
    browser = sign_in()
    page = browser.get(PAGE).text
    assert f"Fees for {NAME}" in page
    assert "$208.90 for 2 participants." in page
    assert "No plan was in force on a day of the month." in page
    assert office.client.get("/fees").json()["data"] == []
    response = browser.submit(PAGE, {"month": MONTH})
    assert response.headers["location"] == f"{PAGE}?month={MONTH}"
    page = browser.get(PAGE).text
    assert "2 fees made: $208.90." in page
    assert f"No fee is to be made for {NAME}." in page
    assert "The fee of the month was made before." in page
    assert f'<a href="/console/invoices?invoice_number=FEE-{MONTH}">{NAME}</a>' in page


def test_fees_are_taken(office: FeeOffice, sign_in: Callable[..., Browser]) -> None:
    office.managed()
    [fee] = office.made()["fees"]
    browser = sign_in()
    assert "can be taken" not in browser.get(PAGE).text
    office.claim_and_pay(fee["id"])
    page = browser.get(PAGE).text
    assert "$104.45 can be taken" in page
    form = take_form(page)
    response = browser.submit(f"{PAGE}/take", form)
    assert response.status_code == 303, response.text
    taking = browser.get(response.headers["location"]).text
    assert "Fees taken: $104.45. Transfer this amount with the reference F000001." in taking
    assert "Taken on 15 Jan 2026" in taking
    assert f"FEE-{MONTH}-" in taking
    page = browser.get(PAGE).text
    assert "can be taken" not in page
    assert ">F000001</a>" in page


def test_fees_are_taken_as_they_were_seen(office: FeeOffice, sign_in: Callable[..., Browser]) -> None:
    office.managed()
    office.managed()
    first, second = (each["id"] for each in office.made()["fees"])
    office.claim_and_pay(first)
    browser = sign_in()
    form = take_form(browser.get(PAGE).text)
    response = browser.submit(f"{PAGE}/take", form | {"taken_on": "yesterday"})
    assert response.status_code == 422
    office.claim_and_pay(second)
    response = browser.submit(f"{PAGE}/take", form)
    assert response.status_code == 409
    assert "What can be taken has changed in the meantime." in response.text
    assert "$208.90 can be taken" in response.text
    assert office.client.get("/fee-takings").json()["data"] == []
    assert browser.submit(f"{PAGE}/take", take_form(response.text)).status_code == 303
    assert browser.submit(f"{PAGE}/take", form).status_code == 409


def test_settings_that_are_missing_are_named(office: FeeOffice, sign_in: Callable[..., Browser]) -> None:
    office.set(fee_item_number=None, fee_provider_id=None)
    browser = sign_in()
    page = browser.get(PAGE).text
    assert "Support item isn’t set." in page
    assert "Your office among the providers isn’t set." in page
    assert f'<a href="{SETTINGS}">Open the settings of fees</a>' in page


def test_an_owner_sets_the_item_and_the_provider(office: FeeOffice, sign_in: Callable[..., Browser]) -> None:
    office.set(fee_item_number=None, fee_provider_id=None)
    browser = sign_in()
    described = "Fees The support item of your own fee, and your office as a provider"  # what the page lets them choose
    assert described in main_text(browser.get("/console/settings").text)
    assert "Harbour Plans" in browser.get(SETTINGS).text
    item = FEE_ITEM["Support Item Number"]
    form = {"fee_item_number": item, "fee_provider_id": office.own_provider}
    for wrong in ({"fee_item_number": "14_999"}, {"fee_provider_id": office.provider}, {"fee_item_number": "a b"}):
        assert browser.submit(SETTINGS, form | wrong).status_code == 422
    assert browser.submit(SETTINGS, form).status_code == 303
    page = browser.get(SETTINGS).text
    assert "Settings saved." in page
    assert f"In the catalogue: {FEE_ITEM['Support Item Name']}" in page
    office.managed()
    assert office.made()["count"] == 1
