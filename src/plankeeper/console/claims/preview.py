"""What a claim batch contains and leaves out, grouped by the reason, as its pages show it."""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

from msgspec import UNSET

from plankeeper.console.claims.line_groups import (
    MAX_SHOWN,
    GroupedLine,
    GroupPlace,
    GroupWords,
    LineGroup,
    ShownLine,
    load_groups,
    load_lines,
)
from plankeeper.console.claims.list import CLAIMS_URL
from plankeeper.console.components.pagination import with_query
from plankeeper.console.shell.routing import PREFIX, PageRequest
from plankeeper.resources.claims.candidates import read_amounts
from plankeeper.resources.claims.eligibility import REASONS, WARNED_CODES, Candidate, CandidateState, LineKey
from plankeeper.resources.claims.preview import LeftOutCandidate
from plankeeper.resources.claims.schemas import ClaimBatch
from plankeeper.resources.claims.service import BatchPreview
from plankeeper.resources.invoices.warnings import WARNINGS

NEW_URL = f"{CLAIMS_URL}/new"
_SETTINGS = f"{PREFIX}/settings/claims-and-payments"
_TITLES: Mapping[str, str] = {
    "state": "Claimed already, or closed",
    "wont_claim": "Excluded from claims",
    "held": "On hold",
    "approval_pending": "Waiting for approval",
    "approval_rejected": "Approval rejected",
    "blocking_warning": "With a warning that blocks claims",
    "missing_registration_number": "Your registration number is missing",
    "missing_ndis_number": "NDIS number missing or wrong",
    "missing_item": "Without a support item",
    "invalid_item": "Support item not allowed in the file",
    "missing_service_date": "Service dates missing or wrong",
    "future_service": "Service in the future",
    "across_plans": "Service in two plans",
    "across_funding_periods": "Service in two funding periods",
    "inexpressible_quantity": "Quantity not allowed in the file",
    "inexpressible_total": "Amount not allowed in the file",
    "zero_or_less": "Amount of zero or less",
    "missing_abn": "ABN missing or wrong",
    "p1_undecided": "GST of unit prices undecided",
    "batch_full": "For the next batch",
}
_TEXTS: Mapping[str, str] = {**REASONS}
# Pages that help with all lines of a reason.
_LINKS: Mapping[str, tuple[str, str]] = {
    "held": (f"{PREFIX}/review?queue=held", "Review the held invoices"),
    "approval_pending": (f"{PREFIX}/review?queue=approval", "Show what waits for approval"),
    "blocking_warning": (f"{PREFIX}/review", "Review the invoices"),
    "missing_registration_number": (_SETTINGS, "Enter it in the settings"),
    "p1_undecided": (_SETTINGS, "Decide it in the settings"),
}


class BatchContent(NamedTuple):
    """The groups of a batch: with a warning, left out, and left out because the batch is full.

    `included` are the first lines of a new batch. `single` is the group that the address names.
    """

    included: Sequence[ShownLine]
    warned: Sequence[LineGroup]
    left_out: Sequence[LineGroup]
    full: LineGroup | None
    left_out_count: int  # without those of the next batch
    is_cut: bool  # whether more lines are left out than the groups count
    single: LineGroup | None


def included_url(warning: str = "") -> str:
    """The page with the lines of a new batch, or with those with a warning."""
    return with_query(f"{NEW_URL}/lines", {"warning": warning})


def left_out_url(reason: str) -> str:
    """The page with the lines that a new batch leaves out for a reason."""
    return with_query(f"{NEW_URL}/left-out", {"reason": reason})


def words_of(name: str) -> GroupWords:
    """The words of a reason, or of a warning."""
    title = _TITLES.get(name) or (WARNINGS[name].title if name in WARNINGS else name)
    return GroupWords(title, _TEXTS.get(name, ""), _LINKS.get(name))


async def load_preview(request: PageRequest, preview: BatchPreview) -> BatchContent:
    """The first lines and the groups of a new batch. Only what is shown is read."""
    claimed, left_out = preview.selection.claimed, preview.selection.left_out
    amounts = await _amounts(request, [line for line, _ in left_out])
    warned = [
        GroupedLine(code, each.key, each.claimed_amount)
        for code in WARNED_CODES
        for each in claimed
        if code in each.warned_codes
    ]
    others = [GroupedLine(why.reason, line.key, amounts.get(line.key), why.message) for line, why in left_out]

    def list_url(name: str) -> str:
        return included_url(name) if name in WARNED_CODES else left_out_url(name)

    groups = await load_groups(request, [*warned, *others], words_of, GroupPlace(NEW_URL, {}, {}, list_url))
    content = _to_content(groups, len(left_out), is_cut=False)
    return content._replace(included=await show_included(request, claimed[:MAX_SHOWN]))


async def load_content(request: PageRequest, batch: ClaimBatch, url: str) -> BatchContent:
    """The groups of a stored batch on the page at `url`."""
    warned = [(code, (each.invoice_id, each.line_id), "") for each in batch.warned or () for code in each.codes]
    left_out = [(each.reason, (each.invoice_id, each.line_id), each.message) for each in batch.left_out or ()]
    listed = [*warned, *left_out]
    place = (request.executor, request.plan_manager_id)
    amounts = await read_amounts(*place, [key for _, key, _ in listed]) if listed else {}
    lines = [GroupedLine(name, key, amounts.get(key), message) for name, key, message in listed]
    groups = await load_groups(request, lines, words_of, GroupPlace(url, {}, {}))
    is_cut = batch.left_out is not UNSET and batch.left_out_count > len(left_out)
    return _to_content(groups, batch.left_out_count, is_cut=is_cut)


def _to_content(groups: Mapping[str, LineGroup], left_out_count: int, *, is_cut: bool) -> BatchContent:
    full = groups.get("batch_full")
    return BatchContent(
        (),
        [groups[code] for code in WARNED_CODES if code in groups],
        [groups[reason] for reason in REASONS if reason in groups and reason != "batch_full"],
        full,
        left_out_count - (full.line_count if full else 0),
        is_cut,
        next((each for each in groups.values() if each.part), None),
    )


async def _amounts(request: PageRequest, lines: Iterable[CandidateState]) -> dict[LineKey, Decimal]:
    """The amounts of lines: those that were examined have theirs."""
    found, others = dict[LineKey, Decimal](), list[LineKey]()
    for each in lines:
        if not isinstance(each, Candidate):
            others.append(each.key)
        elif each.amount is not None:
            found[each.key] = each.amount
    place = (request.executor, request.plan_manager_id)
    return found | (await read_amounts(*place, others) if others else {})


async def show_included(request: PageRequest, lines: Sequence[Candidate]) -> list[ShownLine]:
    """Lines of a new batch with the titles of their warnings. They are recorded in the access log."""
    shown = await load_lines(request, [each.key for each in lines], {})
    return [
        shown[each.key]._replace(
            amount=each.claimed_amount, warnings=[WARNINGS[code].title for code in each.warned_codes]
        )
        for each in lines
        if each.key in shown
    ]


async def show_left_out(request: PageRequest, lines: Sequence[LeftOutCandidate], text: str) -> list[ShownLine]:
    """Lines that a new batch leaves out, with what `text` doesn't say. They are recorded in the access log."""
    shown = await load_lines(request, [each.line.key for each in lines], {})
    amounts = await _amounts(request, [each.line for each in lines])
    return [
        shown[line.key]._replace(amount=amounts.get(line.key), message=why.message if why.message != text else None)
        for line, why in lines
        if line.key in shown
    ]
