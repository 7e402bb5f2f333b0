"""Schemas of the bodies of actions on invoices and their lines."""

from datetime import date
from decimal import Decimal
from typing import Annotated

from msgspec import Meta, Struct

from plankeeper.resources.invoices.schemas import WarningCode

Quantity = Annotated[Decimal, Meta(extra_json_schema={"type": "number"})]
MAX_REASON_LENGTH = 10_000
ReasonText = Annotated[str, Meta(min_length=1, max_length=MAX_REASON_LENGTH)]


class ActionReason(Struct, forbid_unknown_fields=True, kw_only=True):
    """Why an action is taken."""

    reason: Annotated[ReasonText, Meta(description="The reason, for the people who read it later.")]


class LineSplit(Struct, forbid_unknown_fields=True, kw_only=True):
    """How a line is split into two."""

    date: Annotated[date, Meta(description="The first day of the second part.")]
    quantities: Annotated[
        Annotated[list[Quantity], Meta(min_length=2, max_length=2)],
        Meta(description="The quantities of both parts, which add up to the quantity of the line."),
    ]


class IgnoredWarningCode(Struct, forbid_unknown_fields=True, kw_only=True):
    """A warning that counts again."""

    code: Annotated[WarningCode, Meta(description="The code of the warning.")]


class WarningToIgnore(IgnoredWarningCode, kw_only=True):
    """A warning that doesn't count any more."""

    reason: Annotated[ReasonText, Meta(description="The reason, for the people who read it later.")]
