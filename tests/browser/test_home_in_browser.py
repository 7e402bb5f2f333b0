"""Home in a real browser, with and without JavaScript."""

from collections.abc import Callable
from datetime import UTC, datetime, time, timedelta
from typing import Any

from uuid_utils.compat import uuid7

from support.chromium import click
from support.client import Client
from support.console import LoadCounter
from support.server import RunningServer


def create_work(server: RunningServer, client: Client, import_rows: Callable[..., Any]) -> None:
    """Two plans that need attention, two invoices with the same number, and one to approve."""
    zone = server.settings.time_zone
    today = datetime.now(zone).date()
    ending, ended = (
        client.create(
            "/participants",
            {
                "first_name": name,
                "status": "Active",
                "plan_start_date": "2020-01-01",
                "plan_end_date": str(today + timedelta(days=days)),
            },
        )["id"]
        for name, days in (("Ann", 7), ("Ben", -7))
    )
    provider = client.create("/providers", {"entity_name": "Osprey"})["id"]
    line = {"service_item_number": "01_011_0107_1_1", "quantity": 1, "unit_price": 100, "total_price": 100}
    invoices = [
        {
            "id": str(uuid7()), "invoice_number": number, "invoice_date": str(today - timedelta(days=days)),
            "total": 100, "tax": 0, "subtotal": 100, "participant_id": participant, "pm_provider_id": provider,
            "claim_status": claim, "approval_status": approval, "line_items": [line],
            "created_at": datetime.combine(today - timedelta(days=days), time(12), zone).astimezone(UTC).isoformat(),
        }
        for number, participant, claim, approval, days in (
            ("INV-1", ending, "paid", "approved", 20),
            ("INV-1", ending, "on_hold", "approved", 10),
            ("INV-2", ended, "new", "pending", 3),
        )
    ]  # fmt: skip
    report = import_rows(client, "invoices", invoices)
    assert not report.errors, report.errors


def tiles_of(page: Any) -> dict[str, str]:
    """The tiles that need attention: the text of each by its label."""
    texts = [each.inner_text().split("\n") for each in page.locator(".tiles a").all()]
    return {label: " ".join(each for each in more if each) for label, *more in texts}


def test_what_needs_attention_is_on_the_first_page(
    visitor: Any, server: RunningServer, client: Client, import_rows: Callable[..., Any]
) -> None:
    create_work(server, client, import_rows)
    loads = LoadCounter(visitor)
    visitor.goto("/console")
    assert tiles_of(visitor) == {
        "Invoices on hold": "1 $100.00 · oldest 10 days ago",
        "Waiting for approval": "1 $100.00 · oldest 3 days ago",
        "Late to claim": "1 $100.00 · oldest 10 days ago",
        "Plans ending in 30 days": "1",
        "Plans expired, still active": "1",
        "No account manager": "2",
    }
    warning = visitor.get_by_role("row").filter(has=visitor.get_by_role("link", name="Possible duplicate"))
    assert warning.inner_text().split("\t") == ["Possible duplicate", "1", "$100.00", "10 days ago"]
    titles = [each.inner_text() for each in visitor.locator(".chart h2").all()]
    assert titles == [
        "Invoices received per week",
        "Unpaid invoices by age",
        "Plans ending per week",
        "Spend by provider, last 90 days",
    ]
    assert loads.count == 1
    click(visitor, "link", "Possible duplicate")
    assert visitor.locator(".list-summary").inner_text() == "1 invoice · $100.00"
    assert loads.count == 2
