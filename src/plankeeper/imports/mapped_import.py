"""Imports the files of other programs: columns are mapped, rows are matched, rows with errors are skipped."""

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Literal
from uuid import UUID

import msgspec
from msgspec import Raw, Struct

from plankeeper.core.context import WriteContext
from plankeeper.core.formatting import format_date
from plankeeper.core.json import to_json
from plankeeper.core.soft_validation import ValueWarning
from plankeeper.events import store as event_store
from plankeeper.events.schemas import Event
from plankeeper.imports.cells import load_references
from plankeeper.imports.importer import BATCH_SIZE, ImportReport, upsert_batch
from plankeeper.imports.matching import Matcher, MatchResult, assign_ids
from plankeeper.imports.schemas import ImportOptions, ImportRowRecord, Outcome, OutcomeCounts, Problem
from plankeeper.imports.source_files import SourceFile, SourceRow, read_source
from plankeeper.resources.invoices.import_states import find_overrides, keep_states
from plankeeper.resources.note_types import store as note_type_store
from plankeeper.resources.participants import rules as participant_rules
from plankeeper.resources.providers import rules as provider_rules
from plankeeper.resources.providers.bank_columns import has_bank_details
from plankeeper.resources.providers.schemas import ProviderImport
from plankeeper.resources.registry import CONSTRAINT_ERRORS, RESOURCES
from plankeeper.resources.resource import Resource, event_key, record_key
from plankeeper.resources.upsert import ImportRow


class ParticipantFacts(Struct):
    """The fields of a participant that the rules read, from the record of an event."""

    first_name: str | None = None
    last_name: str | None = None
    preferred_name: str | None = None
    participant_number: str | None = None
    date_of_birth: date | None = None
    phone_number: str | None = None
    postcode: str | None = None
    state: str | None = None
    plan_start_date: date | None = None
    plan_end_date: date | None = None
    status: str = ""
    date_ceased: date | None = None


class ProviderFacts(Struct):
    """The fields of a provider that the rules read, from the record of an event."""

    entity_name: str | None = None
    abn: str | None = None
    primary_phone_number: str | None = None
    postcode: str | None = None
    state: str | None = None


_FACTS = {
    "participants": ParticipantFacts.__struct_fields__,
    "providers": ProviderFacts.__struct_fields__,
}


def find_warnings(resource: str, record: Raw, today: date) -> list[Problem]:
    """The warnings about the record in an event."""
    if resource == "participants":
        participant = msgspec.json.decode(record, type=ParticipantFacts)
        return [_warning(each, participant) for each in participant_rules.find_value_warnings(participant, today)]
    if resource == "providers":
        provider = msgspec.json.decode(record, type=ProviderFacts)
        return [_warning(each, provider) for each in provider_rules.find_value_warnings(provider)]
    return []


def find_warnings_in_cells(resource: str, cells: Mapping[str, str], today: date) -> list[Problem]:
    """The warnings about a rejected row: those about the cells that could be read."""
    known = {name: cell for name, cell in cells.items() if name in _FACTS.get(resource, ())}
    found = find_warnings(resource, Raw(msgspec.json.encode(known)), today)
    return [each for each in found if each.field in known]


def _warning(implausible: ValueWarning, record: Struct) -> Problem:
    value = getattr(record, implausible.field)
    # A message in upper case is a complete sentence.
    field = "" if implausible.message[:1].isupper() else implausible.field
    text = format_date(value) if isinstance(value, date) else str(value or "")
    return Problem(field, text if field else "", implausible.message, is_warning=True)


ImportPermission = Literal["make_payments", "override_blocks"]  # those that single rows require
MAX_TURN = 0.005  # seconds of reading without a turn of other requests
_NIL = UUID(int=0)
_ALL_ERRORS = 10 * BATCH_SIZE  # no error of a batch is left out


@dataclass(slots=True)
class RowResult:
    """The result of importing or checking a row. `event` is null if the row writes nothing."""

    line_number: int
    cells: list[str]
    outcome: Outcome
    record_id: str | None = None
    event: Event | None = None
    problems: list[Problem] = field(default_factory=list[Problem])

    @property
    def has_warnings(self) -> bool:
        return self.outcome != "unconfirmed" and any(each.is_warning for each in self.problems)

    @property
    def is_left_out(self) -> bool:
        return self.outcome in ("rejected", "unconfirmed")


async def import_mapped(
    ctx: WriteContext, file: SourceFile, options: ImportOptions, has_permission: Callable[[ImportPermission], bool]
) -> AsyncIterator[list[RowResult]]:
    """Import the rows without errors in the transaction `ctx.tx`, and yield the results of each batch.

    `ctx.import_id` must be set: the results of rows are derived from its events. `has_permission`: what the importer
    may do, because rows with bank details and with ignored warnings that block claims require a permission.
    """
    resource, last_event = RESOURCES[options.resource], _NIL
    references = await load_references(ctx.tx, ctx.plan_manager_id)
    matcher = Matcher(options)
    source = read_source(
        file, resource.import_schema, options.mapping, references.resolve, clears_empty=options.clears_empty
    )
    is_first = True
    while batch := await read_batch(source):
        if not has_permission("make_payments"):
            batch = [_without_bank_details(each) for each in batch]
        if options.resource == "invoices" and not has_permission("override_blocks"):
            batch = await _without_overrides(ctx, batch)
        results = await _import_batch(ctx, options, resource, matcher, batch)
        events = await event_store.list_by_import(ctx.tx, ctx.plan_manager_id, _import_id(ctx), last_event)
        last_event = events[-1].id if events else last_event
        _add_events(results, [each for each in events if each.resource.kind != "bank_details"])
        _add_proposals(results, [each for each in events if each.resource.kind == "bank_details"])
        readable = {each.line_number: each.readable for each in batch}
        _add_warnings(options.resource, results, readable, ctx.settings.today)
        yield results
        if is_first and len(batch) == BATCH_SIZE:  # else no batch follows, and autovacuum sees to later statements
            await ctx.tx.analyze(*resource.tables, wait=False)
        is_first = False


def _without_bank_details(source: SourceRow) -> SourceRow:
    """The row, rejected if it has bank details."""
    if (
        source.row is None
        or not isinstance(source.row.values, ProviderImport)
        or not has_bank_details(source.row.values)
    ):
        return source
    problem = Problem("bank_account_number", "", "can only be imported by people who can make payments")
    return source._replace(row=None, problems=[*source.problems, problem])


async def _without_overrides(ctx: WriteContext, batch: Sequence[SourceRow]) -> list[SourceRow]:
    """The rows, those rejected that ignore a warning that blocks claims."""
    errors = await find_overrides(ctx, [each.row for each in batch if each.row])
    problems = {each.line_number: Problem(each.field, "", each.message) for each in errors}
    return [
        source._replace(row=None, problems=[*source.problems, problem])
        if (problem := problems.get(source.line_number))
        else source
        for source in batch
    ]


def count_outcomes(counts: OutcomeCounts, results: Iterable[RowResult]) -> None:
    """Add the results of a batch to the counts."""
    for each in results:
        name = f"{each.outcome}_count"
        setattr(counts, name, getattr(counts, name) + 1)
        counts.warning_count += each.has_warnings


def to_record(ctx: WriteContext, result: RowResult, *, is_check: bool) -> ImportRowRecord:
    """The row to store. A check stores what the preview shows; an import only what its undo and corrections require."""
    event, keeps_cells = result.event, result.is_left_out or (is_check and result.event is None)
    return ImportRowRecord(
        plan_manager_id=ctx.plan_manager_id,
        import_id=_import_id(ctx),
        line_number=result.line_number,
        outcome=result.outcome,
        has_warnings=result.has_warnings,
        record_id=result.record_id,
        event_id=event.id if event and not is_check else None,
        cells=result.cells if keeps_cells else None,
        before=_to_text(event.previous) if event and is_check else None,
        after=_to_text(event.data) if event and is_check else None,
        problems=to_json(result.problems) if result.problems and (keeps_cells or is_check) else None,
    )


async def read_batch(source: Iterator[SourceRow]) -> list[SourceRow]:
    """The next rows. It yields to other requests, because a row with many errors can take milliseconds."""
    batch: list[SourceRow] = []
    turn_end = time.monotonic() + MAX_TURN
    while len(batch) < BATCH_SIZE and (row := next(source, None)):
        batch.append(row)
        if time.monotonic() >= turn_end:
            await asyncio.sleep(0)
            turn_end = time.monotonic() + MAX_TURN
    return batch


def _import_id(ctx: WriteContext) -> UUID:
    if ctx.import_id is None:
        raise LookupError("the context has no import")
    return ctx.import_id


def _to_text(raw: Raw | None) -> str | None:
    return None if raw is None else bytes(raw).decode()


async def _import_batch(
    ctx: WriteContext, options: ImportOptions, resource: Resource, matcher: Matcher, batch: Sequence[SourceRow]
) -> list[RowResult]:
    """Import the rows of a batch. Without an error, the outcome is `unchanged` until the events are known."""
    results = {each.line_number: RowResult(each.line_number, each.cells, "unchanged") for each in batch}
    for each in batch:
        if each.row is None:
            _reject(results[each.line_number], each.problems)
    rejected_numbers = [(each.line_number, each.number) for each in batch if each.row is None]
    matched = await matcher.match(ctx, [each.row for each in batch if each.row], rejected_numbers)
    _apply_match(results, matched)
    rows, name = matched.rows, options.resource
    if name == "note-types":
        rows = await _without_new_note_type_ids(ctx, rows, results)
    if name == "invoices" and not options.sets_states:
        rows = await keep_states(ctx, rows)
    assign_ids(name, rows)
    report = ImportReport(max_reported=_ALL_ERRORS)
    if rows:
        await upsert_batch(ctx, resource, rows, CONSTRAINT_ERRORS, report)
    await asyncio.sleep(0)
    for error in report.errors:
        _reject(results[error.line_number], [Problem(error.field, "", error.message)])
    for row in rows:
        if row.line_number not in report.rejected_lines:
            results[row.line_number].record_id = record_key(row.values).lower()
    return list(results.values())


def _apply_match(results: Mapping[int, RowResult], matched: MatchResult) -> None:
    for line_number, problem in matched.errors.items():
        _reject(results[line_number], [problem])
    for line_number, problem in matched.warnings.items():
        results[line_number].problems.append(msgspec.structs.replace(problem, is_warning=True))
    for line_number, record_id in matched.skipped.items():
        results[line_number].outcome, results[line_number].record_id = "skipped", record_id
    for line_number, (record_id, problem) in matched.unconfirmed.items():
        results[line_number].outcome, results[line_number].record_id = "unconfirmed", record_id
        results[line_number].problems.append(problem)


def _reject(result: RowResult, problems: Iterable[Problem]) -> None:
    result.outcome = "rejected"
    result.problems += problems


async def _without_new_note_type_ids(
    ctx: WriteContext, rows: Sequence[ImportRow[Any]], results: dict[int, RowResult]
) -> list[ImportRow[Any]]:
    """The note types with existing ids or without an id. The ids come from one sequence for all plan managers, which
    an import advances past the ids in its file, and no rollback resets it: only the operator's command may do so.
    """
    ids = [row.values.id for row in rows if isinstance(row.values.id, int)]
    known = {each.id for each in await note_type_store.get_many(ctx.tx, ctx.plan_manager_id, ids)}
    for row in rows:
        if isinstance(row.values.id, int) and row.values.id not in known:
            message = "must be the id of a note type, or empty for a new one"
            _reject(results[row.line_number], [Problem("id", str(row.values.id), message)])
    return [row for row in rows if results[row.line_number].outcome != "rejected"]


def _add_events(results: Sequence[RowResult], events: Sequence[Event]) -> None:
    """Give each row the event that it recorded, and with it its outcome."""
    events_by_record = defaultdict[str, list[Event]](list)
    for event in events:
        events_by_record[event_key(event)].append(event)
    for result in results:
        if result.outcome == "unchanged" and (own := events_by_record[result.record_id or ""]):
            result.event = own.pop(0)
            result.outcome = "created" if result.event.previous is None else "changed"


def _add_proposals(results: Sequence[RowResult], events: Sequence[Event]) -> None:
    """Say which rows have proposed bank details. They aren't part of the record, and an undo doesn't change them."""
    rows = {each.record_id: each for each in results}
    for event in events:
        ending = msgspec.json.decode(event.data or b"{}", type=dict[str, Any]).get("proposed_ending")
        message = f"The bank account ending in {ending} is proposed, and waits for another person’s approval."
        rows[event.resource.id].problems.append(Problem("", "", message, is_warning=True))


def _add_warnings(
    resource: str, results: Sequence[RowResult], readable: Mapping[int, Mapping[str, str]], today: date
) -> None:
    """Add warnings, also to skipped rows, so that all problems of a row can be corrected at once."""
    for result in results:
        if result.event and result.event.data:
            result.problems += find_warnings(resource, result.event.data, today)
        elif result.is_left_out:
            result.problems += find_warnings_in_cells(resource, readable[result.line_number], today)
