"""Soft validation: shared by the rules of all records. Rules warn of unusual values, and are pure functions."""

import re
from collections.abc import Iterator
from typing import NamedTuple
from uuid import UUID

MIN_PHONE_DIGITS, MAX_PHONE_DIGITS = 8, 15  # a local number; the limit of E.164
SHORT_NUMBER = re.compile(r"13[0-9]{4}")  # national numbers with six digits
POSTCODES = {
    "ACT": ((200, 299), (2600, 2618), (2900, 2920)),
    "NSW": ((1000, 2599), (2619, 2899), (2921, 2999)),
    "NT": ((800, 999),),
    "QLD": ((4000, 4999), (9000, 9999)),
    "SA": ((5000, 5999),),
    "TAS": ((7000, 7999),),
    "VIC": ((3000, 3999), (8000, 8999)),
    "WA": ((6000, 6999),),
}
# Postcodes with places in more than one state.
SHARED_POSTCODES = {
    872: ("SA", "WA", "QLD"),
    2406: ("QLD",),
    2540: ("ACT",),
    2611: ("NSW",),
    2620: ("ACT",),
    3585: ("NSW",),
    3586: ("NSW",),
    3644: ("NSW",),
    3691: ("NSW",),
    3707: ("NSW",),
    4375: ("NSW",),
    4377: ("NSW",),
    4380: ("NSW",),
    4383: ("NSW",),
    4385: ("NSW",),
    4825: ("NT",),
}  # fmt: skip - one line for each postcode is too long


class ValueWarning(NamedTuple):
    """A warning about an unusual value. A message in lower case continues the field's label.

    `record_id` is another record that the message is about.
    """

    field: str
    message: str
    record_id: UUID | None = None


def find_implausible_phone(field: str, text: str | None) -> Iterator[ValueWarning]:
    digits = re.sub(r"[^0-9]", "", text or "")
    is_plausible = MIN_PHONE_DIGITS <= len(digits) <= MAX_PHONE_DIGITS or SHORT_NUMBER.fullmatch(digits)
    if text and text.strip() and not is_plausible:
        yield ValueWarning(field, "should have 8 to 15 digits, such as 0491 570 156")


def find_implausible_postcode(text: str | None, state: str | None) -> Iterator[ValueWarning]:
    postcode = (text or "").strip()
    if not postcode:
        return
    if not re.fullmatch(r"[0-9]{4}", postcode):
        yield ValueWarning("postcode", "should have 4 digits")
        return
    states = states_of_postcode(int(postcode))
    if not states:
        yield ValueWarning("postcode", f"{postcode} isn’t a postcode in Australia")
    elif state and state.upper() not in states:
        yield ValueWarning("postcode", f"{postcode} is in {' and '.join(states)}, not in {state.upper()}")


def states_of_postcode(postcode: int) -> tuple[str, ...]:
    """The states in which a postcode has places, the main one first."""
    main = tuple(
        state for state, ranges in POSTCODES.items() if any(first <= postcode <= last for first, last in ranges)
    )
    return main + SHARED_POSTCODES.get(postcode, ())
