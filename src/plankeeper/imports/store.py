"""Imports, their rows and the mapped columns in SQL."""

from collections.abc import Sequence
from datetime import datetime
from typing import LiteralString
from uuid import UUID

from msgspec.structs import astuple

from plankeeper.database.client import Executor, Transaction
from plankeeper.database.number_keys import abn_key, participant_number_key
from plankeeper.imports.schemas import (
    CheckedRow,
    ColumnMapping,
    Import,
    ImportedRow,
    ImportOptions,
    ImportRowFilter,
    ImportRowRecord,
    NumberHolder,
    OutcomeCounts,
)

COUNTS: LiteralString = """
    created_count, changed_count, unchanged_count, skipped_count, rejected_count, unconfirmed_count, warning_count
"""
COLUMNS: LiteralString = f"""
    {COUNTS}, id, resource, file_name, digest, existing, clears_empty, sets_states, included_lines, notify, state,
    created_by, created_by_name, created_at, imported_at, undone_at, undone_by_name, columns, mapping
"""
INSERT = """
    insert into imports (
        plan_manager_id, id, resource, file_name, digest, columns, mapping, created_by, created_by_name, created_at
    )
    values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
"""


async def insert(tx: Transaction, plan_manager_id: UUID, new: Import) -> None:
    """Insert an import whose file has been uploaded."""
    values = (new.id, new.resource, new.file_name, new.digest, new.columns, new.mapping)
    await tx.execute(INSERT, plan_manager_id, *values, new.created_by, new.created_by_name, new.created_at)


GET = f"select {COLUMNS} from imports where plan_manager_id = $1 and id = $2"


async def get(db: Executor, plan_manager_id: UUID, import_id: UUID) -> Import | None:
    return await db.one_or_none(Import, GET, plan_manager_id, import_id)


OF_EVENT: LiteralString = "(select import_id from events where plan_manager_id = $1 and events.id = $2)"
GET_OF_EVENT = f"select {COLUMNS} from imports where plan_manager_id = $1 and id = {OF_EVENT}"


async def get_of_event(db: Executor, plan_manager_id: UUID, event_id: UUID) -> Import | None:
    """The import that recorded an event, also by its undo."""
    return await db.one_or_none(Import, GET_OF_EVENT, plan_manager_id, event_id)


SELECT_FOR_UPDATE = GET + " for update"


async def select_for_update(tx: Transaction, plan_manager_id: UUID, import_id: UUID) -> Import | None:
    """An import, locked until the transaction ends."""
    return await tx.one_or_none(Import, SELECT_FOR_UPDATE, plan_manager_id, import_id)


LIST_PAGE = f"""
    select {COLUMNS}
    from imports
    where plan_manager_id = $1 and ($2::uuid is null or id < $2)
        and (
            state in ('imported', 'undone')
            or created_by = $3
                and exists (select from import_files file where file.plan_manager_id = $1 and file.id = imports.id)
                and not exists (
                    select from imports newer
                    where newer.plan_manager_id = $1 and newer.digest = imports.digest and newer.created_by = $3
                        and newer.state in ('uploaded', 'checked') and newer.id > imports.id
                )
        )
    order by id desc
    limit $4
"""


async def list_page(
    db: Executor, plan_manager_id: UUID, before: UUID | None, account_id: UUID, limit: int
) -> list[Import]:
    """The newest imports first, with the checks of an account that it can still confirm, the last one of each file."""
    return await db.rows(Import, LIST_PAGE, plan_manager_id, before, account_id, limit)


IS_IMPORTED: LiteralString = "where plan_manager_id = $1 and state = 'imported'"
GET_SAME_FILE = f"select {COLUMNS} from imports {IS_IMPORTED} and digest = $2 order by id desc limit 1"


async def get_same_file(db: Executor, plan_manager_id: UUID, digest: str) -> Import | None:
    """The last import of a file with this content that was not undone."""
    return await db.one_or_none(Import, GET_SAME_FILE, plan_manager_id, digest)


LIST_SAME_FILES = f"""
    select distinct on (digest) {COLUMNS} from imports {IS_IMPORTED} and digest = any ($2) order by digest, id desc
"""


async def list_same_files(db: Executor, plan_manager_id: UUID, digests: Sequence[str]) -> list[Import]:
    """The same for the contents of several files."""
    return await db.rows(Import, LIST_SAME_FILES, plan_manager_id, digests)


UPDATE_CHECKED = """
    update imports set
        state = 'checked', resource = $3, mapping = $4, existing = $5, included_lines = $6, clears_empty = $7,
        sets_states = $8, created_count = $9, changed_count = $10, unchanged_count = $11, skipped_count = $12,
        rejected_count = $13, unconfirmed_count = $14, warning_count = $15
    where plan_manager_id = $1 and id = $2
"""


async def update_checked(
    tx: Transaction, plan_manager_id: UUID, import_id: UUID, options: ImportOptions, counts: OutcomeCounts
) -> None:
    """Save the result of a check."""
    await tx.execute(UPDATE_CHECKED, plan_manager_id, import_id, *astuple(options), *astuple(counts))


UPDATE_IMPORTED = """
    update imports set state = 'imported', imported_at = $3, notify = $4 where plan_manager_id = $1 and id = $2
"""


async def update_imported(
    tx: Transaction, plan_manager_id: UUID, import_id: UUID, imported_at: datetime, *, notify: bool
) -> None:
    await tx.execute(UPDATE_IMPORTED, plan_manager_id, import_id, imported_at, notify)


UPDATE_UNDONE = """
    update imports set state = 'undone', undone_at = $3, undone_by_name = $4 where plan_manager_id = $1 and id = $2
"""


async def update_undone(
    tx: Transaction, plan_manager_id: UUID, import_id: UUID, undone_at: datetime, undone_by_name: str | None
) -> None:
    await tx.execute(UPDATE_UNDONE, plan_manager_id, import_id, undone_at, undone_by_name)


async def insert_many(tx: Transaction, rows: Sequence[ImportRowRecord]) -> None:
    await tx.insert_rows("import_rows", ImportRowRecord, rows)


DELETE_ROWS = "delete from import_rows where plan_manager_id = $1 and import_id = $2"


async def delete_rows(tx: Transaction, plan_manager_id: UUID, import_id: UUID) -> None:
    await tx.execute(DELETE_ROWS, plan_manager_id, import_id)


DELETE_CHECKED_ROWS = """
    delete from import_rows
    where plan_manager_id = $1 and import_id = $2 and line_number between $3 and $4
    returning line_number, outcome, record_id, before::text, after::text, problems::text
"""


async def delete_checked_rows(
    tx: Transaction, plan_manager_id: UUID, import_id: UUID, first_line: int, last_line: int
) -> list[CheckedRow]:
    """Delete the rows of a check between two lines, and return them in their order."""
    rows = await tx.rows(CheckedRow, DELETE_CHECKED_ROWS, plan_manager_id, import_id, first_line, last_line)
    return sorted(rows, key=lambda each: each.line_number)


ROW_COLUMNS: LiteralString = """
    line_number, outcome, has_warnings, record_id, event_id, cells, before, after, problems
"""
ROWS_OF_FILTER: LiteralString = f"""
    select {ROW_COLUMNS}
    from import_rows
    where plan_manager_id = $1 and import_id = $2
        and ($4::text is null or outcome = $4 or line_number = any ($5)) and (not $6 or has_warnings)
"""
LIST_ROWS: LiteralString = f"{ROWS_OF_FILTER} and line_number > $3 order by line_number limit $7"
LIST_ROWS_BEFORE: LiteralString = f"{ROWS_OF_FILTER} and line_number < $3 order by line_number desc limit $7"


async def list_rows(
    db: Executor, plan_manager_id: UUID, import_id: UUID, after: int, filter_: ImportRowFilter, limit: int
) -> list[ImportedRow]:
    """The rows after a line."""
    return await db.rows(ImportedRow, LIST_ROWS, plan_manager_id, import_id, after, *filter_, limit)


async def list_rows_before(
    db: Executor, plan_manager_id: UUID, import_id: UUID, before: int, filter_: ImportRowFilter, limit: int
) -> list[ImportedRow]:
    """The rows before a line, the nearest first."""
    return await db.rows(ImportedRow, LIST_ROWS_BEFORE, plan_manager_id, import_id, before, *filter_, limit)


LIST_MAPPINGS = "select resource, column_name, field from import_mappings where plan_manager_id = $1"


async def list_mappings(db: Executor, plan_manager_id: UUID) -> dict[str, dict[str, str]]:
    """The fields that people chose earlier, by resource and by the folded names of the columns."""
    mappings: dict[str, dict[str, str]] = {}
    for each in await db.rows(ColumnMapping, LIST_MAPPINGS, plan_manager_id):
        mappings.setdefault(each.resource, {})[each.column_name] = each.field
    return mappings


UPSERT_MAPPINGS = """
    insert into import_mappings (plan_manager_id, resource, column_name, field)
    select $1, $2, column_name, field
    from unnest($3::text[], $4::text[]) as chosen (column_name, field)
    on conflict (plan_manager_id, resource, column_name) do update set field = excluded.field
"""


async def upsert_mappings(tx: Transaction, plan_manager_id: UUID, resource: str, mappings: dict[str, str]) -> None:
    """Remember the fields of columns, by the folded names of the columns."""
    await tx.execute(UPSERT_MAPPINGS, plan_manager_id, resource, list(mappings), list(mappings.values()))


LIST_PARTICIPANTS_BY_NUMBER = f"""
    select participant_number as number, id, concat_ws(' ', first_name, last_name) as name, date_of_birth
    from participants
    where plan_manager_id = $1 and {participant_number_key()} = any ($2)
    order by id
"""
LIST_PROVIDERS_BY_ABN = f"""
    select abn as number, id, coalesce(entity_name, '') as name, null::date as date_of_birth
    from providers
    where plan_manager_id = $1 and {abn_key()} = any ($2)
    order by id
"""


async def list_participants_by_number(
    db: Executor, plan_manager_id: UUID, numbers: Sequence[str]
) -> list[NumberHolder]:
    """All participants with one of the comparable numbers; several may share a number."""
    return await db.rows(NumberHolder, LIST_PARTICIPANTS_BY_NUMBER, plan_manager_id, numbers)


async def list_providers_by_abn(db: Executor, plan_manager_id: UUID, numbers: Sequence[str]) -> list[NumberHolder]:
    """All providers with one of the comparable ABNs; several may share one."""
    return await db.rows(NumberHolder, LIST_PROVIDERS_BY_ABN, plan_manager_id, numbers)


# One task deletes the expired rows and imports of all plan managers.
PURGE_UPLOADED = """
    delete from imports
    where state in ('uploaded', 'checked') and created_at < statement_timestamp() - $1 * interval '1 hour'
"""
PURGE_REJECTED = """
    delete from import_rows
    using imports
    where imports.plan_manager_id = import_rows.plan_manager_id and imports.id = import_rows.import_id
        and outcome in ('rejected', 'unconfirmed') and columns is not null
        and imported_at < statement_timestamp() - $1 * interval '1 day'
"""
CLEAR_COLUMNS = """
    update imports set columns = null, mapping = null
    where columns is not null and imported_at < statement_timestamp() - $1 * interval '1 day'
"""
PURGE_IMPORTED = """
    delete from imports where imported_at < statement_timestamp() - $1 * interval '1 day'
"""


async def purge_uploaded(db: Executor, hours: int) -> None:
    """Delete the imports that weren't confirmed within some hours, with their rows."""
    await db.execute(PURGE_UPLOADED, hours)


async def purge_rejected(db: Executor, days: int) -> None:
    """Delete the rejected and unconfirmed rows of imports that are older than some days."""
    await db.execute(PURGE_REJECTED, days)


async def clear_columns(db: Executor, days: int) -> None:
    """Delete the names of the columns of imports whose rejected rows have been deleted."""
    await db.execute(CLEAR_COLUMNS, days)


async def purge_imported(db: Executor, days: int) -> None:
    """Delete the records of imports that are older than some days."""
    await db.execute(PURGE_IMPORTED, days)
