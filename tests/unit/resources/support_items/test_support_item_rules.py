"""What an item of the support catalogue says: its price limit and its category."""

from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from plankeeper.resources.support_items.rules import PRICE_LIMITED, Remoteness, category_of_item, price_limit
from plankeeper.resources.support_items.schemas import PriceLimits, SupportItem

STATES = ("act", "nsw", "nt", "qld", "sa", "tas", "vic", "wa")
BY_STATE = {each: Decimal(100 + index) for index, each in enumerate(STATES)} | {
    "remote": Decimal(140),
    "very_remote": Decimal(150),
}
NATIONAL = {"national": Decimal(100), "remote": Decimal(140), "very_remote": Decimal(150)}


def support_item(limits: dict[str, Decimal], **values: Any) -> SupportItem:
    fields = {"type": PRICE_LIMITED, "has_price_limit": True, "price_limits": PriceLimits(**limits)} | values
    return SupportItem(
        support_item_number="15_056_0128_1_3", start_date=date(2026, 7, 1), name="Therapy", category=15, **fields
    )


@pytest.mark.parametrize(
    "limits, state, remoteness, expected",
    [
        (BY_STATE, "ACT", None, 100),
        (BY_STATE, "wa", None, 107),
        (BY_STATE, "WA", "remote", 140),
        (BY_STATE, None, "very_remote", 150),
        (BY_STATE, None, None, None),  # the states differ
        (BY_STATE, "XYZ", None, None),
        (dict.fromkeys(STATES, Decimal(100)), None, None, 100),
        ({"nsw": Decimal(100)}, "VIC", None, None),
        ({"nsw": Decimal(100)}, "NSW", "remote", None),
        (NATIONAL, "WA", None, 100),
        (NATIONAL, None, None, 100),
        (NATIONAL, None, "remote", 140),
        ({}, "NSW", None, None),
    ],
)
def test_the_price_limit_depends_on_the_place(
    limits: dict[str, Decimal], state: str | None, remoteness: Remoteness | None, expected: int | None
) -> None:
    assert price_limit(support_item(limits), state, remoteness) == expected


def test_only_one_type_has_price_limits() -> None:
    item = support_item({"nsw": Decimal(1)}, type="Unit Price = $1", has_price_limit=False)
    assert price_limit(item, "NSW", None) is None
    assert price_limit(support_item({}, price_limits=None), "NSW", None) is None


def test_the_category_depends_on_the_kind_of_plan() -> None:
    item = support_item({}, pace_category=21)
    assert (category_of_item(item, is_pace_plan=True), category_of_item(item, is_pace_plan=False)) == (21, 15)
    assert category_of_item(support_item({}), is_pace_plan=True) == 15
