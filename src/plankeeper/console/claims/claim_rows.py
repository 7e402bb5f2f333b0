"""The claims of a batch with their invoices, a page of them at a time."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

from plankeeper.console.claims.line_groups import ShownLine, describe_line, line_url, load_names
from plankeeper.console.claims.list import CLAIMS_URL
from plankeeper.console.claims.paging import PagePart, select_part
from plankeeper.console.components.pagination import with_query
from plankeeper.console.shell.routing import PageRequest
from plankeeper.resources.claims import store
from plankeeper.resources.claims.schemas import Claim, ClaimBatch
from plankeeper.resources.invoices import store as invoice_store

STATES: Mapping[str, str] = {
    "draft": "Draft",
    "submitted": "Pending",
    "paid": "Paid",
    "partially_paid": "Paid in part",
    "rejected": "Rejected",
    "cancelled": "Cancelled",
}


class ClaimRow(NamedTuple):
    """A claim with its line; the line is null for an invoice that no longer exists."""

    claim: Claim
    line: ShownLine | None
    state: str
    url: str


class ClaimPage(NamedTuple):
    """A page of the claims of a batch. `tabs` are the states with their numbers: address, label, count.

    The claimed amount is `paid`, `open_amount` and `not_paid`: rejected, short or cancelled.
    """

    rows: Sequence[ClaimRow]
    tabs: Sequence[tuple[str, str, int]]
    current: str
    part: PagePart
    paid: Decimal
    open_amount: Decimal
    not_paid: Decimal
    has_rejected: bool


async def load_claims(request: PageRequest, batch: ClaimBatch) -> ClaimPage:
    """The claims with the state and on the page that the address names. They are recorded in the access log."""
    assert batch.id is not None  # noqa: S101 - only that of a dry run has none
    claims = await store.list_of_batch(request.executor, request.plan_manager_id, batch.id)
    state = request.query.text("state") if request.query.text("state") in STATES else ""
    matching = [each for each in claims if not state or each.state == state]
    part = select_part(request, len(matching), f"{CLAIMS_URL}/{batch.id}", {"state": state})

    def url(state: str) -> str:
        return with_query(f"{CLAIMS_URL}/{batch.id}", {"state": state})

    counts = {name: sum(each.state == name for each in claims) for name in STATES}
    answered = [each for each in claims if each.state not in ("draft", "submitted")]
    return ClaimPage(
        await _load_rows(request, matching[part.first : part.end]),
        [(url(""), "All", len(claims)), *((url(name), STATES[name], count) for name, count in counts.items() if count)],
        url(state),
        part,
        sum((each.paid or Decimal(0) for each in claims), Decimal(0)),
        sum((each.amount for each in claims if each.state == "submitted"), Decimal(0)),
        sum((each.amount - (each.paid or Decimal(0)) for each in answered), Decimal(0)),
        counts["rejected"] > 0,
    )


async def _load_rows(request: PageRequest, claims: Sequence[Claim]) -> list[ClaimRow]:
    ids = list(dict.fromkeys(each.invoice_id for each in claims))
    request.record_list("invoice", ids, {})
    found = await invoice_store.get_many(request.executor, request.plan_manager_id, ids)
    invoices, names = {each.id: each for each in found}, await load_names(request, found)
    return [
        ClaimRow(
            each,
            describe_line(invoices[each.invoice_id], each.line_id, names) if each.invoice_id in invoices else None,
            STATES[each.state],
            line_url(each.invoice_id, each.line_id),
        )
        for each in claims
    ]
