"""Pages of the lines that a new claim batch would contain, or leave out for a reason.

The candidates are those of a batch, in its order. Only the invoices of a page are looked at, with the checks of a
batch: what they find doesn't depend on the other lines of the batch. The totals are in `service.preview`.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from itertools import dropwhile, islice
from typing import Generic, NamedTuple, TypeVar

from plankeeper.core.context import WriteContext
from plankeeper.resources.claims import candidates
from plankeeper.resources.claims.eligibility import (
    Candidate,
    CandidateState,
    LeftOut,
    LineKey,
    Office,
    Reason,
    WarnedCode,
    find_reason,
    find_state_reason,
)
from plankeeper.resources.claims.schemas import NewClaimBatch
from plankeeper.resources.claims.service import choose_candidates
from plankeeper.resources.invoices import store as invoice_store

FIRST_EXAMINED, MOST_EXAMINED = 100, 1000  # lines at once: a rare reason is searched in larger parts
# What the statement that lists the candidates has read decides about these.
_STATED = frozenset[Reason]({"state", "wont_claim", "held", "approval_pending", "approval_rejected", "batch_full"})


class LeftOutCandidate(NamedTuple):
    """A line with the reason for which it is left out, and the sentence about it."""

    line: CandidateState
    why: LeftOut


L = TypeVar("L")


class LinesPage(NamedTuple, Generic[L]):
    """Some lines. `next` is the key of the last one if others follow."""

    lines: Sequence[L]
    next: LineKey | None


async def list_included(
    ctx: WriteContext, new: NewClaimBatch, warning: WarnedCode | None, after: LineKey | None, limit: int
) -> LinesPage[Candidate]:
    """The lines of a batch in the order of its file, or those with a warning, after a line of the last page.

    Raises ValidationError for unknown invoices.
    """
    office, _, choice = await choose_candidates(ctx, new)
    found = list[Candidate]()
    async for line in _examine(ctx, _after(choice.examined, after), office):
        if not isinstance(line, Candidate) or find_reason(line, office):
            continue
        if warning is None or warning in line.warned_codes:
            found.append(line)
            if len(found) > limit:
                break
    return _cut(found, limit, lambda line: line.key)


async def list_left_out(
    ctx: WriteContext, new: NewClaimBatch, reason: Reason, after: LineKey | None, limit: int
) -> LinesPage[LeftOutCandidate]:
    """The lines that a batch leaves out for a reason, after a line of the last page.

    Raises ValidationError for unknown invoices.
    """
    office, lines, choice = await choose_candidates(ctx, new)
    rest, found = _after(lines, after), list[LeftOutCandidate]()
    if reason in _STATED:
        stated = ((line, choice.left_out.get(line.key) or find_state_reason(line)) for line in rest)
        matching = (LeftOutCandidate(line, why) for line, why in stated if why and why.reason == reason)
        return _cut([*islice(matching, limit + 1)], limit, lambda each: each.line.key)
    async for line in _examine(ctx, rest, office, choice.left_out):
        why = find_reason(line, office) if isinstance(line, Candidate) else choice.left_out.get(line.key)
        if why and why.reason == reason:
            found.append(LeftOutCandidate(line, why))
            if len(found) > limit:
                break
    return _cut(found, limit, lambda each: each.line.key)


def _after(lines: Sequence[CandidateState], key: LineKey | None) -> Iterable[CandidateState]:
    """The lines after one, or all of them if it isn't among them any more."""
    rest = [*islice(dropwhile(lambda each: each.key != key, lines), 1, None)] if key else []
    return rest or lines


def _cut(found: Sequence[L], limit: int, key_of: Callable[[L], LineKey]) -> LinesPage[L]:
    return LinesPage(found[:limit], key_of(found[limit - 1]) if len(found) > limit else None)


async def _examine(
    ctx: WriteContext, lines: Iterable[CandidateState], office: Office, known: Iterable[LineKey] = ()
) -> AsyncIterator[CandidateState]:
    """The lines with what decides about them, some of them at a time, except for those that are known."""
    waiting, known, size = iter(lines), frozenset(known), FIRST_EXAMINED
    while some := [*islice(waiting, size)]:
        size = min(2 * size, MOST_EXAMINED)
        ids = sorted({each.invoice_id for each in some if each.key not in known})
        invoices = {each.id: each for each in await invoice_store.get_many(ctx.tx, ctx.plan_manager_id, ids)}
        examined = await candidates.examine(ctx.tx, ctx.plan_manager_id, invoices, office)
        for line in some:
            yield line if line.key in known else examined.get(line.key, line)
