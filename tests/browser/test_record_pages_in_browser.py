"""Pages of records in a real browser, with and without JavaScript: everything about one participant."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from uuid_utils.compat import uuid7

from support.chromium import click, copy_text
from support.client import Client
from support.console import Account, LoadCounter, open_signed_in
from support.server import RunningServer


def test_everything_about_a_participant_is_one_page_away(
    server: RunningServer, visitor: Any, client: Client, import_rows: Callable[..., Any]
) -> None:
    today = datetime.now(server.settings.time_zone).date()
    person = client.create("/participants", {
        "first_name": "Róisín", "last_name": "Kavanagh", "participant_number": "430205409",
        "plan_start_date": (today - timedelta(days=100)).isoformat(),
        "plan_end_date": (today + timedelta(days=12)).isoformat(),
    })["id"]  # fmt: skip
    provider = client.create("/providers", {"entity_name": "Amber & Sons", "abn": "51824753556"})["id"]
    contact = {"first_name": "Charlotte", "email": "c@example.com", "contact_priority": 1, "phone_number": "0491577426"}
    client.create(f"/participants/{person}/team-members", contact)
    line = {"service_item_number": "01_011_0107_1_1", "quantity": "2.25", "unit_price": "219.80"}
    rows = [
        {"id": str(uuid7()), "invoice_number": number, "invoice_date": today.isoformat(), "participant_id": person,
         "pm_provider_id": provider, "total": total, "line_items": [line | {"total_price": total}]}
        for number, total in (("INV-1", "494.55"), ("INV-2", "495.18"))
    ]  # fmt: skip
    assert not import_rows(client, "invoices", rows).errors
    visitor.goto("/console/participants")
    loads = LoadCounter(visitor)
    click(visitor, "link", "Kavanagh, Róisín", exact=False)
    for text in ("12 days left", "Charlotte", "0491 577 426", "1 invoice", "$989.73"):
        assert visitor.get_by_text(text, exact=True).first.is_visible()
    click(visitor, "link", "Invoices 2", exact=False)
    assert visitor.get_by_role("heading", level=1).inner_text() == "Róisín Kavanagh"
    assert visitor.get_by_role("heading", name="Invoices by month").is_visible()
    click(visitor, "link", "Team 1", exact=False)
    assert visitor.get_by_role("cell", name="c@example.com").is_visible()
    click(visitor, "link", "Timeline", exact=False)
    assert visitor.get_by_role("heading", level=1).inner_text() == "Róisín Kavanagh"
    entries = visitor.locator(".timeline > li")
    for text in ("Invoice INV-2", "Charlotte", "Participant added"):  # with what happened in the team
        assert entries.filter(has_text=text).first.is_visible(), entries.all_inner_texts()
    assert loads.count == 4
    click(visitor, "link", "1 invoice", exact=False)
    click(visitor, "link", "INV-2", exact=False)
    assert visitor.get_by_text("Line 1: 2.25 × $219.80 is $494.55, the invoice says $495.18.").is_visible()
    assert visitor.get_by_text("Expected $494.55").is_visible()


def test_a_number_is_copied_without_spaces(
    chromium: Any, server: RunningServer, new_account: Callable[..., Account], client: Client
) -> None:
    person = client.create("/participants", {"first_name": "Ann", "participant_number": "430205409"})["id"]
    context = chromium.new_context(base_url=server.url, permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    open_signed_in(page, server, new_account("viewer"), f"/console/participants/{person}")
    assert copy_text(page.get_by_role("button", name="Copy NDIS number")) == "Copied"
    assert page.evaluate("navigator.clipboard.readText()") == "430205409"
    context.close()
