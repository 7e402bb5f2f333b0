"""Imports a file in one transaction, and reports the errors of every invalid line."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import asyncpg
from msgspec import UNSET

from plankeeper.core.context import ConstraintErrorHandler, WriteContext
from plankeeper.core.record_matches import MatchError, RecordMatcher
from plankeeper.database.errors import constraint_violation
from plankeeper.imports.reader import read_rows
from plankeeper.resources.resource import Resource
from plankeeper.resources.upsert import ImportCounts, ImportRow, InvalidRowsError, RowError

BATCH_SIZE = 1000
MAX_REPORTED = 100  # errors and warnings that a report lists; the rest are counted

_CONSTRAINT_VIOLATIONS = (asyncpg.IntegrityConstraintViolationError, asyncpg.CardinalityViolationError)


@dataclass(slots=True)
class ImportReport:
    """The result of an import. With any error, nothing is written.

    Without `is_complete`, the import stopped looking for constraint violations, so there may be more errors: it does
    so after `max_reported` errors.
    """

    counts: ImportCounts = field(default_factory=ImportCounts)
    row_count: int = 0
    errors: list[RowError] = field(default_factory=list[RowError])
    rejected_lines: set[int] = field(default_factory=set[int])
    error_count: int = 0
    is_complete: bool = True
    warnings: list[RowError] = field(default_factory=list[RowError])
    warning_count: int = 0
    max_reported: int = MAX_REPORTED

    def add_error(self, error: RowError) -> None:
        self.rejected_lines.add(error.line_number)
        self.error_count += 1
        if len(self.errors) < self.max_reported:
            self.errors.append(error)

    def add_warning(self, row: ImportRow[Any], warning: str | None) -> None:
        if warning:
            self.warning_count += 1
            if len(self.warnings) < self.max_reported:
                self.warnings.append(RowError(row.line_number, "", warning))


async def import_file(
    ctx: WriteContext,
    resource: Resource,
    file: Iterable[bytes],
    constraint_errors: Mapping[str, ConstraintErrorHandler],
    progress: Callable[[int], None],
    *,
    match: str | None = None,
) -> ImportReport:
    """Import a file in the transaction `ctx.tx`. If the report has errors, the caller must roll back.

    With `match`, a row without an id is about the record that has its value of this field, or about a new one.
    Calls `progress` with the number of lines read so far. Raises UnreadableFileError if the file is not an import
    file. Can block the event loop and wait for locks.
    """
    report = ImportReport()
    batch: list[ImportRow[Any]] = []
    matcher = RecordMatcher(resource.match_fields[match], "line") if match else None
    for row in read_rows(file, resource.import_schema):
        if isinstance(row, RowError):
            report.add_error(row)
            continue
        report.row_count += 1
        report.add_warning(row, resource.check(row.values))
        batch.append(row)
        if len(batch) == BATCH_SIZE:
            batch = await _match_rows(ctx, matcher, batch, report)
            await upsert_batch(ctx, resource, batch, constraint_errors, report)
            progress(report.row_count)
            batch = []
            if report.row_count == BATCH_SIZE:
                await ctx.tx.analyze(*resource.tables, wait=True)
    if batch:
        batch = await _match_rows(ctx, matcher, batch, report)
        await upsert_batch(ctx, resource, batch, constraint_errors, report)
        progress(report.row_count)
    return report


async def _match_rows(
    ctx: WriteContext, matcher: RecordMatcher | None, batch: list[ImportRow[Any]], report: ImportReport
) -> list[ImportRow[Any]]:
    """Give the rows the ids of the records that they match. Returns the rows without errors."""
    if matcher is None:
        return batch
    unknown = [row for row in batch if row.values.id is UNSET]
    values = [getattr(row.values, matcher.field.name) for row in unknown]
    rejected = set[int]()
    for row, result in zip(unknown, await matcher.match(ctx.tx, ctx.plan_manager_id, values), strict=True):
        if isinstance(result, MatchError):
            report.add_error(RowError(row.line_number, matcher.field.name, result.message))
            rejected.add(row.line_number)
        elif result:
            row.values.id = str(result)
    return [row for row in batch if row.line_number not in rejected]


async def upsert_batch(
    ctx: WriteContext,
    resource: Resource,
    batch: Sequence[ImportRow[Any]],
    constraint_errors: Mapping[str, ConstraintErrorHandler],
    report: ImportReport,
) -> None:
    """Import a batch with a few statements. After a constraint violation, import it row by row to find the rows."""
    try:
        async with ctx.tx.savepoint():
            report.counts.add(await resource.upsert(ctx, batch))
    except InvalidRowsError as invalid:
        for row_error in invalid.errors:
            report.add_error(row_error)
        # The other rows are imported as well, to find all errors in the file.
        remaining = [row for row in batch if row.line_number not in report.rejected_lines]
        if remaining:
            await upsert_batch(ctx, resource, remaining, constraint_errors, report)
    except _CONSTRAINT_VIOLATIONS as error:
        if len(batch) == 1:
            report.add_error(await _row_error(ctx, batch[0], error, constraint_errors))
        elif len(report.errors) < report.max_reported:
            await _upsert_one_by_one(ctx, resource, batch, constraint_errors, report)
        else:
            report.is_complete = False


async def _upsert_one_by_one(
    ctx: WriteContext,
    resource: Resource,
    batch: Sequence[ImportRow[Any]],
    constraint_errors: Mapping[str, ConstraintErrorHandler],
    report: ImportReport,
) -> None:
    """Import row by row. Failed rows are retried after the others, because they may refer to a later row."""
    pending = list(batch)
    errors: list[RowError] = []
    while pending:
        failed: list[ImportRow[Any]] = []
        errors = []
        for row in pending:
            attempt = ImportReport()
            await upsert_batch(ctx, resource, [row], constraint_errors, attempt)
            report.counts.add(attempt.counts)
            if attempt.errors:
                failed.append(row)
                errors += attempt.errors
        if len(failed) == len(pending):
            break
        pending = failed
    for error in errors:
        report.add_error(error)


async def _row_error(
    ctx: WriteContext,
    row: ImportRow[Any],
    error: asyncpg.PostgresError,
    constraint_errors: Mapping[str, ConstraintErrorHandler],
) -> RowError:
    violation = constraint_violation(error) if isinstance(error, asyncpg.IntegrityConstraintViolationError) else None
    handler = constraint_errors.get(violation.constraint) if violation else None
    if handler is None or violation is None:
        raise error
    api_error = await handler(ctx.tx, ctx.plan_manager_id, violation)
    for field_error in api_error.errors or []:
        return RowError(row.line_number, field_error.field, field_error.message)
    return RowError(row.line_number, "", api_error.detail)
