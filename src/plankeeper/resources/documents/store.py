"""Documents in SQL, and the objects that are to be deleted from the storage."""

from collections.abc import Sequence
from datetime import datetime
from typing import LiteralString
from uuid import UUID

from msgspec import Struct

from plankeeper.core.json import to_json
from plankeeper.database.client import Executor, Transaction
from plankeeper.resources.documents.schemas import DocumentRow

COLUMNS: LiteralString = """
    id, invoice_id, provider_id, object_key, file_name, media_type, size, sha256, created_at, created_by, replaced_at
"""
GET = f"select {COLUMNS} from documents where plan_manager_id = $1 and invoice_id = $2 and replaced_at is null"


async def get(db: Executor, plan_manager_id: UUID, invoice_id: UUID) -> DocumentRow | None:
    """The current document of an invoice."""
    return await db.one_or_none(DocumentRow, GET, plan_manager_id, invoice_id)


GET_STATEMENT = f"""
    select {COLUMNS} from documents where plan_manager_id = $1 and provider_id = $2 and replaced_at is null
"""


async def get_statement(db: Executor, plan_manager_id: UUID, provider_id: UUID) -> DocumentRow | None:
    """The file of a provider's current statement that it needn't quote an ABN."""
    return await db.one_or_none(DocumentRow, GET_STATEMENT, plan_manager_id, provider_id)


IS_RESTRICTED = """
    select exists (
        select from kept_financial_records
        where plan_manager_id = $1
            and participant_id = (select participant_id from invoices where plan_manager_id = $1 and id = $2)
    )
"""


async def is_restricted(db: Executor, plan_manager_id: UUID, invoice_id: UUID) -> bool:
    """Whether the participant of an invoice was erased, so that its document is kept only as a financial record."""
    return await db.one(bool, IS_RESTRICTED, plan_manager_id, invoice_id)


LIST_PAGE = f"select {COLUMNS} from documents where plan_manager_id = $1 and id > $2 order by id limit $3"


async def list_page(db: Executor, plan_manager_id: UUID, after: UUID, limit: int) -> list[DocumentRow]:
    """The documents of all invoices and providers, also replaced ones, in order of id."""
    return await db.rows(DocumentRow, LIST_PAGE, plan_manager_id, after, limit)


TOO_SLOW = "the upload took so long that its object has been deleted"

REPLACE = """
    update documents set replaced_at = $3 where plan_manager_id = $1 and invoice_id = $2 and replaced_at is null
"""
INSERT = f"""
    insert into documents (plan_manager_id, {COLUMNS})
    select $1, {COLUMNS} from json_populate_recordset(null::documents, $2)
"""


async def insert(tx: Transaction, plan_manager_id: UUID, row: DocumentRow) -> None:
    """Insert the document of an invoice, in place of its current one. The caller has locked the invoice."""
    await tx.execute(REPLACE, plan_manager_id, row.invoice_id, row.created_at)
    await tx.execute(INSERT, plan_manager_id, to_json([row]))
    if not await claim_object(tx, plan_manager_id, row.object_key):
        raise LookupError(TOO_SLOW)


REPLACE_STATEMENT = """
    update documents set replaced_at = $3 where plan_manager_id = $1 and provider_id = $2 and replaced_at is null
"""


async def replace_statement(tx: Transaction, plan_manager_id: UUID, provider_id: UUID, now: datetime) -> None:
    """Have a provider no current file of a statement. Earlier files are kept. The caller has locked the provider."""
    await tx.execute(REPLACE_STATEMENT, plan_manager_id, provider_id, now)


async def insert_statement(tx: Transaction, plan_manager_id: UUID, row: DocumentRow) -> None:
    """Insert the file of a provider's statement, after `replace_statement`."""
    await tx.execute(INSERT, plan_manager_id, to_json([row]))
    if not await claim_object(tx, plan_manager_id, row.object_key):
        raise LookupError(TOO_SLOW)


DELETE = "delete from documents where plan_manager_id = $1 and id = any ($2)"


async def delete(tx: Transaction, plan_manager_id: UUID, rows: Sequence[DocumentRow], now: datetime) -> None:
    """Delete documents. A periodic task deletes their objects."""
    await tx.execute(DELETE, plan_manager_id, [each.id for each in rows])
    await tx.execute(ADD_OBJECTS, plan_manager_id, [each.object_key for each in rows], now)


ADD_OBJECTS = """
    insert into object_cleanup (plan_manager_id, object_key, due_at) select $1, unnest($2::text[]), $3
"""
CLAIM_OBJECT = "delete from object_cleanup where plan_manager_id = $1 and object_key = $2 returning object_key"


async def claim_object(tx: Executor, plan_manager_id: UUID, object_key: str) -> bool:
    """Have an object kept, or delete it in this transaction. False if another transaction has done so."""
    return await tx.one_or_none(str, CLAIM_OBJECT, plan_manager_id, object_key) is not None


async def add_object(db: Executor, plan_manager_id: UUID, object_key: str, due_at: datetime) -> None:
    """Have an object deleted, unless its document is stored before this time."""
    await db.execute(ADD_OBJECTS, plan_manager_id, [object_key], due_at)


KEEP_OBJECTS = "delete from object_cleanup where plan_manager_id = $1"


async def keep_objects(tx: Transaction, plan_manager_id: UUID) -> None:
    """Have no object deleted, in a restored database: the original can have stored documents of them since."""
    await tx.execute(KEEP_OBJECTS, plan_manager_id)


class DueObject(Struct):
    """An object to delete."""

    plan_manager_id: UUID
    object_key: str


LIST_DUE = "select plan_manager_id, object_key from object_cleanup where due_at <= $1 order by due_at limit $2"


async def list_due(db: Executor, now: datetime, limit: int) -> list[DueObject]:
    return await db.rows(DueObject, LIST_DUE, now, limit)
