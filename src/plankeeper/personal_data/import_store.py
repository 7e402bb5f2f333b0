"""SQL of erasures in files and imports of the console."""

from collections.abc import Sequence
from typing import LiteralString
from uuid import UUID

from plankeeper.database.client import Executor, Transaction
from plankeeper.database.row_ids import HAS_ID
from plankeeper.personal_data.schemas import FileContent, ImportRowReference, ImportTexts

LIST_FILES = """
    select id, name, created_at, created_by, content from import_files
    where plan_manager_id = $1
    order by id
"""
DELETE_FILES = f"delete from import_files where plan_manager_id = $1 and {HAS_ID}"


async def list_files(db: Executor, plan_manager_id: UUID) -> list[FileContent]:
    """The uploaded files: what they contain is only guessed."""
    return await db.rows(FileContent, LIST_FILES, plan_manager_id)


async def delete_files(tx: Transaction, plan_manager_id: UUID, file_ids: Sequence[UUID]) -> None:
    await tx.execute(DELETE_FILES, plan_manager_id, file_ids)


# A row of an import is about a person by its record, or by the texts that a check or a left out row keeps. The rows are
# listed before they are deleted, because on Citus a deletion can't convert arrays and JSON to text.
IS_ROW_OF_PERSON: LiteralString = """
        plan_manager_id = $1 and (
            record_id = $2 or starts_with(record_id, $2 || '/')
            or concat_ws(' ', array_to_string(cells, ' '), before, after, problems) ~* $3
        )"""
LIST_UNFINISHED_IMPORTS: LiteralString = f"""
    select id from imports
    where plan_manager_id = $1 and state in ('uploaded', 'checked') and (
        id = any ($4::uuid[]) or id in (select import_id from import_rows where {IS_ROW_OF_PERSON})
    )
"""
DELETE_IMPORTS = f"delete from imports where plan_manager_id = $1 and {HAS_ID}"
LIST_LEFT_OUT_ROWS: LiteralString = f"""
    select import_id, line_number from import_rows
    where outcome in ('rejected', 'unconfirmed') and {IS_ROW_OF_PERSON}
"""
DELETE_ROWS = """
    delete from import_rows
    where plan_manager_id = $1
        and (import_id, line_number) in (select * from unnest($2::uuid[], $3::integer[]) as found (import_id, number))
"""


async def erase_import_rows(
    tx: Transaction, plan_manager_id: UUID, participant_id: UUID, row_pattern: str, file_ids: Sequence[UUID]
) -> int:
    """Delete the unfinished imports of a person or of deleted files, and the rows about the person that were left out.

    Where a check shows the person, the whole import is deleted: the file can be uploaded again. Returns the number of
    deleted imports and rows.
    """
    person = (str(participant_id), row_pattern)
    imports = await tx.rows(UUID, LIST_UNFINISHED_IMPORTS, plan_manager_id, *person, file_ids)
    await tx.execute(DELETE_IMPORTS, plan_manager_id, imports)
    rows = await tx.rows(ImportRowReference, LIST_LEFT_OUT_ROWS, plan_manager_id, *person)
    ids, numbers = [each.import_id for each in rows], [each.line_number for each in rows]
    await tx.execute(DELETE_ROWS, plan_manager_id, ids, numbers)
    return len(imports) + len(rows)


LIST_IMPORT_TEXTS = """
    select id, file_name ~* $2 as in_name, coalesce(array_to_string(columns, ' ') ~* $2, false) as in_columns
    from imports
    where plan_manager_id = $1 and (file_name ~* $2 or array_to_string(columns, ' ') ~* $2)
"""
ERASE_FILE_NAMES = f"update imports set file_name = '[erased]' where plan_manager_id = $1 and {HAS_ID}"
ERASE_COLUMNS = f"""
    update imports set columns = null, mapping = null where plan_manager_id = $1 and {HAS_ID}
"""
DELETE_MAPPINGS = """
    delete from import_mappings where plan_manager_id = $1 and column_name = any ($2::text[]) returning column_name
"""


async def erase_import_texts(tx: Transaction, plan_manager_id: UUID, pattern: str, column_names: Sequence[str]) -> int:
    """Erase the names of files and columns that match a pattern, and forget the folded names of columns."""
    imports = await tx.rows(ImportTexts, LIST_IMPORT_TEXTS, plan_manager_id, pattern)
    await tx.execute(ERASE_FILE_NAMES, plan_manager_id, [each.id for each in imports if each.in_name])
    await tx.execute(ERASE_COLUMNS, plan_manager_id, [each.id for each in imports if each.in_columns])
    return len(imports) + len(await tx.rows(str, DELETE_MAPPINGS, plan_manager_id, column_names))
