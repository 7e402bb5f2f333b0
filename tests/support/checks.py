"""Invoices as the checks see them: one without warnings, and any."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from hypothesis import strategies as st
from msgspec.structs import replace

from plankeeper.resources.invoices.checks import CheckInput, CheckLine
from plankeeper.resources.plans.schemas import PlanRow

TODAY = date(2026, 10, 30)
ITEM = "01_011_0107_1_1"
PARTICIPANT_ID, PROVIDER_ID, PLAN_ID, LINE_ID = (UUID(int=number) for number in range(1, 5))


def plan(start: date | None, end: date | None, **values: Any) -> PlanRow:
    return PlanRow(id=PLAN_ID, participant_id=PARTICIPANT_ID, start_date=start, end_date=end, **values)


def line(
    quantity: str | None = "2", unit_price: str | None = "50.00", total_price: str | None = "100.00", **values: Any
) -> CheckLine:
    """A line with its amounts as texts."""
    amounts = [None if each is None else Decimal(each) for each in (quantity, unit_price, total_price)]
    item = values.pop("service_item_number", ITEM)
    return replace(CheckLine(*amounts, item, is_deleted=False, id=LINE_ID, gst_code="P1"), **values)


VALID_INVOICE = CheckInput(
    invoice_number="INV-1",
    invoice_date=date(2026, 10, 1),
    total=Decimal("110.00"),
    tax=Decimal("10.00"),
    subtotal=Decimal("100.00"),
    received_at=datetime(2026, 10, 2, tzinfo=UTC),
    is_deleted=False,
    wont_claim=False,
    participant_id=PARTICIPANT_ID,
    participant_status="Active",
    date_ceased=None,
    participant_state="NSW",
    remoteness=None,
    managed_from=None,
    managed_until=None,
    deceased_on=None,
    plans=[plan(date(2026, 1, 1), date(2026, 12, 31))],
    pm_provider_id=PROVIDER_ID,
    provider_exists=True,
    provider_abn="51 824 753 556",
    provider_active=True,
    ambiguous_participant_number=None,
    ambiguous_provider_abn=None,
    has_catalogue=False,
    prices_include_gst=None,
    levels=[],
    participant_alerts=[],
    provider_alerts=[],
    has_same_document=False,
    has_earlier_duplicate=False,
    has_earlier_invoice=True,
    lines=[line()],
)

DAYS = st.none() | st.dates(date(2023, 1, 1), date(2027, 12, 31))


def check_lines(amounts: Any, texts: Any) -> Any:
    """Any lines, with these amounts, and with these texts as numbers of items."""
    return st.builds(
        CheckLine,
        amounts,
        amounts,
        amounts,
        texts,
        st.booleans(),
        service_date_from=DAYS,
        service_date_to=DAYS,
        gst_code=st.sampled_from(["P1", "P2", "P5"]),
        is_known_item=st.booleans(),
        has_duplicate=st.booleans(),
    )


def check_inputs(amounts: Any, texts: Any) -> Any:
    """Any invoices, with these amounts, and with these texts as numbers of items and of the invoice."""
    return st.builds(
        CheckInput,
        invoice_number=texts,
        invoice_date=DAYS,
        total=amounts,
        tax=amounts,
        subtotal=amounts,
        received_at=st.just(VALID_INVOICE.received_at),
        is_deleted=st.booleans(),
        wont_claim=st.booleans(),
        participant_id=st.sampled_from([None, PARTICIPANT_ID]),
        participant_status=st.sampled_from([None, "Active", "Inactive", "Lead"]),
        date_ceased=DAYS,
        participant_state=st.sampled_from([None, "NSW"]),
        remoteness=st.sampled_from([None, "remote", "very_remote"]),
        managed_from=DAYS,
        managed_until=DAYS,
        deceased_on=DAYS,
        plans=st.lists(st.builds(plan, DAYS, DAYS), max_size=3),
        pm_provider_id=st.sampled_from([None, PROVIDER_ID]),
        provider_exists=st.booleans(),
        provider_abn=st.sampled_from([None, "", "51824753556", "51824753557"]),
        provider_active=st.booleans(),
        ambiguous_participant_number=st.sampled_from([None, "430205409"]),
        ambiguous_provider_abn=st.sampled_from([None, "51824753556"]),
        has_catalogue=st.booleans(),
        prices_include_gst=st.none() | st.booleans(),
        levels=st.just([]),
        participant_alerts=st.lists(st.text(max_size=200), max_size=2),
        provider_alerts=st.lists(st.text(max_size=200), max_size=2),
        has_same_document=st.booleans(),
        has_earlier_duplicate=st.booleans(),
        has_earlier_invoice=st.booleans(),
        lines=st.lists(check_lines(amounts, texts), max_size=4),
    )
