"""Operations on invoices that the API and the console share: create, update, check, ignore warnings."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import cast
from uuid import UUID

from msgspec import UNSET
from msgspec.structs import asdict, replace
from uuid_utils.compat import uuid7

from plankeeper.core.bulk import existing_ids, find_id_errors, find_matches, in_item_order, item_ids
from plankeeper.core.context import Disclosure, ReadContext, WriteContext, or_404
from plankeeper.core.errors import DomainError, FieldError, ValidationError
from plankeeper.core.json import to_json
from plankeeper.core.record_matches import MatchField, external_id_error
from plankeeper.database.client import Executor
from plankeeper.database.versions import next_updated_at
from plankeeper.events.recorder import changed_fields, record_event, record_events
from plankeeper.resources import recheck_queue
from plankeeper.resources.invoices import check_store, store
from plankeeper.resources.invoices.approval_requests import update_requests
from plankeeper.resources.invoices.changes import Draft, build_draft, to_line_rows, to_row, to_saved, to_stored
from plankeeper.resources.invoices.check_results import (
    fact_keys,
    find_facts_of,
    levels_of,
    line_key,
    to_result,
    with_line_duplicates,
)
from plankeeper.resources.invoices.check_store import CheckResult, IgnoredWarning, InvoiceToCheck
from plankeeper.resources.invoices.reference_store import find as find_references
from plankeeper.resources.invoices.resolution import has_ended, is_flagged, open_codes, resolve
from plankeeper.resources.invoices.schemas import (
    Invoice,
    InvoiceBulkItem,
    InvoiceBulkQuery,
    InvoiceRow,
    InvoiceUpdate,
    SavedInvoice,
)
from plankeeper.resources.invoices.warnings import Level, level_of

# The reason for ignoring a warning that blocks claims.
MIN_REASON_LENGTH = 10
MIN_REASON_LETTERS = 4  # that differ

CONSTRAINT_ERRORS = {"invoices_external_id_key": external_id_error("invoice")}
MATCH_FIELDS = {"external_id": MatchField("external_id", store.list_by_external_ids)}


async def create(ctx: WriteContext, change: InvoiceUpdate) -> SavedInvoice:
    """Create an invoice. Its participant and its provider are matched by their numbers, if it has no ids."""
    references = await find_references(ctx.tx.reader, ctx.plan_manager_id, [change])
    draft = build_draft(uuid7(), None, change, references, datetime.now(UTC))
    if draft.errors:
        raise ValidationError(*draft.errors)
    [saved] = await _save(ctx, [draft])
    return saved


async def update(ctx: WriteContext, invoice_id: UUID, change: InvoiceUpdate) -> SavedInvoice:
    """Apply the fields that are set; raises NotFound, and DomainError `invoice_locked`."""
    before = or_404(await store.get_for_update(ctx.tx, ctx.plan_manager_id, invoice_id))
    return await save(ctx, before, change)


async def save(ctx: WriteContext, before: Invoice, change: InvoiceUpdate) -> SavedInvoice:
    """Apply the fields that are set to an invoice that `get_for_update` has returned."""
    references = await find_references(ctx.tx.reader, ctx.plan_manager_id, [change])
    draft = build_draft(before.id, before, change, references, datetime.now(UTC))
    if draft.errors:
        raise ValidationError(*draft.errors)
    if draft.lock:
        raise draft.lock
    [saved] = await _save(ctx, [draft], before.updated_at)
    return saved


async def save_draft(ctx: WriteContext, draft: Draft) -> Invoice:
    """Write an existing invoice that an action has changed, with the event of the action."""
    [saved] = await _save(ctx, [draft], draft.before.updated_at if draft.before else None)
    return Invoice(**{name: getattr(saved, name) for name in Invoice.__struct_fields__})


async def save_many(ctx: WriteContext, query: InvoiceBulkQuery, items: Sequence[InvoiceBulkItem]) -> list[SavedInvoice]:
    """Create or update an invoice for each item, in their order.

    Raises ValidationError with all errors, or DomainError `invoice_locked` about the first locked one.
    """
    if query.match is not UNSET:  # so that two requests don't create an invoice each for the same value
        await store.lock_matches(ctx.tx, ctx.plan_manager_id)
    items, errors = await find_matches(ctx.tx, ctx.plan_manager_id, items, MATCH_FIELDS, query.match, "invoice")
    ids = existing_ids(items)
    await store.select_for_update(ctx.tx, ctx.plan_manager_id, ids)
    before = {each.id: each for each in await store.get_many(ctx.tx, ctx.plan_manager_id, ids)}
    errors += find_id_errors(items, set(before), "invoice")
    references, now = await find_references(ctx.tx, ctx.plan_manager_id, items), datetime.now(UTC)
    drafts = [
        build_draft(id_, before.get(id_), item, references, now)
        for item, id_ in zip(items, item_ids(items), strict=True)
    ]
    errors += _item_errors(drafts)
    if errors:
        raise ValidationError(*in_item_order(errors))
    for index, draft in enumerate(drafts):
        if draft.lock:
            detail = f"items[{index}]: {draft.lock.detail}"
            raise DomainError("invoice_locked", detail, resource=draft.lock.resource)
    return await _save(ctx, drafts)


async def find_errors(ctx: ReadContext, query: InvoiceBulkQuery, items: Sequence[InvoiceBulkItem]) -> list[FieldError]:
    """The errors of items without a match, of unknown ids, and of ids that occur twice."""
    items, errors = await find_matches(ctx.db, ctx.plan_manager_id, items, MATCH_FIELDS, query.match, "invoice")
    before = {each.id: each for each in await store.get_many(ctx.db, ctx.plan_manager_id, existing_ids(items))}
    references, now = await find_references(ctx.db, ctx.plan_manager_id, items), datetime.now(UTC)
    pairs = zip(items, item_ids(items), strict=True)
    drafts = [build_draft(id_, before.get(id_), item, references, now) for item, id_ in pairs]
    return [*errors, *find_id_errors(items, set(before), "invoice"), *_item_errors(drafts)]


def _item_errors(drafts: Sequence[Draft]) -> list[FieldError]:
    return [
        replace(error, field=f"items[{index}].{error.field}")
        for index, draft in enumerate(drafts)
        for error in draft.errors
    ]


async def _save(ctx: WriteContext, drafts: Sequence[Draft], version: datetime | None = None) -> list[SavedInvoice]:
    """Check and write the invoices that differ, and check those with the same numbers again.

    `version` is that of a single invoice that was read without a lock.
    """
    changed = [each for each in drafts if each.is_changed]
    unchanged = [each.row.id for each in drafts if not each.is_changed]
    ctx.disclosed += [Disclosure("viewed", "invoice", each) for each in unchanged]
    concerning = [each for each in changed if _concerns_others(each)]
    if keys := sorted({key for each in concerning for key in _keys(each)}):
        await store.lock_similar(ctx.tx, ctx.plan_manager_id, keys)
    results, now = await _check_drafts(ctx, changed), datetime.now(UTC)
    changed = await _resolve_drafts(ctx, changed, results)
    saved = {each.row.id: _to_saved(ctx, each, results[each.row.id], now) for each in changed}
    existing = [each.row.id for each in concerning if each.before]
    others = await check_store.list_similar(ctx.tx, ctx.plan_manager_id, existing) if existing else []
    await _write(ctx, changed, saved, results, version)
    await update_requests(ctx, [each.row.id for each in changed if _concerns_approval(each)], creates=True)
    if concerning:  # also for a new invoice: the clock of another server can have given an earlier one a later time
        ids = [each.row.id for each in concerning]
        others += await check_store.list_similar(ctx.tx, ctx.plan_manager_id, ids)
    await recheck_others(ctx, {*others} - {each.row.id for each in changed})
    await recheck_queue.enqueue(ctx, "participant", sorted(_find_spenders(changed)))
    return [saved.get(each.row.id) or _unchanged(each) for each in drafts]


def _concerns_approval(draft: Draft) -> bool:
    return "pending" in (draft.row.approval_status, draft.before.approval_status if draft.before else None)


def _concerns_others(draft: Draft) -> bool:
    """Whether other invoices can get or lose a warning.

    This one has another number, provider or participant or other lines, or is cancelled or reopened.
    """
    before, after = draft.before, draft.row
    is_reversed = before is not None and (before.cancelled_at is None) != (after.cancelled_at is None)
    names = ("pm_provider_id", "invoice_number", "participant_id")
    is_other = any(getattr(before, name, None) != getattr(after, name) for name in names)
    return is_reversed or is_other or _line_keys(draft) != _old_line_keys(draft)


def _number_key(invoice: Invoice | InvoiceRow | None) -> str | None:
    """The number that duplicates of an invoice have, or None if it has no duplicates.

    The provider isn't part of it: several records can be of one provider.
    """
    if invoice is None or invoice.pm_provider_id is None or not (invoice.invoice_number or "").strip():
        return None
    return f"number {invoice.invoice_number}"


def _find_spenders(drafts: Sequence[Draft]) -> set[UUID]:
    """The participants whose later invoices can have more or less of a budget than before."""
    is_single = len(drafts) == 1
    latest = {each.row.id for each in drafts if is_single and each.before is None and _is_received_now(each.row)}
    invoices = [each for draft in drafts if draft.row.id not in latest for each in (draft.before, draft.row)]
    return {each.participant_id for each in invoices if each and each.participant_id}


def _is_received_now(row: InvoiceRow) -> bool:
    return row.received_at >= row.created_at


def _line_keys(draft: Draft) -> set[tuple[object, ...]]:
    """The participant, item, days and quantity that duplicates of a line of the invoice have."""
    return {key for line in draft.lines if (key := line_key(draft.row, line))}


def _old_line_keys(draft: Draft) -> set[tuple[object, ...]]:
    if draft.before is None:
        return set()
    return {key for line in to_line_rows(draft.before) if (key := line_key(draft.before, line))}


def _keys(draft: Draft) -> Iterator[str]:
    """The keys of `lock_similar`: the numbers, and the participants whose lines are compared."""
    for invoice, lines in ((draft.before, _old_line_keys(draft)), (draft.row, _line_keys(draft))):
        if key := _number_key(invoice):
            yield key
        if invoice and lines:
            yield f"participant {invoice.participant_id}"


async def _check_drafts(ctx: WriteContext, drafts: Sequence[Draft]) -> dict[UUID, CheckResult]:
    if not drafts:
        return {}
    rows, lines = to_json([each.row for each in drafts]), to_json([line for each in drafts for line in each.lines])
    return {each.id: each for each in await check_new(ctx, rows, lines)}


async def _resolve_drafts(
    ctx: WriteContext, drafts: Sequence[Draft], results: Mapping[UUID, CheckResult]
) -> list[Draft]:
    """The drafts, in which flagged lines are new if what kept their invoice out of claims ends with them."""
    if not any(each.before and is_flagged(each.row, each.lines) for each in drafts):
        return list(drafts)
    levels = await _list_levels(ctx)

    def resolved(draft: Draft) -> Draft:
        if draft.before is None or not is_flagged(draft.row, draft.lines):
            return draft
        result, before = results[draft.row.id], to_row(draft.before)
        open_after = {*result.error_codes} - {*result.ignored_error_codes}
        if not has_ended(before, open_codes(draft.before), draft.row, open_after, levels):
            return draft
        row, lines = resolve(draft.row, draft.lines)
        written = {each.id for each in draft.changed_lines}
        changed = [new for old, new in zip(draft.lines, lines, strict=True) if new != old or new.id in written]
        return draft._replace(row=row, lines=lines, changed_lines=changed)

    return [resolved(each) for each in drafts]


async def _list_levels(ctx: WriteContext) -> dict[str, Level]:
    return {each.code: each.level for each in await check_store.list_levels(ctx.tx.reader, ctx.plan_manager_id)}


def _to_saved(ctx: WriteContext, draft: Draft, result: CheckResult, now: datetime) -> SavedInvoice:
    updated_at = next_updated_at(draft.before.updated_at) if draft.before else now
    return to_saved(draft, ctx.plan_manager_id, result, updated_at)


def _unchanged(draft: Draft) -> SavedInvoice:
    return SavedInvoice(**asdict(cast("Invoice", draft.before)), matched=draft.matched)


async def _write(
    ctx: WriteContext,
    drafts: Sequence[Draft],
    saved: Mapping[UUID, SavedInvoice],
    results: Mapping[UUID, CheckResult],
    version: datetime | None,
) -> None:
    records = {
        each.row.id: to_stored(each.row, each.lines)
        | asdict(results[each.row.id])
        | {"updated_at": saved[each.row.id].updated_at}
        for each in drafts
    }
    created = [records[each.row.id] for each in drafts if each.before is None]
    updated = [records[each.row.id] for each in drafts if each.before is not None]
    if created:
        await store.insert(ctx.tx, ctx.plan_manager_id, to_json(created))
    if updated:
        await store.update(ctx.tx, ctx.plan_manager_id, to_json(updated), version)
    await store.upsert_lines(ctx.tx, ctx.plan_manager_id, [line for each in drafts for line in each.changed_lines])
    before = [to_row(each.before) for each in drafts if each.before]
    await store.write_counts(ctx.tx, ctx.plan_manager_id, before, [each.row for each in drafts])
    events = [_to_event(each, saved[each.row.id]) for each in drafts]
    if len(events) == 1:  # whose id the console needs for its undo
        await record_event(ctx, *events[0])
    else:
        await record_events(ctx, events)


def _to_event(draft: Draft, saved: SavedInvoice) -> tuple[str, Invoice | None, Invoice]:
    """The event of a written invoice: `assigned` if nothing but its account has changed."""
    before, after = draft.before, Invoice(**{name: getattr(saved, name) for name in Invoice.__struct_fields__})
    if before is None:
        return "invoice.created", None, after
    if draft.event_type:
        return draft.event_type, before, after
    is_assignment = changed_fields(before, after).keys() == {"assigned_to"}
    return "invoice.assigned" if is_assignment else "invoice.updated", before, after


async def recheck_others(ctx: WriteContext, invoice_ids: Collection[UUID], *, levels_changed: bool = False) -> int:
    """Check invoices again because another record has changed, and record an event for each change.

    Returns the number of changed invoices. Those with other warnings and the same states keep their version.

    `levels_changed`: the levels of warnings can be others than before.
    """
    if not invoice_ids:
        return 0
    before = {each.id: each for each in await store.get_many(ctx.tx, ctx.plan_manager_id, sorted(invoice_ids))}
    changed = await check(ctx, [*before])
    changed = sorted({*changed, *await resolve_stored(ctx, before.values(), levels_changed=levels_changed)})
    pending = [each.id for each in before.values() if each.approval_status == "pending"]
    await update_requests(ctx, pending, creates=False)
    after = await store.get_many(ctx.tx, ctx.plan_manager_id, changed)
    await record_events(ctx, [("invoice.updated", before[each.id], each) for each in after])
    return len(changed)


async def resolve_stored(ctx: WriteContext, invoices: Iterable[Invoice], *, levels_changed: bool = False) -> list[UUID]:
    """Resolve flagged invoices that were just checked: `invoices` are as before. Returns the ids of those resolved."""
    flagged = {each.id: each for each in invoices if is_flagged(to_row(each), to_line_rows(each))}
    if not flagged:
        return []
    levels = await _list_levels(ctx)
    resolved = list[Invoice]()
    for each in await store.get_many(ctx.tx, ctx.plan_manager_id, sorted(flagged)):
        before = flagged[each.id]
        versions = (to_row(before), open_codes(before), to_row(each), open_codes(each))
        if has_ended(*versions, levels, levels_changed=levels_changed):
            resolved.append(each)
    if resolved:
        await _write_resolved(ctx, resolved)
    return [each.id for each in resolved]


async def _write_resolved(ctx: WriteContext, invoices: Sequence[Invoice]) -> None:
    before = [to_row(each) for each in invoices]
    after = [resolve(row, to_line_rows(each)) for row, each in zip(before, invoices, strict=True)]
    rows = [row for row, _ in after]
    stored = [to_stored(row, lines) for row, lines in after]
    await store.update_many(ctx.tx, ctx.plan_manager_id, to_json(stored))
    await store.upsert_lines(ctx.tx, ctx.plan_manager_id, [line for _, lines in after for line in lines])
    await store.write_counts(ctx.tx, ctx.plan_manager_id, before, rows)
    await store.touch(ctx.tx, ctx.plan_manager_id, [each.id for each in invoices])


async def check(ctx: WriteContext, invoice_ids: Sequence[UUID]) -> list[UUID]:
    """Check invoices, which keep their version, and return the ids of those whose result has changed."""
    invoices = await check_store.get_many(ctx.tx, ctx.plan_manager_id, invoice_ids)
    results = await _find_results(ctx, ctx.tx, invoices)
    return await check_store.save_results(ctx.tx, ctx.plan_manager_id, to_json(results))


async def check_new(ctx: WriteContext, invoices: str, lines: str) -> list[CheckResult]:
    """The results of new invoices, or of changed ones before they are stored: lists of InvoiceRow and InvoiceLineRow.

    Other invoices with their numbers must be up to date.
    """
    found = await check_store.get_new(ctx.tx.reader, ctx.plan_manager_id, invoices, lines)
    return await _find_results(ctx, ctx.tx.reader, with_line_duplicates(found))


async def _find_results(ctx: WriteContext, db: Executor, invoices: Sequence[InvoiceToCheck]) -> list[CheckResult]:
    facts = await find_facts_of(db, ctx.plan_manager_id, invoices, ctx.settings.today)
    return [to_result(each, facts[each.id]) for each in invoices]


async def ignore(
    ctx: WriteContext, invoice_id: UUID, code: str, reason: str, *, overrides_blocks: bool = False
) -> bool:
    """Ignore a warning. Returns false if the invoice doesn't have it or it is already ignored.

    Raises DomainError `insufficient_scope` for one that blocks claims, unless the actor may override blocks, and then
    ValidationError for a reason that says too little.
    """
    before = await _select_for_update(ctx, invoice_id)
    ignored_codes = before.state_management.ignored_errors
    if code in ignored_codes or code not in before.state_management.errors:
        return False
    [checked] = await check_store.get_many(ctx.tx, ctx.plan_manager_id, [invoice_id])
    if level_of(code, levels_of(checked)) == "block":
        _require_override(reason, overrides_blocks=overrides_blocks)
    facts = await find_facts_of(ctx.tx, ctx.plan_manager_id, [checked], ctx.settings.today)
    warning = IgnoredWarning(code, reason, ctx.actor.display_name, datetime.now(UTC))
    keys = fact_keys(checked, facts[invoice_id].get(code, ()))
    await check_store.upsert_ignored(ctx.tx, ctx.plan_manager_id, invoice_id, warning, keys)
    await _save_ignored_codes(ctx, "invoice.warning_ignored", before, [*ignored_codes, code])
    return True


def _require_override(reason: str, *, overrides_blocks: bool) -> None:
    if not overrides_blocks:
        raise DomainError(
            "insufficient_scope",
            "The warning blocks claims. Only people with the permission to ignore blocking warnings can ignore it, in"
            " the console.",
        )
    letters = {each for each in reason.casefold() if each.isalnum()}
    if len(reason.strip()) < MIN_REASON_LENGTH or len(letters) < MIN_REASON_LETTERS:
        message = (
            f"must have at least {MIN_REASON_LENGTH} characters that aren't the same few letters, because the warning"
            " blocks claims"
        )
        raise ValidationError(reason=message)


async def restore(ctx: WriteContext, invoice_id: UUID, code: str) -> bool:
    """Restore a warning. Returns false if it isn't ignored."""
    before = await _select_for_update(ctx, invoice_id)
    ignored_codes = before.state_management.ignored_errors
    if code not in ignored_codes:
        return False
    await check_store.delete_ignored(ctx.tx, ctx.plan_manager_id, invoice_id, code)
    codes = [each for each in ignored_codes if each != code]
    await _save_ignored_codes(ctx, "invoice.warning_restored", before, codes)
    return True


async def select_for_update(ctx: WriteContext, invoice_id: UUID) -> InvoiceRow | None:
    """Lock an invoice until the transaction ends."""
    rows = await store.select_for_update(ctx.tx, ctx.plan_manager_id, [invoice_id])
    return rows[0] if rows else None


async def _select_for_update(ctx: WriteContext, invoice_id: UUID) -> Invoice:
    """The invoice, locked until the transaction ends; raises NotFound."""
    await store.select_for_update(ctx.tx, ctx.plan_manager_id, [invoice_id])
    return or_404(await store.get(ctx.tx, ctx.plan_manager_id, invoice_id))


async def _save_ignored_codes(ctx: WriteContext, event_type: str, before: Invoice, codes: list[str]) -> None:
    """Store the ignored codes and check the invoice again, because they determine its errors."""
    await check_store.update_ignored_codes(ctx.tx, ctx.plan_manager_id, before.id, codes)
    await check(ctx, [before.id])
    await resolve_stored(ctx, [before])
    if before.approval_status == "pending":
        await update_requests(ctx, [before.id], creates=False)
    after = await store.get(ctx.tx, ctx.plan_manager_id, before.id)
    await record_event(ctx, event_type, before, after)
