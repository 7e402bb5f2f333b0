"""Which lines can be claimed, and the reason of each line that can't."""

import csv
import io
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, NamedTuple, get_args
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from plankeeper.resources.claims.batch_file import render
from plankeeper.resources.claims.candidates import choose
from plankeeper.resources.claims.eligibility import (
    REASONS,
    UNFLAGGED_REASONS,
    Candidate,
    Office,
    Reason,
    find_reason,
    to_file_row,
)
from support.sweeps import sweep

TODAY = date(2026, 11, 27)
OFFICE = Office("4050000000", prices_include_gst=None, today=TODAY)
LINE = Candidate(
    invoice_id=UUID(int=1), line_id=UUID(int=2), number=1, invoice_number="2026/442", has_siblings=False,
    claim_status="new", is_rest_waiting=False, open_batch=None, is_invoice_deleted=False, settled_status=None,
    wont_claim=False, is_held=False, approval_status="not_required", blocking_codes=[], warned_codes=(),
    ndis_number="430 000 001", item=" 15_056_0128_1_3 ", first_day=date(2026, 11, 2), last_day=date(2026, 11, 2),
    crosses=None, quantity=Decimal("1.5"), unit_price=Decimal("193.99"), net=Decimal("290.99"),
    amount=Decimal("290.99"), paid=None, gst_code="P2", claim_type=None, cancellation_reason=None,
    is_reimbursement=False, provider_abn="89 000 000 019", is_abn_exempt=False,
)  # fmt: skip


class Case(NamedTuple):
    """A change of the line or of the settings that keeps it out."""

    reason: Reason
    line: dict[str, Any]
    office: dict[str, Any] | None = None


CASES = [
    Case("state", {"claim_status": "paid"}),
    Case("state", {"claim_status": "rejected"}),
    Case("state", {"claim_status": "partially_paid"}),
    Case("state", {"open_batch": "B000007"}),
    Case("state", {"is_invoice_deleted": True}),
    Case("state", {"settled_status": "paid"}),
    Case("state", {"settled_status": "cancelled", "claim_status": "on_hold"}),
    Case("wont_claim", {"wont_claim": True}),
    Case("held", {"is_held": True}),
    Case("approval_pending", {"approval_status": "pending"}),
    Case("approval_rejected", {"approval_status": "rejected"}),
    Case("blocking_warning", {"blocking_codes": ["same_document"]}),
    Case("missing_registration_number", {}, {"registration_number": None}),
    Case("missing_registration_number", {}, {"registration_number": "40,5"}),
    Case("missing_ndis_number", {"ndis_number": None}),
    Case("missing_ndis_number", {"ndis_number": "43000000"}),
    Case("missing_item", {"item": " "}),
    Case("invalid_item", {"item": '15,056"'}),
    Case("invalid_item", {"item": "=1+1"}),
    Case("invalid_item", {"item": "1" * 61}),
    Case("missing_service_date", {"first_day": None, "last_day": None}),
    Case("missing_service_date", {"last_day": date(2026, 11, 1)}),
    Case("future_service", {"last_day": TODAY + timedelta(days=1)}),
    Case("across_plans", {"crosses": "plan"}),
    Case("across_funding_periods", {"crosses": "funding period"}),
    Case("inexpressible_quantity", {"quantity": None}),
    Case("inexpressible_quantity", {"quantity": Decimal("1.333")}),
    Case("inexpressible_total", {"unit_price": Decimal("193.98")}),
    Case("inexpressible_total", {"amount": None}),
    Case("zero_or_less", {"amount": Decimal(0)}),
    Case("zero_or_less", {"amount": Decimal("-5.00")}),
    Case("zero_or_less", {"claim_status": "partially_paid", "is_rest_waiting": True, "paid": Decimal("290.99")}),
    Case("missing_abn", {"provider_abn": None}),
    Case("missing_abn", {"provider_abn": "1234"}),
    Case("p1_undecided", {"gst_code": "P1", "amount": Decimal("320.09")}),
]


@sweep("reason, line, office", CASES)
def test_a_line_is_left_out_with_its_reason(
    reason: Reason, line: dict[str, Any], office: dict[str, Any] | None
) -> None:
    found = find_reason(replace(LINE, **line), OFFICE._replace(**(office or {})))
    assert found is not None
    assert found.reason == reason
    assert found.message.endswith(".")


def test_every_reason_has_a_case_and_a_sentence() -> None:
    assert {each.reason for each in CASES} | {"batch_full"} == {*REASONS} == {*get_args(Reason)}
    assert all(each.endswith(".") for each in REASONS.values())


@sweep(
    "change",
    [
        {},
        {"claim_status": "flagged"},
        {"claim_status": "on_hold"},  # as imports have it: only invoices are held
        {"approval_status": "approved"},
        {"warned_codes": ("check_budget",)},
        {"claim_status": "partially_paid", "is_rest_waiting": True, "paid": Decimal(200)},
        {
            "claim_status": "partially_paid",
            "settled_status": "partially_paid",
            "is_rest_waiting": True,
            "paid": Decimal(200),
        },
        {"last_day": TODAY},
    ],
)
def test_a_line_is_claimed(change: dict[str, Any]) -> None:
    assert find_reason(replace(LINE, **change), OFFICE) is None


def test_the_payee_is_an_abn_a_reimbursement_or_exempt() -> None:
    assert LINE.payee_number == "89000000019"
    assert replace(LINE, provider_abn="89-000-000-019").payee_number == "89000000019"
    assert replace(LINE, is_reimbursement=True, provider_abn=None).payee_number == "REIMB"
    assert replace(LINE, is_abn_exempt=True, provider_abn=None).payee_number == "EXCLS"
    assert replace(LINE, is_abn_exempt=True).payee_number == "89000000019"


def test_a_row_has_the_values_of_the_line() -> None:
    row = to_file_row(LINE, OFFICE, "2026/442")
    assert (row.ndis_number, row.support_number, row.quantity, row.unit_price) == (
        "430000001", "15_056_0128_1_3", "1.50", "193.99",
    )  # fmt: skip
    assert (row.hours, row.claim_type, row.cancellation_reason, row.provider_abn) == ("", "", "", "89000000019")
    assert to_file_row(replace(LINE, ndis_number="430-000-001"), OFFICE, "1").ndis_number == "430000001"
    cancelled = replace(LINE, claim_type="CANC", cancellation_reason="NSDH")
    assert to_file_row(cancelled, OFFICE, "1").cancellation_reason == "NSDH"
    assert to_file_row(replace(cancelled, claim_type="TRAN"), OFFICE, "1").cancellation_reason == ""
    with pytest.raises(TypeError, match="inexpressible_quantity"):
        to_file_row(replace(LINE, quantity=None), OFFICE, "1")


def test_taxed_lines_are_claimed_as_the_settings_say() -> None:
    taxed = replace(LINE, gst_code="P1", quantity=Decimal(2), unit_price=Decimal(100), net=Decimal(200),
                    amount=Decimal(220))  # fmt: skip
    for includes, price in ((True, "110.00"), (False, "100.00")):
        office = OFFICE._replace(prices_include_gst=includes)
        assert find_reason(taxed, office) is None
        assert to_file_row(taxed, office, "1").unit_price == price


def candidate(**values: Any) -> Candidate:
    return replace(LINE, line_id=uuid4(), **values)


def test_states_decide_about_lines_before_anything_else_is_looked_at() -> None:
    lines = [candidate(), candidate(is_held=True), candidate(is_held=True), candidate(), candidate(wont_claim=True)]
    choice = choose(lines, 1)
    assert (choice.claimable, choice.to_flag) == ([lines[0], lines[3]], [lines[1]])
    assert {key: each.reason for key, each in choice.left_out.items()} == {
        lines[2].key: "held", lines[4].key: "wont_claim",
    }  # fmt: skip
    assert "batch_full" in UNFLAGGED_REASONS


amounts = st.integers(min_value=-500, max_value=10_000_000).map(lambda each: Decimal(each) / 100)
candidates = st.builds(
    lambda quantity, price, total, status, code, paid: candidate(
        quantity=quantity, unit_price=price, net=total, amount=total, claim_status=status, gst_code=code, paid=paid,
        is_rest_waiting=True,
    ),
    st.none() | amounts,
    st.none() | amounts,
    amounts,
    st.sampled_from(["new", "flagged", "partially_paid", "paid"]),
    st.sampled_from(["P2", "P5"]),
    amounts,
)  # fmt: skip


@given(st.lists(candidates, max_size=30))
def test_the_sum_of_a_file_is_the_sum_of_its_claims(lines: list[Candidate]) -> None:
    claimed = [each for each in lines if find_reason(each, OFFICE) is None]
    content = render(to_file_row(each, OFFICE, str(index)) for index, each in enumerate(claimed)).decode()
    rows = [*csv.DictReader(io.StringIO(content, newline=""))]
    assert all(len(each) == 16 for each in rows)
    total = sum((round(Decimal(each["Quantity"]) * Decimal(each["UnitPrice"]) + Decimal("1e-9"), 2) for each in rows),
                Decimal(0))  # fmt: skip
    assert total == sum((each.claimed_amount for each in claimed), Decimal(0))
    assert all(each.claimed_amount > 0 for each in claimed)
