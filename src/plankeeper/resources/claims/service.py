"""Claim batches: make, submit, cancel, and the file. The API and the console share these operations.

A batch locks in this order: the batch, its invoices in order of id, and the counter of the office's numbers.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from itertools import islice
from typing import NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

from msgspec import UNSET
from msgspec.structs import replace
from uuid_utils.compat import uuid7

from plankeeper.core.context import Disclosure, WriteContext, or_404
from plankeeper.core.errors import DomainError, ErrorResource, FieldError, ValidationError
from plankeeper.core.fields import unset_to_none
from plankeeper.core.files import Download
from plankeeper.core.json import to_json
from plankeeper.events.recorder import record_event
from plankeeper.resources.claims import candidate_store, candidates, store
from plankeeper.resources.claims.batch_file import (
    claim_suffix,
    collision_of,
    file_name,
    references,
    render,
)
from plankeeper.resources.claims.candidates import Choice
from plankeeper.resources.claims.eligibility import (
    REASONS,
    Candidate,
    CandidateState,
    LeftOut,
    LineKey,
    Office,
    find_reason,
    is_registration_number,
    to_file_row,
)
from plankeeper.resources.claims.schemas import (
    MAX_LINES,
    Claim,
    ClaimBatch,
    ClaimBatchCancel,
    LeftOutLine,
    NewClaim,
    NewClaimBatch,
    WarnedLine,
)
from plankeeper.resources.claims.store import EarlierClaim
from plankeeper.resources.invoices import line_moves
from plankeeper.resources.invoices.line_moves import LineMove
from plankeeper.resources.invoices.schemas import Invoice, LineItem
from plankeeper.resources.invoices.warnings import WARNINGS, level_of
from plankeeper.resources.office_settings import store as settings_store
from plankeeper.resources.office_settings.number_store import next_number
from plankeeper.resources.office_settings.restores import require_confirmed
from plankeeper.resources.office_settings.schemas import OfficeSettings
from plankeeper.resources.office_settings.service_standard import ServiceStandard
from plankeeper.resources.payments.planning import with_returns

MAX_CANDIDATES = 50_000  # lines that one request looks at
SEARCHED_AT_ONCE = 1000  # lines in memory while a request looks for those that can be claimed
MAX_LISTED = 5000  # lines of `left_out` in a response
MOVED_AT_ONCE = 500  # invoices whose events are in memory at the same time
MEDIA_TYPE = "text/csv"  # of the file
BATCH_FULL = LeftOut("batch_full", REASONS["batch_full"])


class Selection(NamedTuple):
    """The lines of a new batch in the order of its file, the others, and the invoices that are locked.

    Those of the left out lines that were examined are of type Candidate.
    """

    claimed: Sequence[Candidate]
    left_out: Sequence[tuple[CandidateState, LeftOut]]
    flagged: Sequence[CandidateState]
    invoices: Mapping[UUID, Invoice]


async def create(ctx: WriteContext, new: NewClaimBatch, *, is_dry_run: bool = False) -> ClaimBatch:
    """Make a draft of the lines that can be claimed, and flag the others. A dry run only says what it would contain.

    Raises ValidationError for unknown invoices, and if no line can be claimed.
    """
    if is_dry_run:
        return (await preview(ctx, new)).batch
    await require_confirmed(ctx.tx, ctx.plan_manager_id)
    await store.lock_create(ctx.tx, ctx.plan_manager_id)
    office, selection = await _select(ctx, new, is_dry_run=False)
    batch = _build_batch(ctx, selection)
    if not selection.claimed:
        raise ValidationError(_nothing_to_claim(new, selection))
    rows = await _choose_references(ctx, selection.claimed)
    number = await next_number(ctx.tx, ctx.plan_manager_id, "claim_batch")
    batch = replace(batch, id=uuid7(), number=number)
    await store.insert(ctx.tx, ctx.plan_manager_id, to_json(batch))
    await _insert_claims(ctx, batch, selection.claimed, rows, office)
    await _move(ctx, selection.invoices, _draft_moves(batch, selection))
    await record_event(ctx, "claim_batch.created", None, _without_lists(batch))
    return batch


class BatchPreview(NamedTuple):
    """What a batch would contain, and its lines."""

    batch: ClaimBatch
    selection: Selection


async def preview(ctx: WriteContext, new: NewClaimBatch) -> BatchPreview:
    """What a batch would contain. Nothing is stored or locked. Raises ValidationError for unknown invoices."""
    _, selection = await _select(ctx, new, is_dry_run=True)
    return BatchPreview(_build_batch(ctx, selection), selection)


class Candidates(NamedTuple):
    """The lines that a request asks for, what their states decide, and the settings that decide about the others."""

    office: Office
    lines: Sequence[CandidateState]
    choice: Choice


async def choose_candidates(ctx: WriteContext, new: NewClaimBatch) -> Candidates:
    """The first step of each batch and of each preview. Raises ValidationError for unknown invoices."""
    office, blocking = await _read_office(ctx)
    lines = await _list_candidates(ctx, new, blocking)
    return Candidates(office, lines, candidates.choose(lines, MAX_LINES))


async def _read_office(ctx: WriteContext) -> tuple[Office, Sequence[str]]:
    """The settings that a batch uses, and the codes of the warnings that block claims."""
    settings = await settings_store.get(ctx.tx, ctx.plan_manager_id)
    blocking = [code for code in WARNINGS if level_of(code, settings.warning_levels) == "block"]
    return Office(settings.registration_number, settings.prices_include_gst, ctx.settings.today), blocking


async def _list_candidates(ctx: WriteContext, new: NewClaimBatch, blocking: Sequence[str]) -> Sequence[CandidateState]:
    """The lines that a request asks for. Raises ValidationError."""
    if isinstance(new.invoice_ids, list):
        if new.all is not UNSET:
            raise ValidationError(FieldError("all", "can't be sent together with invoice_ids"))
        ids = [UUID(each) for each in new.invoice_ids]
        known = {*await candidate_store.list_existing(ctx.tx, ctx.plan_manager_id, ids)}
        message = "must be the id of an invoice of this plan manager"
        if errors := [
            FieldError(f"invoice_ids[{index}]", message, "not_found")
            for index, id_ in enumerate(ids)
            if id_ not in known
        ]:
            raise ValidationError(*errors)
        return await candidate_store.list_of_invoices(
            ctx.tx, ctx.plan_manager_id, blocking, MAX_CANDIDATES, sorted(known)
        )
    if new.all is not True:
        message = "must be true, or invoice_ids must be sent"
        raise ValidationError(FieldError("all", message, "required" if new.all is UNSET else "inconsistent"))
    return await candidate_store.list_open(ctx.tx, ctx.plan_manager_id, blocking, MAX_CANDIDATES)


class Search(NamedTuple):
    """The first lines that can be claimed, at most as many as a batch has, and what is left out before the last one.

    `end` is how many of the candidates that is.
    """

    claimed: Sequence[Candidate]
    left_out: Sequence[tuple[Candidate, LeftOut]]
    end: int


async def search(ctx: WriteContext, found: Candidates) -> Search:
    """Look at lines that their states don't keep out, one after the other, until a batch is full. Nothing is locked."""
    office, waiting = found.office, found.choice.claimable
    if not is_registration_number(office.registration_number):  # then no line can be claimed
        waiting = waiting[:MAX_LINES]
    claimed, left_out, end = list[Candidate](), list[tuple[Candidate, LeftOut]](), 0
    while end < len(waiting) and len(claimed) < MAX_LINES:
        part = waiting[end : end + SEARCHED_AT_ONCE]
        examined = await candidates.read_and_examine(ctx.tx, ctx.plan_manager_id, [each.key for each in part], office)
        for line in map(examined.get, [each.key for each in part]):
            if len(claimed) == MAX_LINES:
                break
            end += 1
            if line is None:  # deleted since
                continue
            if reason := find_reason(line, office):
                left_out.append((line, reason))
            else:
                claimed.append(line)
    return Search(claimed, left_out, end)


class _Narrowed(NamedTuple):
    """The lines to decide about, of which `known` are examined, and the reasons of the others."""

    lines: Sequence[CandidateState]
    known: dict[LineKey, Candidate]
    left_out: Mapping[LineKey, LeftOut]


async def _narrow(ctx: WriteContext, found: Candidates) -> _Narrowed:
    """Candidates that fit into one batch, and those to flag. If there are more, a search finds those that fit."""
    claimable, to_flag, left_out = found.choice
    if len(claimable) <= MAX_LINES:
        return _Narrowed([*claimable, *to_flag], {}, left_out)
    searched = await search(ctx, found)
    failed = [line for line, why in searched.left_out if candidates.is_to_flag(line, why)][:MAX_LINES]
    lines = [*searched.claimed, *failed, *to_flag]
    known = {each.key: each for each in (*searched.claimed, *(line for line, _ in searched.left_out))}
    others = {line.key: why for line, why in searched.left_out}
    others |= {each.key: BATCH_FULL for each in claimable[searched.end :]}
    for each in failed:
        del others[each.key]
    return _Narrowed(lines, known, {**left_out, **others})


async def _select(ctx: WriteContext, new: NewClaimBatch, *, is_dry_run: bool) -> tuple[Office, Selection]:
    """Lock the invoices of the lines that can probably be claimed, and decide with what is stored then."""
    found = await choose_candidates(ctx, new)
    office, narrowed = found.office, await _narrow(ctx, found)
    invoices, left_out = dict[UUID, Invoice](), dict(narrowed.left_out)
    if is_dry_run:
        unknown = [each.key for each in narrowed.lines if each.key not in narrowed.known]
        found_now = await candidates.read_and_examine(ctx.tx, ctx.plan_manager_id, unknown, office)
        examined = narrowed.known | found_now
    else:
        invoices = await line_moves.lock(ctx, {each.invoice_id for each in narrowed.lines})
        examined = await candidates.examine(ctx.tx, ctx.plan_manager_id, invoices, office)
    claimed, flagged = list[Candidate](), list[CandidateState]()
    for line in (examined.get(each.key) for each in narrowed.lines):
        if line is None:  # deleted since
            continue
        reason = find_reason(line, office) or (None if len(claimed) < MAX_LINES else BATCH_FULL)
        if reason is None:
            claimed.append(line)
            continue
        left_out[line.key] = reason
        if candidates.is_to_flag(line, reason) and len(flagged) < MAX_LINES:
            flagged.append(line)
    shown = narrowed.known | examined
    outside = [(shown.get(each.key, each), left_out[each.key]) for each in found.lines if each.key in left_out]
    return office, Selection(claimed, outside, flagged, invoices)


def _build_batch(ctx: WriteContext, selection: Selection) -> ClaimBatch:
    now = datetime.now(UTC)
    in_order = sorted(selection.left_out, key=lambda each: each[1].reason == "batch_full")
    return ClaimBatch(
        id=None,
        number=None,
        state="draft",
        total=sum((each.claimed_amount for each in selection.claimed), Decimal(0)),
        lines=len(selection.claimed),
        warned=[
            WarnedLine(invoice_id=each.invoice_id, line_id=each.line_id, codes=[*each.warned_codes])
            for each in selection.claimed
            if each.warned_codes
        ],
        left_out=[
            LeftOutLine(invoice_id=line.invoice_id, line_id=line.line_id, reason=why.reason, message=why.message)
            for line, why in in_order[:MAX_LISTED]
        ],
        left_out_count=len(selection.left_out),
        created_at=now,
        created_by=ctx.actor.display_name,
        downloaded_at=None,
        downloaded_by=None,
        submitted_at=None,
        submitted_by=None,
        cancelled_at=None,
        cancelled_by=None,
        cancel_reason=None,
        updated_at=now,
    )


def _nothing_to_claim(new: NewClaimBatch, selection: Selection) -> FieldError:
    counts = dict[str, int]()
    for _, why in selection.left_out:
        counts[why.reason] = counts.get(why.reason, 0) + 1
    reasons = ", ".join(f"{reason}: {count}" for reason, count in sorted(counts.items()))
    message = "must have a line that can be claimed" + (f" (left out: {reasons})" if reasons else "")
    return FieldError("all" if new.invoice_ids is UNSET else "invoice_ids", message, "inconsistent")


# References


class _ReferenceForm(NamedTuple):
    """What the references of a line have in common: the arguments of `references`."""

    invoice_number: str | None
    line_number: int | None
    suffix: str
    first: int


async def _choose_references(ctx: WriteContext, claimed: Sequence[Candidate]) -> list[str]:
    """A reference for each line that no other claim has ever had.

    Lines of one form, such as those of invoices with the same number, share their references: each is tried once.
    """
    ids = sorted({each.invoice_id for each in claimed})
    earlier = dict[LineKey, list[EarlierClaim]]()
    for each in await store.list_earlier(ctx.tx, ctx.plan_manager_id, ids):
        earlier.setdefault((each.invoice_id, each.line_id), []).append(each)
    waiting = {index: _reference_form(each, earlier.get(each.key, [])) for index, each in enumerate(claimed)}
    possible = {form: references(*form) for form in waiting.values()}
    chosen, taken, size = dict[int, str](), set[str](), 1
    while waiting:
        counts = Counter(waiting.values())
        tried = {form: [*islice(possible[form], max(size, lines))] for form, lines in counts.items()}
        wanted = sorted({each for some in tried.values() for each in some})
        taken |= {*await store.list_used(ctx.tx, ctx.plan_manager_id, wanted)}
        untried = {form: iter(some) for form, some in tried.items()}
        for index, form in [*waiting.items()]:
            free = next((each for each in untried[form] if each not in taken), None)
            if free is not None:
                chosen[index] = free
                taken.add(free)
                del waiting[index]
        size = min(10 * size, 1000)  # few invoices of an office have the same number
    return [chosen[index] for index in range(len(claimed))]


def _reference_form(line: Candidate, earlier: Sequence[EarlierClaim]) -> _ReferenceForm:
    """A further claim of a line has the reference of the first one, with another end."""
    number = line.number if line.has_siblings else None
    suffix = claim_suffix(sum(each.is_rest == line.is_rest for each in earlier), is_rest=line.is_rest)
    first = collision_of(earlier[0].reference, line.invoice_number, number) if earlier else 1
    return _ReferenceForm(line.invoice_number, number, suffix, first)


# Claims and lines


async def _insert_claims(
    ctx: WriteContext, batch: ClaimBatch, claimed: Sequence[Candidate], names: Sequence[str], office: Office
) -> None:
    claims = [
        NewClaim(
            id=uuid7(),
            invoice_id=line.invoice_id,
            line_id=line.line_id,
            source="batch",
            batch_id=batch.id,
            position=position,
            reference=reference,
            is_rest=line.is_rest,
            amount=line.claimed_amount,
            fields=to_file_row(line, office, reference),
            state="draft",
            created_at=batch.created_at,
            created_by=batch.created_by,
        )
        for position, (line, reference) in enumerate(zip(claimed, names, strict=True), start=1)
    ]
    await store.insert_claims(ctx.tx, ctx.plan_manager_id, to_json(claims))


def _draft_moves(batch: ClaimBatch, selection: Selection) -> list[LineMove]:
    values = {"open_claim_batch": batch.number}
    return [
        *(LineMove(each.invoice_id, each.line_id, None, values) for each in selection.claimed),
        *(LineMove(each.invoice_id, each.line_id, "leave_out") for each in selection.flagged),
    ]


async def _move(ctx: WriteContext, invoices: Mapping[UUID, Invoice], moves: Sequence[LineMove]) -> None:
    """Move lines of locked invoices, some of them at a time."""
    by_invoice = dict[UUID, list[LineMove]]()
    for each in moves:
        by_invoice.setdefault(each.invoice_id, []).append(each)
    ids = sorted(by_invoice)
    for start in range(0, len(ids), MOVED_AT_ONCE):
        some = [move for id_ in ids[start : start + MOVED_AT_ONCE] for move in by_invoice[id_]]
        await line_moves.move_lines(ctx, invoices, some, "invoice.line_changed")


async def resolve_flags(ctx: WriteContext, invoice_ids: Collection[UUID], party_ids: Collection[UUID]) -> None:
    """Make flagged lines new that can be claimed now: invoices that are locked, of these participants or providers.

    A record or a setting that claims use has changed, so that what kept the lines out may have ended.
    """
    invoices = {
        id_: each
        for id_, each in (await line_moves.lock(ctx, invoice_ids)).items()
        if (each.participant_id in party_ids or each.pm_provider_id in party_ids)
        and any(line.claim_status == "flagged" for line in unset_to_none(each.line_items) or [])
    }
    if not invoices:
        return
    office, _ = await _read_office(ctx)
    found = await candidates.examine(ctx.tx, ctx.plan_manager_id, invoices, office)
    resolved = [each for each in found.values() if each.claim_status == "flagged" and not find_reason(each, office)]
    await _move(ctx, invoices, [LineMove(each.invoice_id, each.line_id, "resolve") for each in resolved])


# Download, submit and cancel


async def download(ctx: WriteContext, batch_id: UUID) -> Download:
    """The file of a batch for the agency's portal, which is always the same. The first download is recorded.

    Raises NotFound, and DomainError `invalid_transition` after a restore that nobody has confirmed.
    """
    before = or_404(await store.select_for_update(ctx.tx, ctx.plan_manager_id, batch_id))
    await require_confirmed(ctx.tx, ctx.plan_manager_id)
    if before.downloaded_at is None:
        after = await store.set_downloaded(
            ctx.tx, ctx.plan_manager_id, batch_id, datetime.now(UTC), ctx.actor.display_name
        )
        await record_event(ctx, "claim_batch.downloaded", before, or_404(after))
    found = or_404(await store.get_file(ctx.tx, ctx.plan_manager_id, batch_id))
    content = render(each.fields for each in found.rows)
    invoice_ids = list(dict.fromkeys(each.invoice_id for each in found.rows))
    ctx.disclosed.append(Disclosure("exported", "invoice", None, resource_ids=invoice_ids))
    return Download.of_bytes(file_name(found.number), MEDIA_TYPE, content)


async def submit(ctx: WriteContext, batch_id: UUID) -> ClaimBatch:
    """Submit a draft: its lines are pending.

    Raises NotFound, and DomainError `invalid_transition`, and `invoice_locked` for a line in a draft payment run.
    """
    before = or_404(await store.select_for_update(ctx.tx, ctx.plan_manager_id, batch_id))
    await require_confirmed(ctx.tx, ctx.plan_manager_id)
    now = datetime.now(UTC)
    after = await store.submit(ctx.tx, ctx.plan_manager_id, batch_id, now, ctx.actor.display_name)
    if after is None:
        raise _invalid(before, "submitted")
    claims = await store.list_of_batch(ctx.tx, ctx.plan_manager_id, batch_id)
    await store.move_claims(ctx.tx, ctx.plan_manager_id, batch_id, ("draft", "submitted"), None, now)
    invoices = await line_moves.lock(ctx, {each.invoice_id for each in claims})
    await _move(ctx, invoices, [_submit_move(each, invoices[each.invoice_id], before.number) for each in claims])
    await record_event(ctx, "claim_batch.submitted", before, after)
    return await _get(ctx, batch_id)


def _submit_move(claim: Claim, invoice: Invoice, batch_number: str | None) -> LineMove:
    """The move of a line with its batch. A part of a partially paid line is paid out, here or before an import."""
    values: dict[str, object] = {"claim_batch_ref": batch_number}
    if _find_line(claim, invoice).claim_status == "partially_paid":
        values["has_payment"] = True
    return LineMove(claim.invoice_id, claim.line_id, "submit_batch", values)


async def cancel(ctx: WriteContext, batch_id: UUID, body: ClaimBatchCancel) -> ClaimBatch:
    """Cancel a draft, or a submitted batch without a result whose file hasn't been uploaded.

    Raises NotFound, ValidationError, and DomainError `invalid_transition`.
    """
    before = or_404(await store.select_for_update(ctx.tx, ctx.plan_manager_id, batch_id))
    if body.uploaded is True:
        message = "must be false: if the file was uploaded, cancel its claims in the agency's portal"
        raise ValidationError(FieldError("uploaded", message, "inconsistent"))
    if needs_confirmation(before):
        missing = [name for name in ("uploaded", "reason") if getattr(body, name) is UNSET]
        message = "is required for a batch that is submitted, or whose file was downloaded"
        if missing:
            raise ValidationError(*(FieldError(each, message, "required") for each in missing))
    now, reason = datetime.now(UTC), unset_to_none(body.reason)
    after = await store.cancel(ctx.tx, ctx.plan_manager_id, batch_id, now, ctx.actor.display_name, reason)
    if after is None:
        raise _invalid(before, "cancelled")
    state = "draft" if before.state == "draft" else "submitted"
    claims = [each for each in await store.list_of_batch(ctx.tx, ctx.plan_manager_id, batch_id) if each.state == state]
    await store.move_claims(ctx.tx, ctx.plan_manager_id, batch_id, (state, "cancelled"), reason, now)
    invoices = await line_moves.lock(ctx, {each.invoice_id for each in claims})
    found = await store.list_batch_refs(ctx.tx, ctx.plan_manager_id, [*invoices])
    refs = {(each.invoice_id, each.line_id): each.number for each in found}
    is_submitted = state == "submitted"
    moves = [_cancel_move(each, invoices[each.invoice_id], refs, is_submitted=is_submitted) for each in claims]
    await _move(ctx, invoices, await with_returns(ctx, moves) if is_submitted else moves)
    await record_event(ctx, "claim_batch.cancelled", before, after)
    return await _get(ctx, batch_id)


def needs_confirmation(batch: ClaimBatch) -> bool:
    """Whether the agency can have the file, so that whoever cancels the batch must say that it hasn't."""
    return batch.state == "submitted" or (batch.state == "draft" and batch.downloaded_at is not None)


def _cancel_move(claim: Claim, invoice: Invoice, refs: Mapping[LineKey, str], *, is_submitted: bool) -> LineMove:
    """The move of a line out of a cancelled batch. A rest that goes back waits for the next batch again."""
    values: dict[str, object] = {"open_claim_batch": None}
    if not is_submitted:
        return LineMove(claim.invoice_id, claim.line_id, None, values)
    values["claim_batch_ref"] = refs.get((claim.invoice_id, claim.line_id))
    if claim.is_rest and _find_line(claim, invoice).has_payment:
        values["is_rest_waiting"] = True
    return LineMove(claim.invoice_id, claim.line_id, "cancel_batch", values)


def _find_line(claim: Claim, invoice: Invoice) -> LineItem:
    return next(each for each in unset_to_none(invoice.line_items) or [] if each.id == claim.line_id)


def late_before(settings: OfficeSettings, today: date, zone: ZoneInfo) -> datetime:
    """The moment since which a claim without a result can wait and not be late, by the setting of the office."""
    days = ServiceStandard(settings.days_until_claim_is_late, 0)
    return datetime.combine(days.first_in_time(today), time(), zone)


async def _get(ctx: WriteContext, batch_id: UUID) -> ClaimBatch:
    return or_404(await store.get(ctx.tx, ctx.plan_manager_id, batch_id))


def _without_lists(batch: ClaimBatch) -> ClaimBatch:
    """The batch as its events have it."""
    return replace(batch, warned=UNSET, left_out=UNSET)


def _invalid(batch: ClaimBatch, verb: str) -> DomainError:
    detail = f"The claim batch is {batch.state.replace('_', ' ')}, so it can't be {verb}."
    return DomainError("invalid_transition", detail, resource=ErrorResource("claim_batch", str(batch.id)))
