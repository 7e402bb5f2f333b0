"""Schemas of the facts of warnings."""

from typing import Annotated, Any, Literal
from uuid import UUID

from msgspec import Meta, Struct

from plankeeper.core.fields import AwareDatetime, component

WarningLevel = Annotated[
    Literal["inform", "warn", "block"], component("WarningLevel", "How serious a warning is, for programs.")
]


class IgnoredBy(Struct):
    """Who has ignored a warning. All fields are null for a warning that an import has marked as ignored."""

    by: Annotated[str | None, Meta(description="The name of the account or the API key, or null.")]
    at: Annotated[AwareDatetime | None, Meta(description="When the warning was ignored, or null.")]
    reason: Annotated[str | None, Meta(description="Why the warning was ignored, or null.")]


# Amounts are numbers, dates and numbers of records are texts.
CheckedValue = Annotated[Any, Meta(extra_json_schema={"type": ["number", "string", "null"]})]


class WarningDetails(Struct):
    """One fact that a warning of an invoice is about."""

    code: Annotated[str, Meta(description="The code of the warning.")]
    level: Annotated[
        WarningLevel, Meta(description="How serious the warning is for the office, which can choose it for each code.")
    ]
    line_id: Annotated[UUID | None, Meta(description="The line that it is about, or null.")]
    expected: Annotated[CheckedValue, Meta(description="The value or the limit that would be right, or null.")]
    found: Annotated[CheckedValue, Meta(description="The value of the invoice or the line, or null.")]
    related_invoice_id: Annotated[
        UUID | None, Meta(description="The latest earlier invoice that this one may duplicate, or null.")
    ]
    message: Annotated[str, Meta(description="A sentence for people. Its text can change.")]
    ignored: Annotated[IgnoredBy | None, Meta(description="Who has ignored the warning, or null.")]
