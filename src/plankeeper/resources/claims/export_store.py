"""The exports of claims: batches, claims, receipts and adjustments, in order of id."""

from collections.abc import AsyncGenerator
from typing import Annotated
from uuid import UUID

from msgspec import Meta

from plankeeper.database.client import Transaction
from plankeeper.resources.claims.adjustment_schemas import Adjustment
from plankeeper.resources.claims.adjustment_store import COLUMNS
from plankeeper.resources.claims.batch_file import FileRow
from plankeeper.resources.claims.result_schemas import Receipt
from plankeeper.resources.claims.result_store import RECEIPT_COLUMNS
from plankeeper.resources.claims.schemas import Claim, ClaimBatch
from plankeeper.resources.claims.store import CLAIM_COLUMNS, WITH_LISTS


class ClaimExport(Claim, kw_only=True):
    """A claim with the row of the file that it was sent as."""

    fields: Annotated[FileRow | None, Meta(description="The row of the batch's file, or null.")]


EXPORT_BATCHES = f"select {WITH_LISTS} from claim_batches where plan_manager_id = $1 order by id"
EXPORT_CLAIMS = f"select {CLAIM_COLUMNS}, fields::json as fields from claims where plan_manager_id = $1 order by id"
EXPORT_RECEIPTS = f"select {RECEIPT_COLUMNS} from claim_receipts where plan_manager_id = $1 order by id"
EXPORT_ADJUSTMENTS = f"select {COLUMNS} from adjustments where plan_manager_id = $1 order by id"


def export_batches(tx: Transaction, plan_manager_id: UUID) -> AsyncGenerator[list[ClaimBatch]]:
    return tx.stream(ClaimBatch, EXPORT_BATCHES, plan_manager_id)


def export_claims(tx: Transaction, plan_manager_id: UUID) -> AsyncGenerator[list[ClaimExport]]:
    return tx.stream(ClaimExport, EXPORT_CLAIMS, plan_manager_id)


def export_receipts(tx: Transaction, plan_manager_id: UUID) -> AsyncGenerator[list[Receipt]]:
    return tx.stream(Receipt, EXPORT_RECEIPTS, plan_manager_id)


def export_adjustments(tx: Transaction, plan_manager_id: UUID) -> AsyncGenerator[list[Adjustment]]:
    return tx.stream(Adjustment, EXPORT_ADJUSTMENTS, plan_manager_id)
