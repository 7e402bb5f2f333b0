"""An import: a whole file in one transaction, or nothing of it and a report of every bad line."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import asyncpg

from plankeeper.database.client import constraint_violation
from plankeeper.http.context import WriteContext
from plankeeper.http.routing import ConstraintErrorHandler
from plankeeper.import_export.reader import ImportRow, RowError, read_rows
from plankeeper.import_export.registry import Resource
from plankeeper.import_export.upsert import ImportCounts, InvalidRowsError

BATCH_SIZE = 1000
MAX_REPORTED = 100  # bad lines in a report

_CONSTRAINT_VIOLATIONS = (asyncpg.IntegrityConstraintViolationError, asyncpg.CardinalityViolationError)


@dataclass(slots=True)
class ImportReport:
    """What an import did: with any bad line it wrote nothing. `all_known`: no bad line was left uncounted."""

    counts: ImportCounts = field(default_factory=ImportCounts)
    row_count: int = 0
    errors: list[RowError] = field(default_factory=list[RowError])
    rejected_lines: set[int] = field(default_factory=set[int])
    error_count: int = 0
    is_complete: bool = True
    warnings: list[RowError] = field(default_factory=list[RowError])
    warning_count: int = 0

    def add_error(self, error: RowError) -> None:
        self.rejected_lines.add(error.line_number)
        self.error_count += 1
        if len(self.errors) < MAX_REPORTED:
            self.errors.append(error)

    def add_warning(self, row: ImportRow[Any], warning: str | None) -> None:
        if warning:
            self.warning_count += 1
            if len(self.warnings) < MAX_REPORTED:
                self.warnings.append(RowError(row.line_number, "", warning))


async def import_file(
    ctx: WriteContext,
    resource: Resource,
    file: Iterable[bytes],
    constraint_errors: Mapping[str, ConstraintErrorHandler],
    progress: Callable[[int], None],
    *,
    exclusive: bool = True,
) -> ImportReport:
    """Merge a file into `call.tx`. With bad lines in the report, the caller must roll back.

    `progress` is told the lines read so far. Raises Unreadable where the file as a whole is no import file.
    `alone`: nothing else waits for this process, and this one may wait for others.
    """
    report = ImportReport()
    batch: list[ImportRow[Any]] = []
    for row in read_rows(file, resource.import_schema):
        if isinstance(row, RowError):
            report.add_error(row)
            if not exclusive and report.error_count % MAX_REPORTED == 0:
                await asyncio.sleep(0)
            continue
        report.row_count += 1
        report.add_warning(row, resource.check(row.values))
        batch.append(row)
        if len(batch) == BATCH_SIZE:
            await _upsert_batch(ctx, resource, batch, constraint_errors, report)
            progress(report.row_count)
            batch = []
            if report.row_count == BATCH_SIZE:
                await ctx.tx.analyze(*resource.tables, wait=exclusive)
    if batch:
        await _upsert_batch(ctx, resource, batch, constraint_errors, report)
        progress(report.row_count)
    return report


async def _upsert_batch(
    ctx: WriteContext,
    resource: Resource,
    batch: Sequence[ImportRow[Any]],
    constraint_errors: Mapping[str, ConstraintErrorHandler],
    report: ImportReport,
) -> None:
    """Merge a batch at once; one that breaks a constraint line by line, to learn which lines do."""
    try:
        async with ctx.tx.savepoint():
            report.counts.add(await resource.upsert(ctx, batch))
    except InvalidRowsError as invalid:
        for row_error in invalid.errors:
            report.add_error(row_error)
        # The others are merged all the same, to find what else is wrong in the file.
        remaining = [row for row in batch if row.line_number not in report.rejected_lines]
        if remaining:
            await _upsert_batch(ctx, resource, remaining, constraint_errors, report)
    except _CONSTRAINT_VIOLATIONS as error:
        if len(batch) == 1:
            report.add_error(await _row_error(ctx, batch[0], error, constraint_errors))
        elif len(report.errors) < MAX_REPORTED:
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
    """Merge line by line. One that fails is tried again after the others: what it refers to may stand behind it."""
    pending = list(batch)
    errors: list[RowError] = []
    while pending:
        failed: list[ImportRow[Any]] = []
        errors = []
        for row in pending:
            attempt = ImportReport()
            await _upsert_batch(ctx, resource, [row], constraint_errors, attempt)
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
