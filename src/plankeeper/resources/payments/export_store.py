"""The exports of payment runs and payments, in order of id. They contain only the endings of account numbers."""

from collections.abc import AsyncGenerator
from uuid import UUID

from plankeeper.database.client import Transaction
from plankeeper.resources.payments.schemas import Payment, PaymentRun
from plankeeper.resources.payments.store import FULL_PAYMENT, WITH_LISTS

EXPORT_RUNS = f"select {WITH_LISTS} from payment_runs where plan_manager_id = $1 order by id"
EXPORT_PAYMENTS = f"select {FULL_PAYMENT} from payments where plan_manager_id = $1 order by id"


def export_runs(tx: Transaction, plan_manager_id: UUID) -> AsyncGenerator[list[PaymentRun]]:
    return tx.stream(PaymentRun, EXPORT_RUNS, plan_manager_id)


def export_payments(tx: Transaction, plan_manager_id: UUID) -> AsyncGenerator[list[Payment]]:
    return tx.stream(Payment, EXPORT_PAYMENTS, plan_manager_id)
