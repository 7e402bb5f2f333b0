"""The lines that a claim batch can contain, and their participants and providers, in SQL."""

from collections.abc import Sequence
from decimal import Decimal
from typing import LiteralString
from uuid import UUID

from msgspec import Struct

from plankeeper.database.client import Executor
from plankeeper.database.row_ids import HAS_ID, in_array
from plankeeper.resources.claims.eligibility import CandidateState

_COLUMNS: LiteralString = """
    invoice.id as invoice_id, line.id as line_id, line.position + 1 as number, line.claim_status, line.is_rest_waiting,
    line.open_claim_batch as open_batch, invoice.is_deleted as is_invoice_deleted,
    case when invoice.waiting_line_status is null and invoice.claim_status <> 'on_hold' then invoice.claim_status end
        as settled_status,
    invoice.wont_claim, invoice.held_at is not null as is_held, invoice.approval_status,
    array(select code from unnest(invoice.warning_codes) code where code = any ($2)) as blocking_codes
"""
# Lines that an earlier batch has left out come after new ones, and those whose invoice keeps them out come last, so
# that within the limit they never take the place of lines that can be claimed.
_ORDER: LiteralString = """
    (invoice.wont_claim or invoice.held_at is not null or invoice.approval_status in ('pending', 'rejected')
        or invoice.warning_codes && $2),
    line.claim_status = 'flagged', invoice.received_at, invoice.id, line.position
"""
_INVOICE_COLUMNS: LiteralString = """
    id, received_at, claim_status, waiting_line_status, is_deleted, wont_claim, held_at, approval_status, warning_codes
"""
_LINE_COLUMNS: LiteralString = "invoice_id, id, position, claim_status, is_rest_waiting, open_claim_batch"

LIST_OPEN = f"""
    select {_COLUMNS}
    from (
        select {_LINE_COLUMNS} from invoice_lines
        where plan_manager_id = $1 and not is_deleted and claim_status in ('new', 'flagged', 'on_hold')
            and open_claim_batch is null
        union all
        select {_LINE_COLUMNS} from invoice_lines
        where plan_manager_id = $1 and not is_deleted and claim_status = 'partially_paid' and is_rest_waiting
            and open_claim_batch is null
    ) line
    cross join lateral (
        select {_INVOICE_COLUMNS}
        from invoices
        where plan_manager_id = $1 and id = line.invoice_id and not is_deleted
            -- An import can store a state of the invoice, such as paid, that its lines don't have: nobody claims these.
            and (waiting_line_status is not null or claim_status = 'on_hold' or line.claim_status = 'partially_paid')
        offset 0
    ) invoice
    order by {_ORDER}
    limit $3
"""


async def list_open(
    db: Executor, plan_manager_id: UUID, blocking_codes: Sequence[str], limit: int
) -> list[CandidateState]:
    """All lines whose state lets them be claimed, up to a limit.

    Those that no invoice keeps out come first, and of these, those of the first received invoices.
    """
    return await db.rows(CandidateState, LIST_OPEN, plan_manager_id, blocking_codes, limit)


LIST_OF_INVOICES = f"""
    select {_COLUMNS}
    from (
        select {_INVOICE_COLUMNS}
        from invoices
        where plan_manager_id = $1 and id in (select unnest($4::uuid[]) limit cardinality($4::uuid[]))
    ) invoice
    cross join lateral (
        select {_LINE_COLUMNS} from invoice_lines
        where plan_manager_id = $1 and invoice_id = invoice.id and not is_deleted
        offset 0
    ) line
    order by {_ORDER}
    limit $3
"""


async def list_of_invoices(
    db: Executor, plan_manager_id: UUID, blocking_codes: Sequence[str], limit: int, invoice_ids: Sequence[UUID]
) -> list[CandidateState]:
    """The lines of invoices in all states, in the order of `list_open`, up to a limit."""
    return await db.rows(CandidateState, LIST_OF_INVOICES, plan_manager_id, blocking_codes, limit, invoice_ids)


LIST_EXISTING = f"select id from invoices where plan_manager_id = $1 and {HAS_ID}"


async def list_existing(db: Executor, plan_manager_id: UUID, invoice_ids: Sequence[UUID]) -> list[UUID]:
    """Those of the invoices that exist."""
    return await db.rows(UUID, LIST_EXISTING, plan_manager_id, invoice_ids)


class Party(Struct):
    """A participant with its NDIS number, or a provider with its ABN. `is_exempt`: it needn't quote one."""

    id: UUID
    number: str | None
    is_exempt: bool


LIST_PARTICIPANTS = f"""
    select id, participant_number as number, false as is_exempt
    from participants
    where plan_manager_id = $1 and {HAS_ID}
"""
LIST_PROVIDERS = f"""
    select id, abn as number, abn_exempt as is_exempt
    from providers
    where plan_manager_id = $1 and {HAS_ID}
"""


async def list_participants(db: Executor, plan_manager_id: UUID, ids: Sequence[UUID]) -> list[Party]:
    return await db.rows(Party, LIST_PARTICIPANTS, plan_manager_id, ids)


async def list_providers(db: Executor, plan_manager_id: UUID, ids: Sequence[UUID]) -> list[Party]:
    return await db.rows(Party, LIST_PROVIDERS, plan_manager_id, ids)


class StoredAmount(Struct):
    """A line with its amount, in dollars with tax."""

    invoice_id: UUID
    id: UUID
    amount: Decimal


LIST_AMOUNTS = f"""
    select invoice_id, id, amount
    from invoice_lines
    where plan_manager_id = $1 and {in_array("invoice_id", "$2::uuid[]")} and amount is not null
"""


async def list_amounts(db: Executor, plan_manager_id: UUID, invoice_ids: Sequence[UUID]) -> list[StoredAmount]:
    """The lines of the invoices with these ids that have an amount; unknown ids are ignored."""
    return await db.rows(StoredAmount, LIST_AMOUNTS, plan_manager_id, invoice_ids)
