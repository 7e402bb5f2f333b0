"""Claims, payments and statements as files for auditors.

They are records of what was done here, so no import makes them: `plankeeper backup` moves them to another database.
"""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from msgspec import Struct

from plankeeper.database.client import Transaction
from plankeeper.resources.claims import export_store as claims
from plankeeper.resources.claims.adjustment_schemas import Adjustment
from plankeeper.resources.claims.result_schemas import Receipt
from plankeeper.resources.claims.schemas import ClaimBatch
from plankeeper.resources.payments import export_store as payments
from plankeeper.resources.payments.schemas import Payment, PaymentRun
from plankeeper.resources.statements import store as statements
from plankeeper.resources.statements.schemas import Statement


class Export(NamedTuple):
    """The schema of the rows of an export, and the rows in order of id."""

    schema: type[Struct]
    export: Callable[[Transaction, UUID], AsyncGenerator[Sequence[Struct]]]


FINANCIAL_RECORDS: Mapping[str, Export] = {
    "claim-batches": Export(ClaimBatch, claims.export_batches),
    "claims": Export(claims.ClaimExport, claims.export_claims),
    "claim-receipts": Export(Receipt, claims.export_receipts),
    "adjustments": Export(Adjustment, claims.export_adjustments),
    "payment-runs": Export(PaymentRun, payments.export_runs),
    "payments": Export(Payment, payments.export_payments),
    "statements": Export(Statement, statements.export),
}
