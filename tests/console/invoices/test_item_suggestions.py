"""The support catalogue in the console: suggestions and sums of the form, and the page of an invoice."""

from collections.abc import Iterator

import pytest

from support.catalogues import THERAPY, import_catalogue
from support.client import Client
from support.cluster import SharedCluster
from support.console import Browser, main_text
from support.server import RunningServer

ITEM = "15_056_0128_1_3"
NAME = "Invented therapy - Physical Sample"


@pytest.fixture(scope="module")
def server(cluster: SharedCluster) -> Iterator[RunningServer]:
    """A server on a database of its own, with a catalogue."""
    dsn = cluster.new_database()
    import_catalogue(dsn, THERAPY | {"WA": "$200.00"})
    running = RunningServer(dsn).start()
    yield running
    running.stop()
    cluster.drop(dsn)


@pytest.fixture
def participant_id(client: Client) -> str:
    person = {"first_name": "Ann", "last_name": "Lee", "participant_number": "430205409", "state": "wa"}
    created: str = client.create("/participants", person)["id"]
    return created


def test_suggestions_have_the_price_limit_for_the_participant(owner: Browser, participant_id: str) -> None:
    query = f"/console/search/suggest?kind=support_item&q=15_05&participant={participant_id}"
    assert owner.get(f"{query}&on=1/8/2026").json() == {
        "candidates": [
            {
                "id": ITEM,
                "label": ITEM,
                "detail": f"{NAME} · per hour, up to $200.00",
                "is_similar": False,
                "price": "$200.00",
            }
        ]
    }
    assert owner.get(f"{query}&on=1/6/2026").json() == {"candidates": []}
    unknown = owner.get("/console/search/suggest?kind=support_item&q=physical&on=soon").json()["candidates"]
    assert [(each["id"], each["price"]) for each in unknown] == [(ITEM, "")]  # the states have different prices


def test_the_form_and_the_page_name_the_items_of_lines(owner: Browser, client: Client, participant_id: str) -> None:
    form = {
        "participant": "Ann Lee", "participant_id": participant_id, "invoice_date": "4/11/2026", "payee": "provider",
        "received": "5/11/2026", "line-1-service_item_number": f" {ITEM} ", "line-1-unit_price": "10",
        "line-1-gst_code": "P2", "line-2-service_item_number": ITEM, "line-2-service_date_from": "1/6/2026",
        "line-2-gst_code": "P2",
    }  # fmt: skip
    page = owner.submit("/console/invoices/new/step", form | {"step": "totals"}, page="/console/invoices/new")
    assert page.status_code == 200
    assert f"Line 1: {NAME} (per hour, up to $200.00)" in main_text(page.text)
    assert f"Line 2: {NAME}" not in main_text(page.text)
    saved = owner.submit("/console/invoices/new", form)
    assert saved.status_code == 303
    assert main_text(owner.get(saved.headers["location"]).text).count(NAME) == 1
