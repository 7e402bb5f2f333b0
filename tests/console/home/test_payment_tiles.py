"""Home counts what people who make payments have to do."""

import html
import re
from collections.abc import Callable
from datetime import UTC, datetime
from uuid import UUID

import pytest

from support.client import Client
from support.console import Browser, main_text
from support.payments import PayingOffice
from support.server import RunningServer

TILE = r'<a href="([^"]+)">\s*<span class="tile-label">{}</span>\s*<strong>{}</strong>'


@pytest.fixture
def office(server: RunningServer, plan_manager_id: UUID, new_client: Callable[..., Client]) -> PayingOffice:
    return PayingOffice(server, new_client(plan_manager_id, scopes=("read", "write", "claims", "payments")))


def follow(browser: Browser, label: str, count: int) -> str:
    """The page of a tile with a number."""
    found = re.search(TILE.format(label, count), browser.get("/console").text)
    assert found, f"no tile {label} {count}"
    return main_text(browser.get(html.unescape(found[1])).text)


def test_what_is_to_be_paid_runs_and_returns_are_counted(
    office: PayingOffice, manager: Callable[..., Browser], owner: Browser
) -> None:
    payer, labels = manager("make_payments"), ("Lines to pay", "Payment runs to finish", "Payments returned")
    text = main_text(payer.get("/console").text)
    assert not any(each in text for each in labels)
    first = office.invoice("7.00", "8.00", number="A1")
    held = office.invoice("9.00", number="A2")
    office.client.post(f"/invoices/{held}/hold", {"reason": "A question"}).raise_for_status()
    text = follow(payer, "Lines to pay", 3)
    assert ("$15.00 to 1 payee" in text, "Left out 1 line" in text) == (True, True)
    run = office.run(first, process_date=str(datetime.now(UTC).date()))
    assert run["number"] in follow(payer, "Payment runs to finish", 1)
    follow(owner, "Lines to pay", 1)
    assert "Lines to pay" not in main_text(manager("make_claims").get("/console").text)
    office.act(run, "mark-paid")
    assert "Payment runs to finish" not in main_text(payer.get("/console").text)
    [payment] = office.payments(run)
    body = {"date": run["process_date"], "reason": "Account closed"}
    office.client.post(f"/payment-runs/{run['id']}/payments/{payment['id']}/returned", body).raise_for_status()
    assert "1 payment" in follow(payer, "Payments returned in 30 days", 1)
    follow(payer, "Lines to pay", 3)
