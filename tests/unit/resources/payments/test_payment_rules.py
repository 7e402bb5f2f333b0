"""The money rules of payment runs, by the thousand."""

from datetime import date
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plankeeper.resources.payments.rules import (
    PayeeKey,
    amounts_due,
    date_warnings,
    is_covered,
    lodgement_reference,
    payee_of,
    payment_number,
    plan_payments,
    reason_left_out,
)
from plankeeper.resources.payments.schemas import PaidClaim, PayableLine, UnpaidReason

PROVIDERS = [UUID(int=each) for each in range(1, 6)]
BATCH = UUID(int=99)
ESTATES = frozenset({PayeeKey("participant", PROVIDERS[0])})


def claim(paid: str, **values: Any) -> PaidClaim:
    return PaidClaim(**{"id": uuid4(), "paid": Decimal(paid), "batch_id": None, "is_open": False} | values)


def line(*claims: PaidClaim, **values: Any) -> PayableLine:
    usual: dict[str, Any] = {
        "invoice_id": uuid4(),
        "line_id": uuid4(),
        "invoice_number": "INV-1",
        "is_held": False,
        "claim_status": "payment_ready",
        "payment_run": None,
        "is_fee": False,
        "paid_amount": None,
        "payee_kind": "provider",
        "payee_id": PROVIDERS[0],
        "payee_name": "Amber Physio",
        "payee_abn": "89000000019",
        "is_deceased": False,
        "reversed": Decimal(0),
        "refunded": Decimal(0),
        "open": Decimal(0),
        "claims": list(claims),
    }
    return PayableLine(**usual | values)


def reason(candidate: PayableLine, **values: Any) -> UnpaidReason | None:
    payee = payee_of(candidate)
    usual: dict[str, Any] = {
        "own_abn": None,
        "uncovered_batches": frozenset(),
        "bank_reasons": {payee: None},
        "estates": frozenset(),
    }
    return reason_left_out(candidate, **usual | values)


def test_what_the_agency_has_paid_is_due() -> None:
    first, second = claim("60.00"), claim("40.00")
    assert amounts_due(line(first, second)) == [(first.id, Decimal("60.00")), (second.id, Decimal("40.00"))]


def test_a_claim_with_an_open_payment_is_not_due_again() -> None:
    first, second = claim("60.00", is_open=True), claim("40.00")
    assert amounts_due(line(first, second, open=Decimal("60.00"))) == [(second.id, Decimal("40.00"))]


def test_a_reversal_is_not_paid_out() -> None:
    paid = claim("60.00")
    assert amounts_due(line(paid, reversed=Decimal("15.50"))) == [(paid.id, Decimal("44.50"))]
    assert amounts_due(line(paid, reversed=Decimal("60.00"))) == []
    again = claim("60.00")
    assert amounts_due(line(paid, again, reversed=Decimal("60.00"))) == [(again.id, Decimal("60.00"))]
    assert amounts_due(line(paid, paid_amount=Decimal("20.00"))) == [(paid.id, Decimal("20.00"))]


def test_what_the_payee_has_refunded_is_due_again_with_another_claim() -> None:
    first, second = claim("60.00", is_open=True), claim("100.00")
    amounts: dict[str, Any] = {name: Decimal(60) for name in ("open", "reversed", "refunded")}
    assert amounts_due(line(first, second, **amounts)) == [(second.id, Decimal("100.00"))]
    assert amounts_due(line(first, claim("40.00", is_open=True), refunded=Decimal(10), open=Decimal(100))) == []
    rest = claim("40.00")  # a refund that the agency hasn't taken back isn't paid again with the rest
    assert amounts_due(line(first, rest, refunded=Decimal(10), open=Decimal(60))) == [(rest.id, Decimal("40.00"))]
    elsewhere = line(second, paid_amount=Decimal(100), reversed=Decimal(60), refunded=Decimal(60))
    assert amounts_due(elsewhere) == [(second.id, Decimal("100.00"))]
    assert is_covered(line(first, claim("100.00", is_open=True), **(amounts | {"open": Decimal(160)})))


@pytest.mark.parametrize(
    "candidate, values, expected",
    [
        (line(claim("1.00")), {}, None),
        (line(claim("1.00"), payment_run="P000001"), {}, "in_payment_run"),
        (line(claim("1.00"), claim_status="pending"), {}, "not_ready"),
        (line(claim("1.00"), is_held=True), {}, "held"),
        (line(claim("1.00")), {"own_abn": "89000000019"}, "own_fee"),
        (line(), {}, "no_result"),
        (line(claim("1.00", is_open=True), open=Decimal("1.00")), {}, "nothing_to_pay"),
        (line(claim("1.00", batch_id=BATCH)), {"uncovered_batches": frozenset({BATCH})}, "waiting_for_receipt"),
        (line(claim("1.00"), payee_name=None), {}, "payee_missing"),
        (line(claim("1.00"), payee_id=None), {}, "payee_missing"),
        (line(claim("1.00"), payee_kind="participant", is_deceased=True), {}, "estate"),
        (line(claim("1.00"), is_deceased=True), {}, None),
        (line(claim("1.00"), payee_kind="participant", is_deceased=True), {"estates": ESTATES}, None),
        (line(claim("1.00"), payee_kind="participant"), {"estates": ESTATES}, "no_bank_details"),
        (
            line(claim("1.00"), payee_kind="participant", is_deceased=True),
            {"estates": ESTATES, "bank_reasons": {next(iter(ESTATES)): "bank_details_waiting"}},
            "bank_details_waiting",
        ),
        (
            line(claim("1.00")),
            {"bank_reasons": {PayeeKey("provider", PROVIDERS[0]): "bank_details_waiting"}},
            "bank_details_waiting",
        ),
        (line(claim("1.00")), {"bank_reasons": {}}, "no_bank_details"),
    ],
)
def test_a_line_is_left_out_for_a_reason(
    candidate: PayableLine, values: dict[str, Any], expected: UnpaidReason | None
) -> None:
    assert reason(candidate, **values) == expected


amounts = st.integers(0, 100_000).map(lambda cents: Decimal(cents) / 100)
paid_claims = st.builds(
    PaidClaim,
    id=st.uuids(),
    paid=st.integers(1, 100_000).map(lambda cents: Decimal(cents) / 100),
    batch_id=st.none(),
    is_open=st.booleans(),
)


@st.composite
def payable_lines(draw: st.DrawFn) -> PayableLine:
    claims = draw(st.lists(paid_claims, max_size=4, unique_by=lambda each: each.id))
    open_amount = sum((each.paid for each in claims if each.is_open), Decimal(0))
    return line(
        *claims,
        payee_id=draw(st.sampled_from(PROVIDERS)),
        open=open_amount,
        refunded=draw(st.integers(0, int(open_amount * 100)).map(lambda cents: Decimal(cents) / 100)),
        reversed=draw(amounts),
        paid_amount=draw(st.none() | amounts),
    )


@given(payable_lines())
def test_never_more_is_due_than_the_agency_has_paid(candidate: PayableLine) -> None:
    due = dict(amounts_due(candidate))
    received = sum((each.paid for each in candidate.claims), Decimal(0)) - candidate.reversed
    before = candidate.open - candidate.refunded
    after = before + sum(due.values(), Decimal(0))
    assert after <= max(received, before)
    assert candidate.paid_amount is None or after <= max(candidate.paid_amount, before)
    for each in candidate.claims:
        assert each.id not in due or (0 < due[each.id] <= each.paid and not each.is_open)
    assert is_covered(candidate) or not due


@given(st.lists(payable_lines(), max_size=12), st.booleans())
def test_the_payments_of_a_run_are_its_lines(lines: list[PayableLine], is_by_invoice: bool) -> None:
    lines = [each for each in lines if amounts_due(each)]
    payments = plan_payments(lines, is_by_invoice=is_by_invoice)
    due = [pair for each in lines for pair in amounts_due(each)]
    paid = [(each.claim_id, each.amount) for payment in payments for each in payment.paid_lines()]
    assert sorted(paid) == sorted(due)
    assert len({claim_id for claim_id, _ in paid}) == len(paid)
    assert sum((each.amount for each in payments), Decimal(0)) == sum((amount for _, amount in due), Decimal(0))
    keys = [(each.payee, each.lines[0].line.invoice_id if is_by_invoice else None) for each in payments]
    assert len(set(keys)) == len(keys)
    assert all(payee_of(each.line) == payment.payee for payment in payments for each in payment.lines)


def test_payments_have_references() -> None:
    assert payment_number("P000123", 45) == "P000123-0045"
    assert lodgement_reference("P000123", 45, "") == "P000123-0045"
    assert lodgement_reference("P000123", 45, "2026/442") == "2026/442"
    assert lodgement_reference("P000123", 45, "A" * 10 + "B" * 17) == "A" + "B" * 17


def test_an_unusual_process_date_is_a_warning() -> None:
    today = date(2026, 11, 27)
    codes = {day: [each.code for each in date_warnings(date(2026, 11, day), today)] for day in (26, 27, 28, 30)}
    assert codes == {26: ["process_date_past"], 27: [], 28: ["process_date_weekend"], 30: []}
