"""Flagged lines are new again when what kept their invoice out of claims ends."""

from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID

import pytest

from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.resources.invoices import service
from plankeeper.resources.invoices.warnings import Level
from plankeeper.resources.office_settings import service as office_settings
from support import factories
from support.client import Client
from support.pdf_files import text_pdf
from support.server import RunningServer
from support.webhooks import wait_for_events

Put = Callable[..., str]
LINE = factories.INVOICE_LINE
FLAGGED = {"claim_status": "flagged", "line_items": [LINE | {"claim_status": "flagged"}]}
REASON = {"reason": "Known to the office"}


@pytest.fixture
def import_invoice(server: RunningServer, api: Client, record_ids: dict[str, str]) -> Put:
    """Import an invoice that was left out of a claim."""
    return partial(factories.import_invoice, server, api, record_ids, **FLAGGED)


@pytest.fixture
def act(api: Client) -> Callable[..., list[str]]:
    """Act on an invoice: its state, and those of its lines."""

    def send(invoice_id: str, action: str, **body: str) -> list[str]:
        response = api.post(f"/invoices/{invoice_id}/{action}", body)
        assert response.status_code == 200, response.text
        return states(response.json())

    return send


def states(invoice: dict[str, Any]) -> list[str]:
    return [invoice["claim_status"], *(each["claim_status"] for each in invoice["line_items"])]


def stored(api: Client, invoice_id: str) -> list[str]:
    return states(api.get(f"/invoices/{invoice_id}").json())


def test_ignoring_the_last_warning_ends_the_flag(
    api: Client, import_invoice: Put, act: Callable[..., list[str]]
) -> None:
    ident = import_invoice(total=99, tax=7)
    assert codes(api, ident) == ["check_total", "check_gst"]
    assert act(ident, "ignore-warning", code="check_total", **REASON) == ["flagged", "flagged"]
    assert act(ident, "ignore-warning", code="check_gst", **REASON) == ["new", "new"]
    assert stored(api, ident) == ["new", "new"]
    assert api.get("/invoices", claim_status="flagged", offset=0).json()["data"] == []
    events = wait_for_events(api, "invoice.*", 3)
    assert [each["type"] for each in events][1:] == ["invoice.warning_ignored"] * 2


def codes(api: Client, invoice_id: str) -> list[str]:
    return api.get(f"/invoices/{invoice_id}").json()["state_management"]["errors"]


def test_a_release_ends_the_flag_unless_something_else_prevents_claims(
    api: Client, import_invoice: Put, act: Callable[..., list[str]]
) -> None:
    free, other = import_invoice(), import_invoice(invoice_number="INV-2", pm_provider_id=None)
    for ident in (free, other):
        assert act(ident, "hold", **REASON) == ["on_hold", "flagged"]
    assert act(free, "release") == ["new", "new"]
    assert act(other, "release") == ["flagged", "flagged"]
    assert stored(api, free) == ["new", "new"]


def test_an_approval_ends_the_flag(import_invoice: Put, act: Callable[..., list[str]]) -> None:
    ident = import_invoice(approval_status="pending")
    assert act(ident, "hold", **REASON) == ["on_hold", "flagged"]
    assert act(ident, "release") == ["flagged", "flagged"]
    assert act(ident, "approve") == ["new", "new"]
    rejected = import_invoice(invoice_number="INV-2", approval_status="pending")
    assert act(rejected, "reject", **REASON) == ["flagged", "flagged"]


def test_a_reopened_invoice_is_claimed_again(import_invoice: Put, act: Callable[..., list[str]]) -> None:
    ident = import_invoice()
    assert act(ident, "wont-claim", **REASON) == ["flagged", "flagged"]
    assert act(ident, "reopen") == ["new", "new"]


def test_a_flag_without_a_known_cause_stays(import_invoice: Put, act: Callable[..., list[str]], api: Client) -> None:
    ident = import_invoice()
    api.put(f"/invoices/{ident}", {"due_date": "2026-02-01"})
    assert act(ident, "request-approval") == ["flagged", "flagged"]


def test_lines_that_were_imported_as_on_hold_are_new_after_the_release(
    api: Client, import_invoice: Put, act: Callable[..., list[str]]
) -> None:
    held = LINE | {"claim_status": "on_hold"}
    ident = import_invoice(claim_status="on_hold", line_items=[held, held | {"is_deleted": True}])
    assert act(ident, "release") == ["new", "new", "on_hold"]
    assert stored(api, ident) == ["new", "new", "on_hold"]


def test_another_document_ends_the_flag_of_both_invoices_that_had_the_same(api: Client, import_invoice: Put) -> None:
    first, second = import_invoice(), import_invoice(invoice_number="INV-2")
    for ident in (first, second):
        factories.upload_document(api, ident, text_pdf(pages=1))
    assert [codes(api, each) for each in (first, second)] == [["same_document"]] * 2
    assert [stored(api, each) for each in (first, second)] == [["flagged", "flagged"]] * 2
    factories.upload_document(api, second, text_pdf(pages=2))
    assert [codes(api, each) for each in (first, second)] == [[], []]
    assert [stored(api, each) for each in (first, second)] == [["new", "new"]] * 2


def recheck(server: RunningServer, api: Client, invoice_id: str, *, levels_changed: bool = False) -> None:
    async def check() -> None:
        async with server.db.transaction() as tx:
            ctx = WriteContext(tx, UUID(api.plan_manager_id), server.settings, SYSTEM)
            await service.recheck_others(ctx, [UUID(invoice_id)], levels_changed=levels_changed)

    server.run(check())


def test_a_recheck_ends_the_flag_when_the_warning_is_gone(
    server: RunningServer, api: Client, record_ids: dict[str, str], import_invoice: Put
) -> None:
    path = f"/participants/{record_ids['participant']}"
    assert api.put(path, {"status": "Inactive"}).status_code == 200
    ident = import_invoice()
    recheck(server, api, ident)
    assert (codes(api, ident), stored(api, ident)) == (["inactive_participant"], ["flagged", "flagged"])
    assert api.put(path, {"status": "Active"}).status_code == 200
    recheck(server, api, ident)
    assert (codes(api, ident), stored(api, ident)) == ([], ["new", "new"])


def test_another_level_ends_the_flag(server: RunningServer, api: Client, import_invoice: Put) -> None:
    ident = import_invoice(total=99)
    recheck(server, api, ident, levels_changed=False)
    assert stored(api, ident) == ["flagged", "flagged"]
    set_level(server, api, "block")
    recheck(server, api, ident, levels_changed=True)
    assert stored(api, ident) == ["flagged", "flagged"]
    set_level(server, api, "warn")
    recheck(server, api, ident, levels_changed=True)
    assert (codes(api, ident), stored(api, ident)) == (["check_total"], ["new", "new"])


def set_level(server: RunningServer, api: Client, level: Level) -> None:
    async def save() -> None:
        async with server.db.transaction() as tx:
            ctx = WriteContext(tx, UUID(api.plan_manager_id), server.settings, SYSTEM)
            await office_settings.set_warnings(ctx, {"check_total": level}, duplicates_need_participant=False)

    server.run(save())
