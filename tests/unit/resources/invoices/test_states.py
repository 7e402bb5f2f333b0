"""The states of invoices and their lines: tables of cases, and properties of sequences of calls."""

from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from typing import Any, get_args
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from plankeeper.core.errors import DomainError, NotFound
from plankeeper.core.formatting import CENT, to_cents
from plankeeper.resources.invoices.schemas import ApprovalStatus, ClaimStatus
from plankeeper.resources.invoices.states import (
    APPROVAL_TRANSITIONS,
    LOCKED_FIELDS,
    TRANSITIONS,
    UNCHANGED,
    Cause,
    InvoiceAction,
    InvoiceAmounts,
    InvoiceState,
    LineAmount,
    LineState,
    act_on_invoice,
    approval_after_change,
    change_lines,
    line_amounts,
    move_line,
    next_status,
    require_matching_totals,
    require_unlocked,
    resolve_lines,
    roll_up,
)

INVOICE_ID = UUID(int=1)
CAUSES: tuple[Cause, ...] = get_args(Cause)
ACTIONS: tuple[InvoiceAction, ...] = tuple(each for group in get_args(InvoiceAction) for each in get_args(group))
STATUSES: tuple[ClaimStatus, ...] = get_args(ClaimStatus.__origin__)  # type: ignore[attr-defined] - of Annotated
EDGES = {(each.source, each.target) for each in TRANSITIONS}


def line(status: ClaimStatus = "new", number: int = 1, **values: Any) -> LineState:
    return LineState(invoice_id=INVOICE_ID, id=UUID(int=number), number=number, claim_status=status, **values)


def invoice(*lines: LineState | ClaimStatus, **values: Any) -> InvoiceState:
    numbered = [line(each, number) if isinstance(each, str) else each for number, each in enumerate(lines, start=1)]
    return InvoiceState(id=INVOICE_ID, lines=tuple(numbered), **values)


def statuses(state: InvoiceState) -> list[str]:
    return [each.claim_status for each in state.lines]


def error_of(call: Callable[..., object], *arguments: Any, **named: Any) -> tuple[str, str]:
    """The code and the detail of the error that a call raises."""
    with pytest.raises(DomainError) as caught:
        call(*arguments, **named)
    assert caught.value.status == 409
    assert caught.value.resource is not None
    assert (caught.value.resource.kind, caught.value.resource.id) == ("invoice", str(INVOICE_ID))
    return caught.value.code, caught.value.detail


def test_the_state_of_an_invoice_is_the_first_row_that_holds() -> None:
    deleted = line("paid", 9, is_deleted=True)
    part_paid = line("pending", 1, has_payment=True)
    cases: list[tuple[InvoiceState, ClaimStatus]] = [
        (invoice("cancelled", "cancelled"), "cancelled"),
        (invoice("cancelled", is_held=True), "cancelled"),
        (invoice("cancelled", "paid"), "paid"),
        (invoice("paid", is_held=True), "paid"),
        (invoice("paid", "new", is_held=True), "on_hold"),
        (invoice("paid", "new"), "partially_paid"),
        (invoice("partially_paid", "rejected"), "partially_paid"),
        (invoice(part_paid, "payment_ready"), "partially_paid"),
        (invoice("payment_ready", "cancelled"), "payment_ready"),
        (invoice("payment_ready", "rejected"), "partially_ready"),
        (invoice("partially_ready", "pending"), "partially_ready"),
        (invoice("pending", "rejected", "flagged"), "pending"),
        (invoice("rejected", "cancelled"), "rejected"),
        (invoice("rejected", "flagged"), "flagged"),
        (invoice("rejected", "new"), "new"),
        (invoice("on_hold"), "new"),
        (invoice("new", deleted), "new"),
        (invoice("new", is_cancelled=True), "new"),
        (invoice(), "new"),
        (invoice(deleted, is_held=True), "on_hold"),
        (invoice(deleted, is_held=True, is_cancelled=True), "cancelled"),
    ]
    assert [(statuses(each), roll_up(each)) for each, _ in cases] == [(statuses(each), row) for each, row in cases]
    assert {row for _, row in cases} == set(STATUSES)


def test_a_line_changes_only_as_the_table_says() -> None:
    """Each state with each cause and what decides between several targets."""
    found: set[tuple[str, str, str]] = set()
    for status in set(STATUSES) - {"on_hold"}:
        for cause in CAUSES:
            for paid, has_payment in ((0, False), (5, False), (5, True)):
                state = line(status, paid_amount=Decimal(paid), has_payment=has_payment, is_rest_waiting=True)
                batch = "CB-7" if cause == "submit_batch" else None
                state = replace(state, is_rest_waiting=cause != "claim_rest", claim_batch=batch)
                with suppress(DomainError):
                    found.add((status, next_status(state, cause), cause))
    unchanged = {(status, status, cause) for cause, states in UNCHANGED.items() for status in states}
    assert found == {tuple(each) for each in TRANSITIONS} | unchanged
    assert all((each.source, each.cause) not in {(a, c) for a, _, c in unchanged} for each in TRANSITIONS)
    assert {each.cause for each in TRANSITIONS} | set(UNCHANGED) == set(CAUSES)


def test_the_end_of_a_claim_for_the_rest_keeps_what_the_agency_has_paid() -> None:
    in_hand = line("pending", paid_amount=Decimal(5), has_payment=True)
    returned = replace(in_hand, has_payment=False)
    reversed_later = replace(in_hand, paid_amount=Decimal(0))
    causes: tuple[Cause, ...] = ("reject", "cancel_batch", "cancel_claim")
    for cause in causes:
        found = [next_status(each, cause) for each in (in_hand, returned, reversed_later)]
        assert found == ["partially_paid", "partially_ready", "partially_paid"]


def test_the_rest_of_a_line_is_claimed_once_and_only_on_request() -> None:
    state = invoice(line("partially_paid", has_payment=True))
    refused = ("invalid_transition", "Line 1 is partially paid, so it can't be claimed.")
    assert error_of(next_status, state.lines[0], "submit_batch") == refused
    waiting = move_line(state, UUID(int=1), "claim_rest")
    assert (statuses(waiting), waiting.lines[0].is_rest_waiting) == (["partially_paid"], True)
    assert error_of(move_line, waiting, UUID(int=1), "claim_rest") == (
        "invalid_transition", "Line 1 is partially paid, and its rest already waits for a claim batch.",
    )  # fmt: skip
    claimed = move_line(waiting, UUID(int=1), "submit_batch")
    assert (statuses(claimed), claimed.lines[0].is_rest_waiting, roll_up(claimed)) == (
        ["pending"], False, "partially_paid",
    )  # fmt: skip


def test_a_rejected_line_is_claimed_only_with_the_draft_that_it_is_in() -> None:
    refused = ("invalid_transition", "Line 1 is rejected, so it can't be claimed.")
    assert error_of(next_status, line("rejected", is_rest_waiting=True), "submit_batch") == refused
    assert next_status(line("rejected", claim_batch="CB-7"), "submit_batch") == "pending"


def test_a_batch_or_a_run_prevents_actions_on_a_line() -> None:
    in_batch, in_run = line("new", claim_batch="CB-7"), line("payment_ready", payment_run="PR-3")
    batch_causes: tuple[Cause, ...] = ("cancel", "split", "change", "claim_elsewhere")
    errors = {cause: error_of(next_status, in_batch, cause) for cause in batch_causes}
    assert {code for code, _ in errors.values()} == {"invoice_locked"}
    assert errors["cancel"][1] == "Line 1 is in claim batch CB-7, so it can't be cancelled."
    for cause in ("reverse_part", "reverse_rest", "reverse_all"):
        detail = "Line 1 is in payment run PR-3, so it can't be reversed."
        assert error_of(next_status, in_run, cause) == ("invoice_locked", detail)
    assert next_status(in_run, "pay_out") == "paid"
    assert next_status(in_batch, "submit_batch") == "pending"
    locked = ("invoice_locked", "Line 1 is pending, so it can't be cancelled.")
    assert error_of(next_status, line("pending"), "cancel") == locked
    assert error_of(next_status, line("paid"), "split") == ("invoice_locked", "Line 1 is paid, so it can't be split.")
    invalid = ("invalid_transition", "Line 1 is paid, so it can't be cancelled.")
    assert error_of(next_status, line("paid"), "cancel") == invalid
    deleted = ("invalid_transition", "Line 1 is deleted, so it can't be cancelled.")
    assert error_of(next_status, line(is_deleted=True), "cancel") == deleted


def test_one_line_is_cancelled_beside_a_paid_one() -> None:
    state = move_line(invoice("paid", "rejected"), UUID(int=2), "cancel")
    assert (statuses(state), roll_up(state), state.is_cancelled) == (["paid", "cancelled"], "paid", False)
    with pytest.raises(NotFound):
        move_line(state, UUID(int=3), "cancel")


def test_a_reopened_line_ends_the_cancellation_of_its_invoice() -> None:
    cancelled = act_on_invoice(invoice("new", line("flagged", 2), "rejected"), "cancel")
    assert (statuses(cancelled), cancelled.is_cancelled) == (["cancelled"] * 3, True)
    reopened = move_line(cancelled, UUID(int=1), "reopen")
    assert (roll_up(reopened), reopened.is_cancelled) == ("new", False)
    assert statuses(act_on_invoice(cancelled, "reopen")) == ["new"] * 3


def test_actions_on_an_invoice() -> None:
    held, without_lines = invoice("new", is_held=True), invoice()
    assert roll_up(act_on_invoice(invoice("pending"), "hold")) == "on_hold"
    assert roll_up(act_on_invoice(held, "release")) == "new"
    assert roll_up(act_on_invoice(held, "cancel")) == "cancelled"
    cancelled = act_on_invoice(without_lines, "cancel")
    assert [roll_up(each) for each in (cancelled, act_on_invoice(cancelled, "reopen"))] == ["cancelled", "new"]
    excluded = act_on_invoice(invoice("new", "cancelled"), "wont_claim")
    assert (excluded.wont_claim, statuses(excluded)) == (True, ["new", "cancelled"])
    included = act_on_invoice(excluded, "reopen")
    assert (included.wont_claim, statuses(included)) == (False, ["new", "cancelled"])
    assert statuses(act_on_invoice(included, "reopen")) == ["new", "new"]


IN_BATCH = line("new", 2, claim_batch="CB-7")
IN_RUN = line("partially_ready", 2, payment_run="PR-3")
REVERSED_LINE = line("rejected", 1, paid_amount=Decimal(1))
REJECTED_ACTIONS: list[tuple[InvoiceState, InvoiceAction, str, str]] = [
    (invoice("new", is_held=True), "hold", "invalid_transition", "The invoice is on hold, so it can't be held."),
    (invoice("paid"), "hold", "invalid_transition", "The invoice is paid, so it can't be held."),
    (invoice("cancelled"), "hold", "invalid_transition", "The invoice is cancelled, so it can't be held."),
    (invoice("new"), "release", "invalid_transition", "The invoice is new, so it can't be released."),
    (invoice("new"), "reopen", "invalid_transition", "The invoice is new, so it can't be reopened."),
    (invoice("cancelled"), "cancel", "invalid_transition", "The invoice is cancelled, so it can't be cancelled."),
    (
        invoice("cancelled"), "wont_claim", "invalid_transition",
        "The invoice is cancelled, so it can't be excluded from claims.",
    ),
    (
        invoice("new", wont_claim=True), "wont_claim", "invalid_transition",
        "The invoice is new, and is already excluded from claims.",
    ),
    (
        invoice("paid", "new"), "cancel", "invalid_transition",
        "The invoice is partially paid, so it can't be cancelled.",
    ),
    (invoice(REVERSED_LINE), "cancel", "invalid_transition", "The invoice is rejected, so it can't be cancelled."),
    (
        invoice("paid", "pending"), "cancel", "invoice_locked",
        "Line 2 is pending, so the invoice can't be cancelled.",
    ),
    (
        invoice("new", IN_BATCH), "cancel", "invoice_locked",
        "Line 2 is in claim batch CB-7, so the invoice can't be cancelled.",
    ),
    (
        invoice("new", IN_RUN), "wont_claim", "invoice_locked",
        "Line 2 is in payment run PR-3, so the invoice can't be excluded from claims.",
    ),
    (
        invoice("new"), "approve", "invalid_transition",
        "The invoice's approval is not required, so the invoice can't be approved.",
    ),
    (
        invoice(approval_status="approved"), "request_approval", "invalid_transition",
        "The invoice's approval is approved, so the invoice can't be sent for approval.",
    ),
    (invoice(is_deleted=True), "cancel", "invalid_transition", "The invoice is deleted, so it can't be cancelled."),
]  # fmt: skip


def test_actions_that_the_state_of_an_invoice_does_not_allow() -> None:
    found = [error_of(act_on_invoice, state, action) for state, action, _, _ in REJECTED_ACTIONS]
    assert found == [each[2:] for each in REJECTED_ACTIONS]


def test_a_change_returns_flagged_lines_and_corrected_rejected_ones_to_new() -> None:
    in_batch = line("flagged", 2, claim_batch="CB-7")
    before = invoice("flagged", in_batch, "rejected", "rejected", "cancelled", "paid")
    after = change_lines(before, {UUID(int=3), UUID(int=5)})
    assert statuses(after) == ["new", "flagged", "new", "rejected", "cancelled", "paid"]
    assert error_of(change_lines, before, {UUID(int=6)}) == (
        "invoice_locked", "Line 6 is paid, so it can't be changed.",
    )  # fmt: skip


def test_a_locked_line_locks_itself_and_some_fields_of_its_invoice() -> None:
    locks: list[tuple[LineState, str]] = [
        (line(each), f"Line 1 is {each.replace('_', ' ')}, so ")
        for each in STATUSES
        if each not in {"new", "flagged", "rejected", "cancelled", "on_hold"}
    ]
    locks += [
        (line("new", claim_batch="CB-7"), "Line 1 is in claim batch CB-7, so "),
        (line("partially_ready", payment_run="PR-3"), "Line 1 is in payment run PR-3, so "),
    ]
    for locked, reason in locks:
        state = invoice(locked, "rejected")
        require_unlocked(state, {"due_date", "assigned_to", "external_id", "total"}, {UUID(int=2)})
        assert error_of(require_unlocked, state, line_ids=[UUID(int=1)]) == (
            "invoice_locked", f"{reason}it can't be changed or deleted.",
        )  # fmt: skip
        assert error_of(require_unlocked, state, ["payee", "invoice_date", "notes"]) == (
            "invoice_locked", f"{reason}these fields of the invoice can't be changed: invoice_date, payee.",
        )  # fmt: skip
    free = invoice("new", "flagged", "rejected", "cancelled", line("paid", 5, is_deleted=True))
    require_unlocked(free, LOCKED_FIELDS, {each.id for each in free.lines})


def amounts(total: str | None, tax: str | None, *lines: tuple[str | None, Any], **values: Any) -> InvoiceAmounts:
    """The subtotal is the total less tax."""
    numbers = [None if each is None else Decimal(each) for each in (total, tax)]
    subtotal = None if numbers[0] is None else numbers[0] - (numbers[1] or 0)
    priced = [
        LineAmount(id=UUID(int=number), total_price=None if price is None else Decimal(price), gst_code=code)
        for number, (price, code) in enumerate(lines, start=1)
    ]
    return InvoiceAmounts(total=numbers[0], tax=numbers[1], subtotal=subtotal, lines=tuple(priced), **values)


def test_totals_of_a_locked_invoice_change_as_much_as_its_lines() -> None:
    state = invoice("paid", "rejected")
    before = amounts("161.00", "1.00", ("150.00", "P2"), ("10.00", "P1"))
    corrected = amounts("172.00", "2.00", ("150.00", "P2"), ("20.00", "P1"))
    require_matching_totals(state, before, before)
    require_matching_totals(state, before, corrected)
    require_matching_totals(state, before, replace(before, lines=corrected.lines))
    other = replace(corrected, total=Decimal("173.00"))
    assert error_of(require_matching_totals, state, before, other) == (
        "invoice_locked", "Line 1 is paid, so total can change only by as much as the lines do, which is 11.00.",
    )  # fmt: skip
    for changes in ({"total": None}, {"tax": Decimal(9)}, {"subtotal": Decimal(1)}):
        assert error_of(require_matching_totals, state, before, replace(before, **changes))[0] == "invoice_locked"
    require_matching_totals(invoice("new", "rejected"), before, other)


def test_the_last_taxed_line_beside_a_locked_one_goes_with_its_difference() -> None:
    """Two lines of 10.03 have a tax of 1.00 each, and the invoice has 2.01."""
    state = invoice("pending", "rejected")
    before = amounts("22.07", "2.01", ("10.03", "P1"), ("10.03", "P1"))
    locked = replace(before.lines[0], locked_amount=Decimal("11.03"))
    before = replace(before, lines=(locked, before.lines[1]))
    assert [*line_amounts(before).values()] == [Decimal("11.03"), Decimal("11.04")]
    after = replace(amounts("11.03", "1.00"), lines=(locked, replace(before.lines[1], is_deleted=True)))
    require_matching_totals(state, before, after)
    other = replace(after, tax=Decimal("1.01"), total=Decimal("11.04"))
    assert error_of(require_matching_totals, state, before, other) == (
        "invoice_locked", "Line 1 is pending, so tax can change only by as much as the lines do, which is -1.01.",
    )  # fmt: skip
    # The totals are wrong, so no line has the difference of a cent: it stays.
    before, lines = replace(before, has_wrong_total=True), (locked, replace(before.lines[1], total_price=Decimal(20)))
    after = replace(amounts("33.04", "3.01"), subtotal=Decimal("30.03"), lines=lines)
    require_matching_totals(state, before, after)
    assert [*line_amounts(after).values()] == [Decimal("11.03"), Decimal("22.01")]


def test_the_amount_of_a_line() -> None:
    deleted = LineAmount(id=UUID(int=9), total_price=Decimal(5), gst_code="P1", is_deleted=True)
    with_deleted = amounts("11.00", "1.00", ("10.00", "P1"))
    with_deleted = replace(with_deleted, lines=(*with_deleted.lines, deleted))
    cases: list[tuple[InvoiceAmounts, list[str | None]]] = [
        (amounts("10", "0", ("10.00", "P2"), ("7.25", "P5")), ["10.00", "7.25"]),
        (amounts("11", "1", ("10.00", "P1")), ["11.00"]),
        (amounts("11.55", None, ("10.45", "P1")), ["11.50"]),  # a tenth of 10.45 is 1.045
        (amounts("11.49", "1.04", ("10.45", "P1")), ["11.49"]),
        # The exact tax is 3.135, and the rounded tenths are 3.15.
        (amounts("34.49", "3.14", ("10.45", "P1"), ("10.45", "P1"), ("10.45", "P1")), ["11.50", "11.50", "11.49"]),
        (amounts("34.47", "3.12", ("10.45", "P1"), ("10.45", "P1"), ("10.45", "P1")), ["11.50", "11.50", "11.47"]),
        (amounts("34.46", "3.11", ("10.45", "P1"), ("10.45", "P1"), ("10.45", "P1")), ["11.50", "11.50", "11.50"]),
        (amounts("11.49", "1.04", ("10.45", "P1"), has_wrong_total=True), ["11.50"]),
        (amounts("21.49", "1.04", ("10.45", "P1"), ("10.00", "P2"), (None, "P1")), ["11.49", "10.00", None]),
        (with_deleted, ["11.00"]),
    ]
    found = [list(line_amounts(each).values()) for each, _ in cases]
    assert found == [[None if each is None else Decimal(each) for each in expected] for _, expected in cases]


CENTS = st.integers(0, 1_000_000).map(lambda cents: Decimal(cents) / 100)


@given(st.lists(CENTS, min_size=1, max_size=20), st.booleans())
def test_amounts_add_up_to_the_total_of_an_invoice_whose_tax_was_rounded_once(
    prices: list[Decimal], is_wrong: bool
) -> None:
    tax = (sum(prices, Decimal(0)) / 10).quantize(Decimal("0.01"))
    total = sum(prices, Decimal(0)) + tax
    state = amounts(str(total), str(tax), *((str(each), "P1") for each in prices), has_wrong_total=is_wrong)
    found = list(line_amounts(state).values())
    assert is_wrong or sum(each or 0 for each in found) == total
    assert all(each is not None and each == each.quantize(Decimal("0.01")) for each in found)


@given(st.lists(CENTS, min_size=1, max_size=8), st.data())
def test_claims_and_splits_of_lines_move_no_cent_of_a_claimed_one(prices: list[Decimal], data: st.DataObject) -> None:
    """The sum of the amounts is the total, and a line costs what it was claimed for."""
    lines = [LineAmount(id=uuid4(), total_price=price, gst_code="P1") for price in prices]
    difference = data.draw(st.integers(-len(lines), len(lines))) * CENT
    tax = sum((to_cents(price / 10) for price in prices), Decimal(0)) + difference
    subtotal = sum(prices, Decimal(0))

    def found() -> dict[UUID, Decimal | None]:
        amounts = InvoiceAmounts(total=subtotal + tax, tax=tax, subtotal=subtotal, lines=tuple(lines))
        return line_amounts(amounts)

    for _ in range(10):
        index = data.draw(st.integers(0, len(lines) - 1))
        line, before = lines[index], found()
        if line.locked_amount is not None:
            lines[index] = replace(line, locked_amount=None)  # rejected
        elif data.draw(st.booleans()):
            lines[index] = replace(line, locked_amount=before[line.id])  # claimed
            assert found() == before
        else:
            part = (line.total_price or Decimal(0)) * data.draw(st.integers(0, 100)) / 100
            part = part.quantize(CENT)
            rest = (line.total_price or Decimal(0)) - part
            lines[index] = replace(line, total_price=part)
            lines.append(replace(line, id=uuid4(), total_price=rest))
        after = found()
        assert all(after[each.id] == before[each.id] for each in lines if each.locked_amount is not None)
        assert sum(each or Decimal(0) for each in after.values()) == subtotal + tax


def test_approval() -> None:
    every: tuple[ApprovalStatus, ...] = ("not_required", "pending", "approved", "rejected")
    for fields, is_required, expected in (
        (["total"], False, ["not_required", "pending", "pending", "rejected"]),
        (["line_items"], True, ["not_required", "pending", "pending", "rejected"]),
        (["participant_id"], True, ["pending", "pending", "pending", "rejected"]),
        (["due_date", "invoice_number"], True, list(every)),
    ):
        assert [approval_after_change(each, fields, is_required=is_required) for each in every] == expected
    state = invoice()
    actions: tuple[InvoiceAction, ...] = ("request_approval", "reject", "request_approval", "approve")
    for action in actions:
        state = act_on_invoice(state, action)
    assert state.approval_status == "approved"


LINES = st.builds(
    LineState,
    invoice_id=st.just(INVOICE_ID),
    id=st.just(UUID(int=1)),
    number=st.just(1),
    claim_status=st.sampled_from(STATUSES),
    is_deleted=st.booleans(),
    paid_amount=st.sampled_from([None, Decimal(0), Decimal(5)]),
    claim_batch=st.sampled_from([None, None, "CB-7"]),
    payment_run=st.sampled_from([None, None, "PR-3"]),
    has_payment=st.booleans(),
    is_rest_waiting=st.booleans(),
)


def build_invoice(lines: list[LineState], is_held: bool, is_cancelled: bool) -> InvoiceState:
    numbered = [replace(each, id=UUID(int=number), number=number) for number, each in enumerate(lines, start=1)]
    return invoice(*numbered, is_held=is_held, is_cancelled=is_cancelled)


INVOICES = st.builds(build_invoice, st.lists(LINES, max_size=4), st.booleans(), st.booleans())
# An action on an invoice, a cause with the number of a line, or the numbers of lines that are changed.
Call = InvoiceAction | tuple[int, Cause] | frozenset[int]
CALLS: st.SearchStrategy[Call] = st.one_of(
    st.sampled_from(ACTIONS),
    st.tuples(st.integers(1, 4), st.sampled_from(CAUSES)),
    st.frozensets(st.integers(1, 4)),
)


def make_call(state: InvoiceState, call: Call) -> InvoiceState:
    """The state after the call, or the same one if it raises an error."""
    try:
        if isinstance(call, str):
            return act_on_invoice(state, call)
        if isinstance(call, tuple):
            return move_line(state, UUID(int=call[0]), call[1])
        return change_lines(state, {UUID(int=each) for each in call})
    except DomainError:
        return state


@given(INVOICES, st.lists(CALLS, max_size=30))
def test_no_sequence_of_calls_makes_a_transition_that_is_not_listed(state: InvoiceState, calls: list[Call]) -> None:
    approvals = {(each.source, each.target) for each in APPROVAL_TRANSITIONS}
    for call in calls:
        after = make_call(state, call)
        for old, new in zip(state.lines, after.lines, strict=True):
            changed = old.claim_status != new.claim_status
            assert (
                not changed or (old.status, new.status) in EDGES or (old.claim_status, new.status) == ("on_hold", "new")
            )
            assert not (changed and old.is_deleted)
            assert replace(new, claim_status=old.claim_status, is_rest_waiting=old.is_rest_waiting) == old
        step = state.approval_status, after.approval_status
        assert step[0] == step[1] or step in approvals
        assert roll_up(after) in STATUSES
        assert not after.is_cancelled or state.is_cancelled or roll_up(after) == "cancelled"
        state = after


@given(INVOICES, st.randoms())
def test_the_state_depends_on_the_lines_the_hold_and_the_cancellation_alone(state: InvoiceState, random: Any) -> None:
    shuffled = list(state.lines)
    random.shuffle(shuffled)
    other = replace(
        state, id=UUID(int=2), lines=tuple(shuffled), wont_claim=True, is_deleted=True, approval_status="rejected"
    )
    assert roll_up(other) == roll_up(state)
    without_deleted = replace(state, lines=tuple(each for each in state.lines if not each.is_deleted))
    assert roll_up(without_deleted) == roll_up(state)


@given(INVOICES)
def test_a_release_returns_to_the_state_before_the_hold(state: InvoiceState) -> None:
    state = replace(state, is_held=False)
    before = roll_up(state)
    if before in ("paid", "cancelled"):
        assert error_of(act_on_invoice, state, "hold")[0] == "invalid_transition"
    else:
        held = act_on_invoice(state, "hold")
        assert roll_up(held) == "on_hold"
        released = act_on_invoice(held, "release")
        assert released == replace(state, lines=tuple(map(without_hold, state.lines)))
        assert roll_up(released) == before


def without_hold(line: LineState) -> LineState:
    """A line that was imported as on hold is new after a release."""
    return replace(line, claim_status=line.status) if not line.is_deleted else line


def test_resolved_lines_are_new_unless_a_batch_locks_them() -> None:
    ids = [UUID(int=number) for number in range(1, 5)]
    flagged = LineState(invoice_id=ids[0], id=ids[0], number=1, claim_status="flagged")
    others = [{"claim_batch": "7"}, {"is_deleted": True}, {"claim_status": "rejected"}]
    lines = (flagged, *(replace(flagged, id=id_, **each) for id_, each in zip(ids[1:], others, strict=True)))
    resolved = resolve_lines(InvoiceState(id=ids[0], lines=lines))
    assert [each.claim_status for each in resolved.lines] == ["new", "flagged", "flagged", "rejected"]


@given(INVOICES)
def test_a_cancelled_invoice_has_no_open_or_paid_line(state: InvoiceState) -> None:
    cancelled = make_call(state, "cancel")
    if cancelled is state:
        assert error_of(act_on_invoice, state, "cancel")[0] in ("invalid_transition", "invoice_locked")
        return
    assert roll_up(cancelled) == "cancelled"
    assert {each.status for each in state.active_lines} <= {"new", "flagged", "rejected", "cancelled"}
