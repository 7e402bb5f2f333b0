"""What a statement says about the state of a line."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Literal
from uuid import UUID
from zoneinfo import ZoneInfo

from plankeeper.resources.statements.document import to_document
from plankeeper.resources.statements.schemas import (
    StatementContent,
    StatementLine,
    StatementOffice,
    StatementParticipant,
)

ID = UUID("01900000-0000-7000-8000-000000000001")
Kind = Literal["service", "reimbursement", "fee"]
State = Literal["approved", "partly_approved", "paid"]


def line(kind: Kind, state: State) -> StatementLine:
    return StatementLine(
        line_id=ID, invoice_id=ID, invoice_number="7", kind=kind, service_date=date(2026, 10, 31),
        service_date_to=None, provider="Harbour Plans", item=None, description="Plan management", component_id=None,
        amount=Decimal(100), spent=Decimal(100), waiting=Decimal(0), state=state, reason=None, adjustments=[],
    )  # fmt: skip


def test_nobody_else_is_paid_for_the_offices_own_fee() -> None:
    states: tuple[State, ...] = ("approved", "partly_approved", "paid")
    kinds: tuple[Kind, ...] = ("service", "fee")
    content = StatementContent(
        id=ID, participant_id=ID, plan_id=ID, previous_id=None, month="2026-10", plan_start_date=date(2026, 7, 1),
        plan_end_date=date(2027, 6, 30), participant=StatementParticipant(name="Robin Hale", ndis_number=None),
        office=StatementOffice(name="Harbour Plans", abn=None, email=None, phone=None), components=[],
        lines=[line(kind, state) for kind in kinds for state in states], earlier_changes=[],
        created_at=datetime(2026, 11, 1, tzinfo=UTC), created_by="Alex",
    )  # fmt: skip
    assert [each.state for each in to_document(content, ZoneInfo("Australia/Sydney")).lines] == [
        "The NDIS has paid. We pay the bill next", "The NDIS has paid a part. We pay that part next", "Paid",
        "The NDIS has paid", "The NDIS has paid a part", "Paid",
    ]  # fmt: skip
