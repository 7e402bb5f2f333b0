"""The warnings of invoices: the code, title, sentence and usual level of each."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Literal, NamedTuple

from msgspec import Struct

from plankeeper.core.fields import component

Level = Literal["inform", "warn", "block"]
Subject = Literal["invoice", "line_item"]


class InvoiceWarning(NamedTuple):
    """The explanation of a warning: where it applies, a short title, one sentence, and its level by default."""

    applies_to: Subject
    title: str
    description: str
    level: Level = "warn"


class CodeLevel(Struct, frozen=True):
    """The level of a warning, if it isn't the usual one."""

    code: str
    level: Level


_invoice: Subject = "invoice"
_line: Subject = "line_item"
WARNINGS: Mapping[str, InvoiceWarning] = MappingProxyType(
    {
        "missing_invoice_number": InvoiceWarning(
            _invoice,
            "No invoice number",
            "The invoice has no number, so it cannot be distinguished from others.",
            "block",
        ),
        "missing_participant": InvoiceWarning(
            _invoice, "No participant", "There is no participant on the invoice, or it isn’t found.", "block"
        ),
        "missing_provider": InvoiceWarning(
            _invoice, "No provider", "There is no provider on the invoice, or it isn’t found.", "block"
        ),
        "several_participants": InvoiceWarning(
            _invoice,
            "Several participants",
            "Several participants have the number that was sent, so the invoice has no participant.",
            "block",
        ),
        "several_providers": InvoiceWarning(
            _invoice,
            "Several providers",
            "Several providers have the ABN that was sent, so the invoice has no provider.",
            "block",
        ),
        "inactive_participant": InvoiceWarning(
            _invoice, "Participant is inactive", "The participant has left this plan manager."
        ),
        "not_managed": InvoiceWarning(
            _line,
            "Plan not managed by us",
            "A service is before or after the time in which the office manages the participant’s plan.",
            "block",
        ),
        "after_death": InvoiceWarning(
            _line, "Service after death", "A service is after the participant’s date of death.", "block"
        ),
        "inactive_provider": InvoiceWarning(_invoice, "Provider is inactive", "The provider is marked as inactive."),
        "flagged_participant": InvoiceWarning(
            _invoice, "Alert on the participant", "A note on the participant is marked as an alert."
        ),
        "flagged_provider": InvoiceWarning(
            _invoice, "Alert on the provider", "A note on the provider is marked as an alert."
        ),
        "first_time_provider": InvoiceWarning(
            _invoice, "First invoice of provider", "There is no earlier invoice from this provider.", "inform"
        ),
        "check_abn": InvoiceWarning(
            _invoice, "Check the ABN", "The provider has no ABN, or one that isn’t 11 digits with a valid check digit."
        ),
        "check_total": InvoiceWarning(
            _invoice,
            "Amounts don’t add up",
            "The total is not the subtotal plus tax, the subtotal is not the sum of the lines, or a line is "
            "not its quantity times its unit price.",
        ),
        "check_gst": InvoiceWarning(
            _invoice, "Check the GST", "The tax isn’t a tenth of the lines with the GST code P1, to the cent."
        ),
        "negative_line": InvoiceWarning(
            _line,
            "Negative amount",
            "The total or a line is negative. A credit is recorded as a refund on the line that it concerns.",
            "block",
        ),
        "check_dates": InvoiceWarning(
            _invoice,
            "Check the date",
            "The invoice date is missing or in the future, or a service is outside all plans of the participant.",
        ),
        "service_in_future": InvoiceWarning(
            _line, "Service in the future", "A service is after today, so it can’t be claimed yet.", "block"
        ),
        "too_old": InvoiceWarning(
            _line, "Service too old", "A service was more than two years ago, so it can no longer be claimed.", "block"
        ),
        "check_item_code": InvoiceWarning(
            _line,
            "Support item number isn’t valid",
            "A line has no support item number, or one that isn’t in the support catalogue and doesn’t have the form "
            "CC_SSS_RRRR_D_P.",
        ),
        "unknown_item": InvoiceWarning(
            _line, "Unknown support item", "The support catalogue doesn’t have the item of a line.", "block"
        ),
        "item_not_in_force": InvoiceWarning(
            _line,
            "Support item not in force",
            "The support catalogue has the item of a line, but not for the day of the service.",
            "block",
        ),
        "price_above_limit": InvoiceWarning(
            _line,
            "Price above limit",
            "The unit price of a line is above the price limit of its item on the day of the service.",
        ),
        "check_funding_period": InvoiceWarning(
            _line,
            "Check the funding period",
            "A service is in two plans or in two funding periods, or in a period that hasn’t begun.",
            "block",
        ),
        "check_budget": InvoiceWarning(
            _line, "Beyond the budget", "A line costs more than the component of the plan has available."
        ),
        "possible_duplicate": InvoiceWarning(
            _invoice, "Possible duplicate", "An earlier invoice from the same provider has the same number.", "block"
        ),
        "line_duplicate": InvoiceWarning(
            _line,
            "Possible duplicate line",
            "Another invoice has a line with the same participant, item, dates and quantity.",
        ),
        "same_document": InvoiceWarning(
            _invoice,
            "Same document",
            "Another invoice, which is neither cancelled nor deleted, has the same document.",
            "block",
        ),
    }
)
"""All warnings, in the order in which the checks return them."""

RELATED_CODES = frozenset({"possible_duplicate", "line_duplicate", "same_document"})  # those about another invoice


def level_of(code: str, levels: Mapping[str, Level]) -> Level:
    """The level of a warning for a plan manager, of which `levels` are those that differ from the usual ones."""
    return levels.get(code) or (WARNINGS[code].level if code in WARNINGS else "warn")


def has_errors(codes: Sequence[str], ignored_codes: Sequence[str]) -> bool:
    """Whether any warning isn't ignored: the value of an invoice's `errors`."""
    return not set(codes) <= set(ignored_codes)


WarningCode = Annotated[
    Literal[
        "missing_invoice_number",
        "missing_participant",
        "missing_provider",
        "several_participants",
        "several_providers",
        "inactive_participant",
        "not_managed",
        "after_death",
        "inactive_provider",
        "flagged_participant",
        "flagged_provider",
        "first_time_provider",
        "check_abn",
        "check_total",
        "check_gst",
        "negative_line",
        "check_dates",
        "service_in_future",
        "too_old",
        "check_item_code",
        "unknown_item",
        "item_not_in_force",
        "price_above_limit",
        "check_funding_period",
        "check_budget",
        "possible_duplicate",
        "line_duplicate",
        "same_document",
    ],
    component("WarningCode", "The code of a warning of invoices."),
]
