"""The list of claim batches, the newest first."""

from typing import Any

from plankeeper.console.components.labels import humanize
from plankeeper.console.lists.columns import MADE_AT, MADE_BY
from plankeeper.console.lists.definition import BuiltInView, Column, ListButton, ListDefinition, Names
from plankeeper.console.lists.filters import choice_filter
from plankeeper.console.shell.routing import PREFIX
from plankeeper.resources.claims import store
from plankeeper.resources.claims.schemas import ClaimBatch

CLAIMS_URL = f"{PREFIX}/claims"
STATES = {
    "draft": "Draft",
    "submitted": "Submitted",
    "part_processed": "Partly processed",
    "processed": "Processed",
    "cancelled": "Cancelled",
}


def _state(batch: ClaimBatch, _names: Names) -> str:
    return STATES.get(batch.state) or humanize(batch.state)


def _lines(batch: ClaimBatch, _names: Names) -> str:
    return f"{batch.lines:,}"


def _is_cancelled(batch: Any) -> bool:
    return batch.state == "cancelled"


CLAIM_BATCHES = ListDefinition(
    kind="claims",
    title="Claims",
    one="claim batch",
    many="claim batches",
    rows=store.LIST,
    get_rows=store.get_many,
    columns=(
        Column("number", "Number", "record"),
        Column("state", "State", "text", _state),
        Column("lines", "Lines", "text", _lines),
        Column("total", "Amount", "money"),
        MADE_BY,
        MADE_AT,
        Column("submitted_at", "Submitted", "datetime", is_default=False),
        Column("left_out_count", "Left out", "text", is_default=False),
    ),
    filters=(choice_filter(store.LIST, "state", STATES),),
    sort="-id",
    empty="There are no claim batches yet. Make one: it takes all lines that can be claimed now.",
    buttons=(ListButton("Make a claim batch", f"{CLAIMS_URL}/new", "manager"),),
    views=(
        BuiltInView("To submit", {"state": "draft"}),
        BuiltInView("Waiting for results", {"state": "submitted"}),
        BuiltInView("Partly processed", {"state": "part_processed"}),
    ),
    is_past=_is_cancelled,
    past_label="cancelled",
    role="manager",
    download_role="manager",
)
