"""Claims, payments and statements as files for auditors, in order of id.

They are records of what was done here, so no import makes them: `plankeeper backup` moves them to another database.
Payments contain only the endings of account numbers.
"""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Annotated, NamedTuple
from uuid import UUID

from msgspec import Meta, Struct

from plankeeper.database.client import Transaction
from plankeeper.resources.claims.adjustment_schemas import Adjustment
from plankeeper.resources.claims.adjustment_store import COLUMNS as ADJUSTMENT_COLUMNS
from plankeeper.resources.claims.batch_file import FileRow
from plankeeper.resources.claims.result_schemas import Receipt
from plankeeper.resources.claims.result_store import RECEIPT_COLUMNS
from plankeeper.resources.claims.schemas import Claim, ClaimBatch
from plankeeper.resources.claims.store import CLAIM_COLUMNS
from plankeeper.resources.claims.store import WITH_LISTS as BATCH_COLUMNS
from plankeeper.resources.payments.schemas import Payment, PaymentRun
from plankeeper.resources.payments.store import FULL_PAYMENT
from plankeeper.resources.payments.store import WITH_LISTS as RUN_COLUMNS
from plankeeper.resources.statements import store as statements
from plankeeper.resources.statements.schemas import Statement


class ClaimExport(Claim, kw_only=True):
    """A claim with the row of the file that it was sent as."""

    fields: Annotated[FileRow | None, Meta(description="The row of the batch's file, or null.")]


EXPORT_BATCHES = f"select {BATCH_COLUMNS} from claim_batches where plan_manager_id = $1 order by id"
EXPORT_CLAIMS = f"select {CLAIM_COLUMNS}, fields::json as fields from claims where plan_manager_id = $1 order by id"
EXPORT_RECEIPTS = f"select {RECEIPT_COLUMNS} from claim_receipts where plan_manager_id = $1 order by id"
EXPORT_ADJUSTMENTS = f"select {ADJUSTMENT_COLUMNS} from adjustments where plan_manager_id = $1 order by id"
EXPORT_RUNS = f"select {RUN_COLUMNS} from payment_runs where plan_manager_id = $1 order by id"
EXPORT_PAYMENTS = f"select {FULL_PAYMENT} from payments where plan_manager_id = $1 order by id"


class Export(NamedTuple):
    """The schema of the rows of an export, and the rows in order of id."""

    schema: type[Struct]
    export: Callable[[Transaction, UUID], AsyncGenerator[Sequence[Struct]]]


def _batches(tx: Transaction, plan_manager_id: UUID) -> AsyncGenerator[list[ClaimBatch]]:
    return tx.stream(ClaimBatch, EXPORT_BATCHES, plan_manager_id)


def _claims(tx: Transaction, plan_manager_id: UUID) -> AsyncGenerator[list[ClaimExport]]:
    return tx.stream(ClaimExport, EXPORT_CLAIMS, plan_manager_id)


def _receipts(tx: Transaction, plan_manager_id: UUID) -> AsyncGenerator[list[Receipt]]:
    return tx.stream(Receipt, EXPORT_RECEIPTS, plan_manager_id)


def _adjustments(tx: Transaction, plan_manager_id: UUID) -> AsyncGenerator[list[Adjustment]]:
    return tx.stream(Adjustment, EXPORT_ADJUSTMENTS, plan_manager_id)


def _runs(tx: Transaction, plan_manager_id: UUID) -> AsyncGenerator[list[PaymentRun]]:
    return tx.stream(PaymentRun, EXPORT_RUNS, plan_manager_id)


def _payments(tx: Transaction, plan_manager_id: UUID) -> AsyncGenerator[list[Payment]]:
    return tx.stream(Payment, EXPORT_PAYMENTS, plan_manager_id)


FINANCIAL_RECORDS: Mapping[str, Export] = {
    "claim-batches": Export(ClaimBatch, _batches),
    "claims": Export(ClaimExport, _claims),
    "claim-receipts": Export(Receipt, _receipts),
    "adjustments": Export(Adjustment, _adjustments),
    "payment-runs": Export(PaymentRun, _runs),
    "payments": Export(Payment, _payments),
    "statements": Export(Statement, statements.export),
}
