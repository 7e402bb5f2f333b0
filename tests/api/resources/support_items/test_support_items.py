"""The list of support items: the versions in force on a day, filters, cursors, and look-ups of numbers on days."""

from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from plankeeper.resources.support_items import store
from support.catalogues import THERAPY, import_catalogue
from support.client import Client
from support.cluster import SharedCluster
from support.factories import create_client
from support.server import RunningServer

ITEMS = [
    {"Support Item Number": "07_001_0106_8_3", "Support Item Name": "Help 100%", "Support Category Number": "7"},
    {"Start date": "20250701", "End Date": "20260630", "ACT": "$180.00"},
    {},
    {"Support Item Number": "15_057", "Support Item Name": "Sample Ünit", "Support Category Number (PACE)": "21"},
    {"Support Item Number": "SAMPLE WORDS", "Start date": "20270101", "Support Item Name": "A later item"},
]  # fmt: skip


@pytest.fixture(scope="module")
def catalogue_server(cluster: SharedCluster) -> Iterator[RunningServer]:
    """A server on a database of its own: its plan managers share the catalogue."""
    dsn = cluster.new_database()
    import_catalogue(dsn, *(THERAPY | each for each in ITEMS))
    running = RunningServer(dsn).start()
    yield running
    running.stop()
    cluster.drop(dsn)


@pytest.fixture(scope="module")
def client(catalogue_server: RunningServer) -> Iterator[Client]:
    created = catalogue_server.run(create_client(catalogue_server))
    yield created
    created.http.close()


def numbers(client: Client, **query: Any) -> list[str]:
    response = client.get("/support-items", **query)
    assert response.status_code == 200, response.text
    return [each["support_item_number"] for each in response.json()["data"]]


def test_an_item_is_shown_as_imported(client: Client) -> None:
    states = dict.fromkeys(("ACT", "NSW", "NT", "QLD", "SA", "TAS", "VIC", "WA"), 193.99)
    assert client.get("/support-items", on="2026-08-01", limit=1, offset=1).json() == {
        "data": [
            {
                "support_item_number": "15_056_0128_1_3",
                "start_date": "2026-07-01",
                "end_date": None,
                "name": "Invented therapy - Physical Sample",
                "registration_group_number": "0128",
                "registration_group_name": "Therapeutic Samples",
                "category": 15,
                "pace_category": 15,
                "category_name": "Sample Daily Living",
                "pace_category_name": "Sample Daily Living (PACE)",
                "unit": "H",
                "is_quote_required": False,
                "type": "Price Limited Supports",
                "has_price_limit": True,
                "price_limits": states | {"Remote": 271.59, "Very Remote": 290.99},
                "allows_non_face_to_face": True,
                "allows_provider_travel": True,
                "allows_short_notice_cancellations": True,
                "allows_ndia_requested_reports": True,
                "allows_irregular_sil": False,
            }
        ],
        "pagination": {"limit": 1, "offset": 1, "has_more": True, "total": 3, "next_cursor": None},
    }


def test_the_items_are_those_in_force_on_the_day(client: Client) -> None:
    assert numbers(client, on="2025-06-30") == []
    assert numbers(client, on="2026-06-30") == ["15_056_0128_1_3"]
    assert numbers(client, on="2026-07-01") == ["07_001_0106_8_3", "15_056_0128_1_3", "15_057"]
    assert numbers(client, on="2027-01-01") == ["07_001_0106_8_3", "15_056_0128_1_3", "15_057", "SAMPLE WORDS"]
    assert numbers(client)[:3] == ["07_001_0106_8_3", "15_056_0128_1_3", "15_057"]  # today
    [old] = client.get("/support-items", on="2026-06-30").json()["data"]
    assert (old["end_date"], old["price_limits"]["ACT"]) == ("2026-06-30", 180)


def test_filters_find_words_and_categories(client: Client) -> None:
    day = {"on": "2026-08-01"}
    assert numbers(client, q="PHYSICAL therapy", **day) == ["15_056_0128_1_3"]
    assert numbers(client, q="15_05", **day) == ["15_056_0128_1_3", "15_057"]
    assert numbers(client, q="15_056 ünit", **day) == []
    assert numbers(client, q="100%", **day) == ["07_001_0106_8_3"]
    assert numbers(client, q="%", **day) == ["07_001_0106_8_3"]
    assert numbers(client, q="1_3", **day) == ["15_056_0128_1_3"]
    assert numbers(client, category=15, **day) == ["07_001_0106_8_3", "15_056_0128_1_3", "15_057"]  # also of PACE plans
    assert numbers(client, category=7, **day) == ["07_001_0106_8_3"]
    assert numbers(client, category=21, **day) == ["15_057"]
    errors = client.get("/support-items?category=0&q=%20&on=2026-02-30").json()["errors"]
    assert sorted(each["field"] for each in errors) == ["category", "on", "q"]


def test_a_cursor_is_a_number(client: Client) -> None:
    found, after = list[str](), "0"
    while after:
        page = client.get("/support-items", after=after, limit=2, on="2027-01-01").json()
        found += [each["support_item_number"] for each in page["data"]]
        after = page["pagination"]["next_cursor"]
    assert found == ["07_001_0106_8_3", "15_056_0128_1_3", "15_057", "SAMPLE WORDS"]
    assert numbers(client, after="15_056", on="2027-01-01") == ["15_056_0128_1_3", "15_057", "SAMPLE WORDS"]


def test_numbers_are_looked_up_on_days(catalogue_server: RunningServer) -> None:
    number, days = "15_056_0128_1_3", [date(2025, 6, 30), date(2026, 6, 30), date(2026, 7, 1)]
    wanted = [*((number, each) for each in days), ("15_057", days[1]), ("unknown", days[2])]
    found = catalogue_server.run(store.get_in_force(catalogue_server.db, wanted))
    limits = {key: each.price_limits.act if each.price_limits else None for key, each in found.items()}
    assert limits == {(number, days[1]): Decimal("180.00"), (number, days[2]): Decimal("193.99")}
    known = catalogue_server.run(store.list_known(catalogue_server.db, [number, "unknown", "SAMPLE WORDS"]))
    assert sorted(known) == [number, "SAMPLE WORDS"]
    assert catalogue_server.run(store.get_catalogue(catalogue_server.db)).revision == 1


def test_budgets_use_the_category_on_the_day_of_the_service(client: Client) -> None:
    """Without a catalogue, the category is the beginning of the number: `15`."""
    participant_id = client.create("/participants", {})["id"]
    components = [
        {"name": f"Category {each}", "kind": "stated", "categories": [each], "amount": 1000} for each in (15, 21)
    ]
    dates = {"start_date": "2026-07-01", "end_date": "2027-06-30"}
    path = f"/participants/{participant_id}/plans"
    plan = client.create(path, dates | {"components": components})
    for day, price in (("2026-06-30", 1), ("2026-07-01", 20), ("2026-08-01", 300)):
        line = {"service_item_number": " 15_057 ", "service_date_from": day, "quantity": 1, "unit_price": price}
        invoice = {"participant_id": participant_id, "invoice_date": "2026-09-01", "line_items": [line]}
        client.post("/invoices", invoice | {"invoice_number": day}).raise_for_status()
    assert waiting(client, path) == {"Category 15": 320, "Category 21": 0}
    client.put(f"{path}/{plan['id']}", {"is_pace_plan": True}).raise_for_status()
    assert waiting(client, path) == {"Category 15": 0, "Category 21": 320}


def waiting(client: Client, path: str) -> dict[str, float]:
    [plan] = client.get(path, on="2027-06-30").json()["data"]
    return {each["name"]: each["waiting"] for each in plan["components"]}
