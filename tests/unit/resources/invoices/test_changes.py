"""The changes of an invoice by a request: the same one twice changes nothing."""

from collections import defaultdict
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from plankeeper.core.validation import is_amount
from plankeeper.resources.invoices.changes import Draft, build_draft, to_saved
from plankeeper.resources.invoices.check_store import CheckResult
from plankeeper.resources.invoices.reference_store import References
from plankeeper.resources.invoices.schemas import InvoiceUpdate, LineItemUpdate, SavedInvoice

NOW = datetime(2026, 10, 30, tzinfo=UTC)
INVOICE_ID = UUID(int=1)
NOTHING_FOUND = References({}, defaultdict(list), set())

# Few values, so that many lines are equal in some fields.
UNSAID = st.just(UNSET)
NEW_LINES = st.builds(
    LineItemUpdate,
    description=UNSAID | st.sampled_from([None, "Bus"]),
    quantity=UNSAID | st.sampled_from([None, Decimal(1), Decimal("1.0"), Decimal(2)]),
    total_price=UNSAID | st.sampled_from([None, Decimal(10)]),
    gst_code=UNSAID | st.sampled_from(["P1", "P2"]),
)


def saved(draft: Draft) -> SavedInvoice:
    result = CheckResult(
        INVOICE_ID, errors=False, error_codes=[], warning_codes=[], ignored_error_codes=[], is_duplicate=False
    )
    return to_saved(draft, UUID(int=2), result, NOW)


def changed(before: SavedInvoice | None, lines: list[LineItemUpdate]) -> Draft:
    draft = build_draft(INVOICE_ID, before, InvoiceUpdate(line_items=lines), NOTHING_FOUND, NOW)
    assert not draft.errors
    return draft


@given(st.lists(NEW_LINES, max_size=6), st.lists(NEW_LINES, max_size=6), st.data())
def test_the_same_lines_twice_change_nothing(
    first: list[LineItemUpdate], second: list[LineItemUpdate], data: st.DataObject
) -> None:
    before = saved(changed(None, first))
    lines: list[Any] = before.line_items or []
    ids = data.draw(st.lists(st.sampled_from(lines), unique_by=lambda line: line.id)) if lines else []
    items = data.draw(st.permutations([*second, *(LineItemUpdate(id=str(line.id), description="Car") for line in ids)]))
    after = changed(before, items)
    live = [line for line in after.lines if not line.is_deleted]
    assert len(live) == len(items)
    assert [line.id for line in after.lines[: len(lines)]] == [line.id for line in lines]
    assert [line.position for line in after.lines] == list(range(len(after.lines)))
    assert not changed(saved(after), items).is_changed


@given(st.lists(NEW_LINES, max_size=6), st.lists(NEW_LINES, max_size=6))
def test_a_line_is_kept_only_if_it_has_all_values_that_are_sent(
    first: list[LineItemUpdate], second: list[LineItemUpdate]
) -> None:
    after = changed(saved(changed(None, first)), second)
    live = [line for line in after.lines if not line.is_deleted]
    for item in second:  # each item has a line of its own
        names = [
            name for name in ("description", "quantity", "total_price", "gst_code") if getattr(item, name) != UNSET
        ]
        assert any(all(getattr(line, name) == getattr(item, name) for name in names) for line in live)


def test_amounts_have_few_decimal_places() -> None:
    assert all(is_amount(Decimal(each), 2) for each in ("0", "-1.25", "1.2500", "999999999999.99", "1E+3", "0E-20"))
    wrong = ("0.001", "1000000000000", "NaN", "Infinity", "1E+12", "1E-3")
    assert not any(is_amount(Decimal(each), 2) for each in wrong)
