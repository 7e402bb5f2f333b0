"""The limit of a viewer: the participants of one account manager, and what belongs to them.

Lists have it as the filter `LIMIT`, searches as `LimitedSearch`. Records are checked by their ids.
"""

from collections.abc import Sequence
from typing import LiteralString
from uuid import UUID

from plankeeper.core.context import AccessedKind
from plankeeper.database.client import Executor
from plankeeper.database.lists.statements import Filter
from plankeeper.database.row_ids import HAS_ID

LIMIT = "participants_of"  # the name of the filter

OF_LIMIT: LiteralString = """participant_id in (
        select limited.id from participants limited
        where limited.plan_manager_id = $1 and limited.account_manager_id = {}::uuid
    )"""
# The filters of lists of participants, and of records that belong to one.
PARTICIPANTS_LIMIT = {LIMIT: Filter("account_manager_id = {}::uuid")}
RECORDS_LIMIT = {LIMIT: Filter(OF_LIMIT)}


def values_of(account_manager_id: UUID | None) -> dict[str, object]:
    """The values of the filters of a list; none for an account without a limit."""
    return {LIMIT: account_manager_id} if account_manager_id else {}


LIST_PARTICIPANTS = f"select id from participants where plan_manager_id = $1 and {HAS_ID} and account_manager_id = $3"
LIST_INVOICES: LiteralString = f"""
    select id from invoices where plan_manager_id = $1 and {HAS_ID} and {OF_LIMIT.format("$3")}
"""


async def list_inside(
    db: Executor, plan_manager_id: UUID, kind: AccessedKind, ids: Sequence[UUID], account_manager_id: UUID
) -> set[UUID]:
    """Those of the participants or invoices with these ids that a viewer with this limit sees."""
    if not ids:
        return set()
    if kind == "participant":
        return set(await db.rows(UUID, LIST_PARTICIPANTS, plan_manager_id, ids, account_manager_id))
    return set(await db.rows(UUID, LIST_INVOICES, plan_manager_id, ids, account_manager_id))
