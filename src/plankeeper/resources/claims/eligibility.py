"""Which lines can be claimed, and why the others are left out of a claim batch."""

from typing import Annotated, Literal

from plankeeper.core.fields import component

LeftOutReason = Annotated[
    Literal[
        "state",
        "wont_claim",
        "held",
        "approval_pending",
        "approval_rejected",
        "blocking_warning",
        "missing_registration_number",
        "missing_ndis_number",
        "missing_item",
        "invalid_item",
        "missing_service_date",
        "future_service",
        "across_plans",
        "across_funding_periods",
        "inexpressible_quantity",
        "inexpressible_total",
        "zero_or_less",
        "missing_abn",
        "p1_undecided",
        "batch_full",
    ],
    component("LeftOutReason", "Why a line isn't in a claim batch."),
]
WarnedCode = Annotated[
    Literal["line_duplicate", "check_budget", "price_above_limit"],
    component("ClaimWarningCode", "A warning that doesn't keep a line out of claim batches."),
]
