"""The file of a claim batch: the bulk payment request of the agency's portal, CSV in UTF-8 without quotes.

All functions take and return values. Amounts are in dollars to the cent.
"""

import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from itertools import count
from typing import Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import astuple

from plankeeper.core.formatting import to_cents

HEADER = (
    "RegistrationNumber",
    "NDISNumber",
    "SupportsDeliveredFrom",
    "SupportsDeliveredTo",
    "SupportNumber",
    "ClaimReference",
    "Quantity",
    "Hours",
    "UnitPrice",
    "GSTCode",
    "AuthorisedBy",
    "ParticipantApproved",
    "InKindFundingProgram",
    "ClaimType",
    "CancellationReason",
    "ABN of Support Provider",
)
REIMBURSEMENT = "REIMB"  # instead of the ABN: the participant has paid the provider
EXEMPT = "EXCLS"  # instead of the ABN: the provider doesn't have to quote one
MAX_REFERENCE_LENGTH = 50
_MAX_QUANTITY = 99_999
_MAX_DECIMAL_QUANTITY = 1000  # from here on, quantities have no decimals
_MAX_PRICE = Decimal(10) ** 6  # eight digits, of which two are cents
_NOT_IN_REFERENCES = re.compile(r"[^A-Za-z0-9/_-]")


class FileRow(Struct, frozen=True, kw_only=True):
    """A row of the file, in the order of its columns, as text."""

    registration_number: str
    ndis_number: str
    delivered_from: str
    delivered_to: str
    support_number: str
    claim_reference: str
    quantity: str
    hours: str = ""  # never together with a quantity
    unit_price: str
    gst_code: str
    authorised_by: str = ""
    participant_approved: str = ""
    in_kind_funding_program: str = ""
    claim_type: str
    cancellation_reason: str
    provider_abn: str


def render(rows: Iterable[FileRow]) -> bytes:
    """The file. Its fields contain neither commas nor quotes: see `eligibility`."""
    lines = [HEADER, *(astuple(each) for each in rows)]
    return "".join(",".join(each) + "\r\n" for each in lines).encode()


def file_name(batch_number: str) -> str:
    """The name of the file of batch `B000001`: shorter than the 20 characters that the portal allows."""
    digits = "".join(each for each in batch_number if each.isdigit())
    return f"C{digits:0>12}.csv"


# Quantities and prices


class Price(NamedTuple):
    """What a line costs, in dollars. `net` is without tax, `amount` what is claimed."""

    quantity: Decimal | None
    unit_price: Decimal | None
    net: Decimal | None
    amount: Decimal
    is_taxed: bool


Problem = Literal["inexpressible_quantity", "inexpressible_total"]


def express(price: Price, *, prices_include_gst: bool) -> tuple[str, str] | Problem:
    """The quantity and the unit price of a row, whose product is the amount to the cent, or what prevents it.

    Without GST in the prices, the product of a taxed line is its amount without tax.
    """
    quantity = format_quantity(price.quantity)
    if quantity is None or price.quantity is None:
        return "inexpressible_quantity"
    has_gst = price.is_taxed and prices_include_gst
    unit_price = price.unit_price
    if unit_price is None and price.net is not None:
        unit_price = price.net / price.quantity
    if unit_price is None or format_price(unit_price) is None:
        return "inexpressible_total"
    unit_price = to_cents(unit_price * 11 / 10) if has_gst else unit_price
    expected = price.net if price.is_taxed and not has_gst else price.amount
    text = format_price(unit_price)
    if text is None or expected is None or to_cents(price.quantity * unit_price) != to_cents(expected):
        return "inexpressible_total"
    return quantity, text


def express_rest(rest: Decimal, *, is_taxed: bool, prices_include_gst: bool) -> tuple[str, str] | Problem:
    """The same for the rest of a line that was paid in part: quantity 1."""
    price = rest
    if is_taxed and not prices_include_gst:
        price = to_cents(rest * 10 / 11)
        if price + to_cents(price / 10) != rest:
            return "inexpressible_total"
    text = format_price(price)
    return ("1.00", text) if text else "inexpressible_total"


def format_quantity(quantity: Decimal | None) -> str | None:
    """`1.50` below 1,000, `1500` from there on; None for what the file can't express."""
    if quantity is None or not quantity.is_finite() or quantity <= 0 or quantity > _MAX_QUANTITY:
        return None
    if quantity < _MAX_DECIMAL_QUANTITY:
        return f"{quantity:.2f}" if quantity == to_cents(quantity) else None
    return f"{quantity:.0f}" if quantity == quantity.to_integral_value() else None


def format_price(price: Decimal) -> str | None:
    """`193.99`; None for what the file can't express."""
    is_in_range = price.is_finite() and 0 < price < _MAX_PRICE
    return f"{price:.2f}" if is_in_range and price == to_cents(price) else None


# References


def references(number: str | None, line_number: int | None, suffix: str = "", first: int = 1) -> Iterator[str]:
    """The references that a claim can have, the best one first: with `-2`, `-3` and so on after it.

    `line_number` is that of a line of several, and `suffix` that of a further claim, such as `-R2`. The invoice's
    number is cut so that they fit. With `first`, they start at `-2` or later.
    """
    stem = _NOT_IN_REFERENCES.sub("", number or "") or "INV"
    line = f"_{line_number}" if line_number is not None else ""
    for collision in count(first):
        end = line + (f"-{collision}" if collision > 1 else "") + suffix
        yield stem[: MAX_REFERENCE_LENGTH - len(end)] + end


def collision_of(reference: str, number: str | None, line_number: int | None) -> int:
    """The number at the end of the reference of a first claim, such as 2 for `001-2`; 1 if it has none."""
    found = re.search(r"-([0-9]{1,9})$", reference)
    collision = int(found[1]) if found else 1
    return collision if collision > 1 and next(references(number, line_number, "", collision)) == reference else 1


def claim_suffix(earlier: int, *, is_rest: bool) -> str:
    """What distinguishes a further claim of a line. `earlier`: how many claims of the kind it has had.

    The second claim of a line ends in `-R2`, and the first one of its rest in `-G2`.
    """
    if is_rest:
        return f"-G{earlier + 2}"
    return f"-R{earlier + 1}" if earlier else ""
