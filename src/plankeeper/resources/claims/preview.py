"""Pages of the lines that a new claim batch would contain, or leave out for a reason.

The candidates are those of a batch, in its order. Only the invoices of a page are looked at, with the checks of a
batch: what they find doesn't depend on the other lines of the batch. Only pages about what comes after as many
candidates as a batch has lines depend on where the batch is full. The totals are in `service.preview`.
"""

from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from itertools import islice
from typing import Generic, NamedTuple, TypeVar

from plankeeper.core.context import WriteContext
from plankeeper.resources.claims import candidates, service
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
from plankeeper.resources.claims.service import BATCH_FULL, Candidates

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
    found = await service.choose_candidates(ctx, new)
    lines = list[Candidate]()
    async for line in _examine_after(ctx, found, after, found.choice.to_flag, ends_when_full=True):
        if not isinstance(line, Candidate) or find_reason(line, found.office):
            continue
        if warning is None or warning in line.warned_codes:
            lines.append(line)
            if len(lines) > limit:
                break
    return _cut(lines, limit, lambda line: line.key)


async def list_left_out(
    ctx: WriteContext, new: NewClaimBatch, reason: Reason, after: LineKey | None, limit: int
) -> LinesPage[LeftOutCandidate]:
    """The lines that a batch leaves out for a reason, after a line of the last page.

    Raises ValidationError for unknown invoices.
    """
    found = await service.choose_candidates(ctx, new)
    if reason == "batch_full":
        return _list_stated(await _list_next(ctx, found), after, lambda _: BATCH_FULL, reason, limit)
    claimable = {each.key for each in found.choice.claimable}
    others = [each for each in found.lines if each.key not in claimable]
    if reason in _STATED:
        return _list_stated(others, after, find_state_reason, reason, limit)
    lines, known = list[LeftOutCandidate](), found.choice.left_out
    async for line in _examine_after(ctx, found, after, others, known):
        why = find_reason(line, found.office) if isinstance(line, Candidate) else known.get(line.key)
        if why and why.reason == reason:
            lines.append(LeftOutCandidate(line, why))
            if len(lines) > limit:
                break
    return _cut(lines, limit, lambda each: each.line.key)


async def _list_next(ctx: WriteContext, found: Candidates) -> Sequence[CandidateState]:
    """The lines that a batch doesn't look at, because it is full before."""
    claimable = found.choice.claimable
    return claimable[(await service.search(ctx, found)).end :] if len(claimable) > service.MAX_LINES else ()


def _list_stated(
    lines: Sequence[CandidateState],
    after: LineKey | None,
    find: Callable[[CandidateState], LeftOut | None],
    reason: Reason,
    limit: int,
) -> LinesPage[LeftOutCandidate]:
    """The lines with a reason that needs no further look, after one."""
    stated = ((line, find(line)) for line in lines[_index_after(lines, after) :])
    matching = (LeftOutCandidate(line, why) for line, why in stated if why and why.reason == reason)
    return _cut([*islice(matching, limit + 1)], limit, lambda each: each.line.key)


def _index_after(lines: Sequence[CandidateState], key: LineKey | None) -> int:
    """Where the lines after one begin; 0 if it isn't among them any more, or is the last one."""
    index = next((index for index, each in enumerate(lines, 1) if each.key == key), 0)
    return index if index < len(lines) else 0


def _cut(found: Sequence[L], limit: int, key_of: Callable[[L], LineKey]) -> LinesPage[L]:
    return LinesPage(found[:limit], key_of(found[limit - 1]) if len(found) > limit else None)


async def _examine_after(
    ctx: WriteContext,
    found: Candidates,
    after: LineKey | None,
    others: Sequence[CandidateState],
    known: Collection[LineKey] = (),
    *,
    ends_when_full: bool = False,
) -> AsyncIterator[CandidateState]:
    """The lines after one that a batch looks at until it is full, and then the others, if they matter then."""
    claimable, most = found.choice.claimable, service.MAX_LINES
    start = _index_after([*claimable, *others], after)
    async for line in _examine(ctx, claimable[start:most], found.office):
        yield line
    if start < len(claimable) and len(claimable) >= most:
        searched = await service.search(ctx, found)
        async for line in _examine(ctx, claimable[max(start, most) : searched.end], found.office):
            yield line
        if ends_when_full and len(searched.claimed) == most:
            return
    async for line in _examine(ctx, others[max(0, start - len(claimable)) :], found.office, known):
        yield line


async def _examine(
    ctx: WriteContext, lines: Iterable[CandidateState], office: Office, known: Collection[LineKey] = ()
) -> AsyncIterator[CandidateState]:
    """The lines with what decides about them, some of them at a time, except for those that are known."""
    waiting, size = iter(lines), FIRST_EXAMINED
    while some := [*islice(waiting, size)]:
        size = min(2 * size, MOST_EXAMINED)
        keys = [each.key for each in some if each.key not in known]
        examined = await candidates.read_and_examine(ctx.tx, ctx.plan_manager_id, keys, office)
        for line in some:
            yield line if line.key in known else examined.get(line.key, line)
