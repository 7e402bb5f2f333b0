"""What an item of the support catalogue says: its price limit for a participant, and its support category."""

from datetime import date
from decimal import Decimal
from typing import Literal

from msgspec import UNSET

from plankeeper.resources.support_items.schemas import PricedItem, PriceLimits, SupportItem

PRICE_LIMITED = "Price Limited Supports"  # the only type whose prices are limits
Remoteness = Literal["remote", "very_remote"]
_STATES = ("act", "nsw", "nt", "qld", "sa", "tas", "vic", "wa")


def is_in_force(item: SupportItem, day: date) -> bool:
    return item.start_date <= day and (item.end_date is None or item.end_date >= day)


def price_limit(item: PricedItem | SupportItem, state: str | None, remoteness: Remoteness | None) -> Decimal | None:
    """The highest price of a unit in dollars, or None if there is none or it isn't known.

    `state` is a participant's state, such as `NSW`; without one, there is a limit if all states have the same.
    """
    limits = item.price_limits
    if limits is None or not item.has_price_limit:
        return None
    if remoteness:
        return _value(limits, remoteness)
    national = _value(limits, "national")
    if national is not None:
        return national
    if state and state.lower() in _STATES:
        return _value(limits, state.lower())
    amounts = {_value(limits, each) for each in _STATES}
    return amounts.pop() if len(amounts) == 1 else None


def _value(limits: PriceLimits, name: str) -> Decimal | None:
    value: Decimal | None = getattr(limits, name)
    return None if value is UNSET else value


def category_of_item(item: PricedItem | SupportItem, is_pace_plan: bool) -> int:
    """The support category of an item in plans of a kind."""
    return item.pace_category if is_pace_plan and item.pace_category is not None else item.category
