"""The warnings of invoices that depend on the support catalogue, over HTTP."""

from collections.abc import Iterator
from typing import Any

import pytest

from support.catalogues import THERAPY, import_catalogue
from support.client import Client
from support.cluster import SharedCluster
from support.factories import create_client
from support.rechecks import recheck_at_once
from support.server import RunningServer

NUMBER = THERAPY["Support Item Number"]
LIMITED = THERAPY | {"Start date": "20260101", "End Date": "20260630", "NSW": "$49.99"}


@pytest.fixture
def own_server(cluster: SharedCluster) -> Iterator[RunningServer]:
    """A server on a database of its own, without a catalogue."""
    dsn = cluster.new_database()
    running = RunningServer(dsn).start()
    yield running
    running.stop()
    cluster.drop(dsn)


@pytest.fixture
def client(own_server: RunningServer) -> Iterator[Client]:
    created = own_server.run(create_client(own_server))
    yield created
    created.http.close()


def test_the_catalogue_limits_prices_and_days(own_server: RunningServer, client: Client) -> None:
    person = client.create("/participants", {"state": "NSW"})["id"]
    provider = client.create("/providers", {"abn": "51824753556"})["id"]

    def create(day: int, month: int = 3, item: str = NUMBER) -> Any:
        line = {
            "service_item_number": item, "service_date_from": f"2026-{month:02}-{day:02}", "quantity": 2,
            "unit_price": 50, "total_price": 100,
        }  # fmt: skip
        own = {"invoice_number": f"{item} {month} {day}", "invoice_date": "2026-07-05", "total": 100}
        references = {"participant_id": person, "pm_provider_id": provider}
        return client.create("/invoices?include=warnings", own | references | {"line_items": [line]})

    before, malformed = create(1), create(2, item="X")
    assert (before["errors"], malformed["state_management"]["errors"]) == (False, ["check_item_code"])
    import_catalogue(own_server.dsn, LIMITED)
    limited = create(3)
    [fact] = [each for each in limited["warnings"] if each["code"] == "price_above_limit"]
    assert (fact["expected"], fact["found"], fact["level"]) == (49.99, 50, "warn")
    assert fact["line_id"] == limited["line_items"][0]["id"]
    assert create(1, month=7)["state_management"]["errors"] == ["item_not_in_force"]
    assert create(4, item="Y")["state_management"]["errors"] == ["check_item_code", "unknown_item"]
    client.put(f"/participants/{person}", {"remoteness": "remote"})
    assert create(5)["errors"] is False

    def errors(invoice: Any) -> list[str]:
        return client.get(f"/invoices/{invoice['id']}").json()["state_management"]["errors"]

    # The check in the background knows the catalogue, and that the participant has another limit.
    recheck_at_once(own_server)
    assert [errors(each) for each in (malformed, limited, before)] == [["check_item_code", "unknown_item"], [], []]
