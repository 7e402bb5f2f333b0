"""The rules of approval: what a link belongs to, when people are asked, tokens, and the text of the mail."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec
import pytest
from uuid_utils.compat import uuid7

from plankeeper.access.tokens import hash_token
from plankeeper.core.settings import Settings
from plankeeper.mail.messages import build_message
from plankeeper.resources.invoices.approval import join_token, split_token
from plankeeper.resources.invoices.approval_mails import ApprovalText, approval_text, describe_amount
from plankeeper.resources.invoices.approval_requests import content_hash, is_ready
from plankeeper.resources.invoices.approval_schemas import RequestState
from plankeeper.resources.invoices.schemas import Invoice
from plankeeper.resources.invoices.warnings import CodeLevel

NOW = datetime(2026, 11, 22, 7, 5, tzinfo=UTC)
ID = UUID("019bb4c7-3db8-7618-8e4c-80a0677f8233")
STATE = RequestState(
    ID, ID, None, None, None, None, has_open_links=False, recent_requests=0, last_asked_at=None, levels=[], approvers=[]
)


def line(**values: Any) -> dict[str, Any]:
    names = (
        "service_item_number", "service_date_to", "quantity", "unit_price", "claim_type", "cancellation_reason",
        "component_id", "claim_batch_ref", "claim_number", "paid_amount", "rejection_reason", "payment_ref",
        "closing_reason", "open_claim_batch", "open_payment_run", "amount",
    )  # fmt: skip
    base = {
        "id": str(ID), "invoice": str(ID), "description": "Gardening", "service_date_from": "2026-11-03",
        "total_price": 120, "gst_code": "P2", "claim_status": "new", "is_deleted": False, "created_at": NOW,
        "has_payment": False, "is_rest_waiting": False,
    }  # fmt: skip
    return dict.fromkeys(names) | base | values


def invoice(**values: Any) -> Invoice:
    base: dict[str, Any] = dict.fromkeys(Invoice.__struct_fields__) | {
        "id": str(ID), "plan_manager": str(ID), "total": 120, "claim_status": "new", "approval_status": "pending",
        "created_at": NOW, "errors": False, "state_management": {"errors": [], "ignored_errors": []},
        "is_deleted": False, "wont_claim": False, "is_reimbursement": False, "is_duplicate": False,
        "payee": "provider", "received_at": NOW, "updated_at": NOW, "line_items": [line()], "warnings": [],
    }  # fmt: skip
    return msgspec.convert(base | values, Invoice, strict=False)


@pytest.mark.parametrize(
    "values",
    [{"total": 121}, {"payee": "participant"}, {"pm_provider_id": str(uuid7())}, {"line_items": [line(quantity=3)]}],
)
def test_a_link_belongs_to_what_the_invoice_bills(values: dict[str, Any]) -> None:
    assert content_hash(invoice(**values)) != content_hash(invoice())


@pytest.mark.parametrize(
    "values",
    [
        {"assigned_to": str(uuid7())},
        {"claim_status": "on_hold"},
        {"line_items": [line(claim_status="flagged")]},
        {"total": Decimal(120)},
        {"line_items": [line(), line(is_deleted=True)]},
    ],
)
def test_other_changes_keep_it(values: dict[str, Any]) -> None:
    assert content_hash(invoice(**values)) == content_hash(invoice())


@pytest.mark.parametrize(
    "values, expected",
    [
        ({}, True),
        ({"approval_status": "approved"}, False),
        ({"claim_status": "on_hold"}, False),
        ({"claim_status": "cancelled"}, False),
        ({"claim_status": "partially_paid"}, True),
        ({"claim_status": "partially_paid", "line_items": [line(claim_status="paid")]}, False),
        ({"claim_status": "paid"}, False),
        ({"wont_claim": True}, False),
        ({"is_deleted": True}, False),
        ({"state_management": {"errors": ["check_total"], "ignored_errors": ["check_total"]}}, True),
        ({"state_management": {"errors": ["check_total"], "ignored_errors": []}}, False),
    ],
)
def test_people_are_asked_when_an_invoice_waits_for_nothing_else(values: dict[str, Any], expected: bool) -> None:
    state = msgspec.structs.replace(STATE, levels=[CodeLevel("check_total", "block")])
    assert is_ready(invoice(**values), state) is expected


def test_a_token_names_its_plan_manager() -> None:
    assert split_token(join_token(ID, "secret")) == (ID, hash_token("secret"))
    for text in ("", "x", "z" * 75, "0" * 31):
        assert split_token(text) is None


@pytest.mark.parametrize(
    "amount, expected",
    [(None, "an unknown amount"), (Decimal("1234.5"), "$1,234.50"), (Decimal("-1234.5"), "-$1,234.50")],
)
def test_a_mail_describes_amounts(amount: Decimal | None, expected: str) -> None:
    assert describe_amount(amount) == expected


def test_a_mail_escapes_names_and_keeps_them_on_their_line() -> None:
    name = "<b>Evil</b>\r\nBcc: a@b.example"
    url = "https://plans.example.com/console/approvals/x"
    shown = invoice(line_items=[line(description=name, service_date_from=date(2026, 11, 3))])
    text = approval_text(ApprovalText(url, "Plans & Co", "<i>Prov</i>", "Sam", shown, "tomorrow", is_reminder=False))
    assert text.html
    assert ("<b>" in text.html, "<i>" in text.html, "&lt;b&gt;Evil" in text.html) == (False, False, True)
    assert "Plans &amp; Co" in text.html
    settings = Settings.read({"PLANKEEPER_PUBLIC_URL": "https://plans.example.com"})
    message = build_message(settings, "sam@example.com", text, NOW)
    assert message["Bcc"] is None
    assert [part.get_content_type() for part in message.walk()] == ["multipart/alternative", "text/plain", "text/html"]
