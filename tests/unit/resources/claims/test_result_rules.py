"""The rules of rows of results, of the states of batches, and of what is to be recovered."""

from decimal import Decimal
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from plankeeper.resources.claims.adjustment_rules import LineMoney, find_error, paid_out_part
from plankeeper.resources.claims.result_rules import ClaimState, read_results, state_after
from plankeeper.resources.claims.results_file import ResultRow, parse_amount

BATCH, OTHER = UUID(int=1), UUID(int=2)
CENT = Decimal("0.01")
money = st.integers(0, 100_000).map(lambda cents: cents * CENT)
STATES = ("draft", "submitted", "paid", "partially_paid", "rejected", "cancelled")


@st.composite
def claims(draw: st.DrawFn) -> list[ClaimState]:
    found: list[ClaimState] = []
    for number in range(draw(st.integers(1, 5))):
        amount, state = draw(st.integers(1, 100_000).map(lambda cents: cents * CENT)), draw(st.sampled_from(STATES))
        paid = {"paid": amount, "partially_paid": amount / 2, "rejected": Decimal(0)}.get(state)
        batch = draw(st.sampled_from((BATCH, BATCH, OTHER)))
        found.append(
            ClaimState(
                UUID(int=number),
                batch,
                UUID(int=9),
                UUID(int=number),
                "B000001",
                f"R{number}",
                "430000001",
                False,
                amount,
                None,
                state,
                paid,
                draw(st.booleans()),
                False,
                draw(st.sampled_from((Decimal(0), amount / 3))),
            )
        )  # fmt: skip
    return found


rows = st.lists(
    st.builds(
        ResultRow,
        row=st.integers(2, 100),
        ndis_number=st.sampled_from(("430000001", "430000001", "430000002", "")),
        reference=st.sampled_from([f"R{number}" for number in range(6)]),
        status=st.sampled_from(("SUCCESSFUL", "ERROR", "successful", "PENDING", "")),
        amount=st.none() | money | st.just(Decimal("NaN")) | st.integers(-1000, 0).map(lambda cents: cents * CENT),
    ),
    max_size=8,
)


@given(claims(), rows)
def test_only_right_rows_change_a_claim_and_each_row_is_accounted_for(
    known: list[ClaimState], given_rows: list[ResultRow]
) -> None:
    found = read_results(given_rows, BATCH, known, CENT)
    assert len(found.new) + len(found.applied) + len(found.late) + len(found.unmatched) == len(given_rows)
    assert len({each.claim.id for each in found.new}) == len(found.new)
    for each in found.new:
        assert (each.claim.state, each.claim.batch_id) == ("submitted", BATCH)
        assert each.paid <= each.claim.amount
        assert (each.paid == 0) == (each.outcome == "rejected")
        if each.outcome == "paid":
            assert each.claim.amount - each.paid <= CENT
    for each in found.applied:
        assert each.paid == (each.claim.paid or 0)


@given(st.lists(st.sampled_from(STATES[1:]), min_size=1))
def test_a_batch_is_processed_when_no_claim_is_open(states: list[str]) -> None:
    state = state_after("submitted", states)
    assert (state == "processed") == ("submitted" not in states)
    assert (state == "submitted") == (set(states) <= {"submitted", "cancelled"} and "submitted" in states)


@given(money, money, money, money, money)
def test_refunds_and_repayments_settle_a_reversal(
    agency: Decimal, out: Decimal, back: Decimal, refund: Decimal, repaid: Decimal
) -> None:
    back, out = min(back, agency), min(out, agency)
    part = paid_out_part(LineMoney(agency, out), back)
    line = LineMoney(agency - back, out, back, min(refund, out), min(repaid, back), part)
    assert Decimal(0) <= line.to_recover <= part
    assert Decimal(0) <= line.to_repay <= part <= min(back, out)
    if line.to_recover:
        assert find_error("provider_refund", line.to_recover, line) is None
    if line.to_repay:
        assert find_error("repaid_to_agency", line.to_repay, line) is None
    money_back = line.refunded + line.to_recover, line.repaid + line.to_repay
    settled = LineMoney(line.paid, line.paid_out, back, *money_back, part)
    assert (settled.to_recover, settled.to_repay) == (0, 0)
    assert find_error("agency_reversal", line.paid + CENT, line) is not None


def test_amounts_of_files() -> None:
    texts = {"1,234.50": "1234.50", "$12": "12", "-3": "-3", " 7 ": "7"}
    assert {text: parse_amount(text) for text in texts} == {text: Decimal(value) for text, value in texts.items()}
    assert parse_amount("") is None
    assert parse_amount("12,50", ";") == Decimal("12.50")
    for text, delimiter in (*((each, ",") for each in ("abc", "1e5", "1,23", "--1", "$")), ("1" * 28 + ",50", ";")):
        found = parse_amount(text, delimiter)
        assert found is not None
        assert found.is_nan()
