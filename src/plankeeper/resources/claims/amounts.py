"""Amounts of money in requests."""

from decimal import Decimal

from plankeeper.core.errors import FieldError
from plankeeper.core.validation import is_amount

MAX_AMOUNT = Decimal(10) ** 10  # dollars


def find_amount_error(amount: Decimal) -> FieldError | None:
    """The error of an amount that isn't above zero, or not in dollars and cents."""
    if not is_amount(amount, 2):
        return FieldError("amount", "must be an amount in dollars with at most two decimal places", "invalid_format")
    if amount <= 0:
        return FieldError("amount", "must be above zero", "too_small")
    if amount >= MAX_AMOUNT:
        return FieldError("amount", "must be below 10,000,000,000", "too_large")
    return None
