"""The tabs of a participant: the header that they share, overview, invoices, team."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from html import unescape
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from support.client import Client
from support.console import Browser
from support.server import RunningServer, wait_until

PAGE = "/console/participants"
INVOICE = {"tax": 0, "subtotal": 100, "total": 100, "line_items": [{"total_price": 100}]}


@pytest.fixture
def api(new_client: Callable[..., Client], plan_manager_id: UUID) -> Client:
    return new_client(plan_manager_id)


def text_of_page(html: str) -> str:
    """The text of a page's main part, with single spaces."""
    main = html.replace("<wbr>", "").partition("<main")[2].partition(">")[2].partition("</main>")[0]
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", main))).strip()


def test_the_header_tells_who_the_participant_is_and_how_the_plan_stands(
    server: RunningServer, owner: Browser, api: Client, import_rows: Callable[..., Any]
) -> None:
    today = datetime.now(server.settings.time_zone).date()
    start, end = today - timedelta(days=99), today + timedelta(days=100)
    person = api.create("/participants", {
        "first_name": "William", "last_name": "Thompson", "preferred_name": "Bee", "participant_number": "430205409",
        "date_of_birth": today.replace(year=today.year - 40, day=1).isoformat(), "is_pace_plan": True,
        "plan_start_date": start.isoformat(), "plan_end_date": end.isoformat(), "phone_number": "0491571266",
    })["id"]  # fmt: skip
    provider = api.create("/providers", {"entity_name": "Amber & Sons"})["id"]
    rows = [
        {"id": str(uuid7()), "invoice_number": number, "invoice_date": day.isoformat(), "participant_id": person,
         "pm_provider_id": provider, **INVOICE, **more}
        for number, day, more in (
            ("IN", today, {}), ("WRONG", end + timedelta(days=1), {}), ("GONE", today, {"is_deleted": True}),
        )
    ]  # fmt: skip
    assert not import_rows(api, "invoices", rows).errors
    page = owner.get(f"{PAGE}/{person}").text
    shown = text_of_page(page)
    assert "William Thompson “Bee” NDIS 430 205 409 Copy 40 years old No account manager" in shown
    assert "Active" not in shown.partition("Overview")[0]
    assert "Plan PACE 100 days left" in shown
    assert 'class="passed" width="50"' in page
    assert "Contact Bee in person 0491 571 266" in shown
    assert 'href="tel:0491571266"' in page
    assert "Warnings 2 invoices with open warnings Invoices of this plan $100.00 1 invoice" in shown
    assert "Overview Invoices 2 Team 0 Activity" in shown
    kim = {"first_name": "Kim", "last_name": "Ray", "email": "kim@example.com", "contact_priority": 1, "role": "Aunt"}
    api.create(f"/participants/{person}/team-members", kim)
    for path in ("", "/team"):
        page = owner.get(f"{PAGE}/{person}{path}").text
        assert "Primary contact Kim Ray Aunt kim@example.com" in text_of_page(page)
        assert 'href="mailto:kim%40example.com"' in page


def test_the_overview_shows_what_is_set_and_offers_the_rest(owner: Browser, api: Client) -> None:
    person = api.create("/participants", {"first_name": "Ann", "city": "Hobart", "postcode": "7000"})["id"]
    shown = text_of_page(owner.get(f"{PAGE}/{person}").text)
    assert "Address Hobart 7000 Add service region" in shown
    assert "Contact Change Receives statements No Statements by post No Add phone, email" in shown
    assert "Account manager Change Add account manager" in shown
    assert "not set" not in shown
    assert "Exit" not in shown
    api.put(f"/participants/{person}", {"status": "Inactive", "date_ceased": "2026-01-05"})
    shown = text_of_page(owner.get(f"{PAGE}/{person}").text)
    assert "Ann Inactive" in shown
    assert "Exit Change Exit date 5 Jan 2026 Add exit reason, specific exit reason, reason details" in shown


def test_the_overview_shows_the_latest_invoices_and_changes(
    owner: Browser, api: Client, import_rows: Callable[..., Any]
) -> None:
    person = api.create("/participants", {"first_name": "Ann"})["id"]
    assert "No invoices yet." in owner.get(f"{PAGE}/{person}").text
    rows = [
        {"id": str(uuid7()), "invoice_number": f"N{number}", "participant_id": person, "claim_status": "paid",
         "created_at": f"2026-01-{number + 1:02}T00:00:00Z", **INVOICE}
        for number in range(7)
    ]  # fmt: skip
    assert not import_rows(api, "invoices", rows).errors
    wait_until(lambda: "Participant created" in owner.get(f"{PAGE}/{person}").text)
    page = owner.get(f"{PAGE}/{person}").text
    assert re.findall(r'<a class="break" href="/console/invoices/[^"]+">(N\d)</a>', page) == [
        f"N{number}" for number in (6, 5, 4, 3, 2)
    ]
    assert "All 7" in page
