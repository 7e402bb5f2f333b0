"""SQL of the claims and payments of an erased participant: what is kept, and what is de-identified afterwards."""

from collections.abc import Sequence
from datetime import datetime
from typing import LiteralString
from uuid import UUID

from msgspec import Struct

from plankeeper.core.fields import AwareDatetime
from plankeeper.database.client import Executor, Transaction
from plankeeper.database.row_ids import in_array

# The day of the last record about an invoice that was claimed, here or in the system that it was imported from. A claim
# in a draft batch counts: the file has the person's number, and the batch can still be submitted.
LIST_CLAIMED = """
    select id, greatest(
        received_at,
        (
            select max(greatest(created_at, result_at)) from claims
            where plan_manager_id = $1 and invoice_id = invoice.id
        ),
        (select max(created_at) from adjustments where plan_manager_id = $1 and invoice_id = invoice.id),
        (
            select max(greatest(payment.created_at, payment.returned_at, payment.paid_at))
            from payment_lines line
            cross join lateral (
                select created_at, returned_at, (
                    select paid_at from payment_runs where plan_manager_id = $1 and id = payments.run_id
                ) as paid_at
                from payments
                where plan_manager_id = $1 and id = line.payment_id
                offset 0
            ) payment
            where line.plan_manager_id = $1 and line.invoice_id = invoice.id
        ),
        (
            select max((
                select created_at from fee_takings where plan_manager_id = $1 and id = line.taking_id
            ))
            from fee_taking_lines line
            where line.plan_manager_id = $1 and line.invoice_id = invoice.id
        )
    ) as changed_at
    from invoices invoice
    where plan_manager_id = $1 and participant_id = $2 and (
        exists (select from claims where plan_manager_id = $1 and invoice_id = invoice.id)
        or exists (
            select from invoice_lines
            where plan_manager_id = $1 and invoice_id = invoice.id
                and claim_status in ('pending', 'payment_ready', 'partially_ready', 'paid', 'partially_paid')
        )
    )
    order by id
"""


class ClaimedInvoice(Struct):
    """An invoice that was claimed, and when something about its claims and payments was last recorded."""

    id: UUID
    changed_at: AwareDatetime


async def list_claimed(db: Executor, plan_manager_id: UUID, participant_id: UUID) -> list[ClaimedInvoice]:
    return await db.rows(ClaimedInvoice, LIST_CLAIMED, plan_manager_id, participant_id)


UPSERT_KEPT = """
    insert into kept_financial_records (plan_manager_id, participant_id, kept_until) values ($1, $2, $3)
    on conflict (plan_manager_id, participant_id) do update set kept_until = excluded.kept_until
"""
DELETE_KEPT = "delete from kept_financial_records where plan_manager_id = $1 and participant_id = $2"


async def set_kept(tx: Transaction, plan_manager_id: UUID, participant_id: UUID, until: datetime | None) -> None:
    """Remember that records of a participant are kept until a time; null: without an end."""
    await tx.execute(UPSERT_KEPT, plan_manager_id, participant_id, until)


async def delete_kept(tx: Transaction, plan_manager_id: UUID, participant_id: UUID) -> None:
    await tx.execute(DELETE_KEPT, plan_manager_id, participant_id)


class DueRecords(Struct):
    """A participant whose records needn't be kept any longer."""

    plan_manager_id: UUID
    participant_id: UUID


LIST_DUE = """
    -- one task looks at all plan managers
    select plan_manager_id, participant_id
    from kept_financial_records kept
    where kept_until <= $1 and not exists (
        select from legal_holds
        where plan_manager_id = kept.plan_manager_id and participant_id = kept.participant_id
    )
    order by kept_until
    limit $2
"""


async def list_due(db: Executor, now: datetime, limit: int) -> list[DueRecords]:
    """Participants of all plan managers, without those with a legal hold."""
    return await db.rows(DueRecords, LIST_DUE, now, limit)


OF_INVOICES: LiteralString = in_array("invoice_id", "$2::uuid[]")
ERASE_CLAIMS = f"""
    with erased as (
        update claims set
            fields = fields || '{{"ndis_number": "[erased]"}}',
            reason = case when reason is null then null else '[erased]' end
        where plan_manager_id = $1 and {OF_INVOICES}
            and (fields ->> 'ndis_number' <> '[erased]' or reason <> '[erased]')
        returning id
    )
    select count(*) from erased
"""
ERASE_ADJUSTMENTS = f"""
    with erased as (
        update adjustments set reason = '[erased]'
        where plan_manager_id = $1 and {OF_INVOICES} and reason <> '[erased]'
        returning id
    )
    select count(*) from erased
"""
ERASE_PAYMENTS = """
    with erased as (
        update payments set
            payee_name = '[erased]', account = '', account_title = '[erased]',
            return_reason = case when return_reason is null then null else '[erased]' end
        where plan_manager_id = $1 and payee_kind = 'participant' and payee_id = $2 and account <> ''
        returning id
    )
    select count(*) from erased
"""
# They name accounts whose titles the file of the run shortens.
ERASE_RUN_WARNINGS = """
    update payment_runs set warnings = '[]'
    where plan_manager_id = $1 and warnings <> '[]' and id in (
        select run_id from payments where plan_manager_id = $1 and payee_kind = 'participant' and payee_id = $2
    )
"""


async def erase_claims(tx: Transaction, plan_manager_id: UUID, invoice_ids: Sequence[UUID]) -> int:
    """Erase the NDIS numbers and reasons of claims and adjustments. Returns the number of changed rows."""
    changed = await tx.one(int, ERASE_CLAIMS, plan_manager_id, invoice_ids)
    return changed + await tx.one(int, ERASE_ADJUSTMENTS, plan_manager_id, invoice_ids)


async def erase_payments(tx: Transaction, plan_manager_id: UUID, participant_id: UUID) -> int:
    """Erase the name and the account in the payments to a participant. Returns the number of changed rows."""
    await tx.execute(ERASE_RUN_WARNINGS, plan_manager_id, participant_id)
    return await tx.one(int, ERASE_PAYMENTS, plan_manager_id, participant_id)
