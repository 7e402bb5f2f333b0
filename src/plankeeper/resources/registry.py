"""All resources, by the name of their imports and exports, and by the kind of their events."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from msgspec import Struct

from plankeeper.core.context import ConstraintErrorHandler
from plankeeper.database.client import Transaction
from plankeeper.resources.account_managers.resource import RESOURCE as ACCOUNT_MANAGERS
from plankeeper.resources.claims import exports as claims
from plankeeper.resources.claims.adjustment_schemas import Adjustment
from plankeeper.resources.claims.result_schemas import Receipt
from plankeeper.resources.claims.schemas import ClaimBatch
from plankeeper.resources.exit_reasons.resource import RESOURCE as EXIT_REASONS
from plankeeper.resources.invoice_view_sessions.resource import RESOURCE as INVOICE_VIEW_SESSIONS
from plankeeper.resources.invoices.resource import RESOURCE as INVOICES
from plankeeper.resources.note_types.resource import RESOURCE as NOTE_TYPES
from plankeeper.resources.notes.resource import RESOURCE as NOTES
from plankeeper.resources.participants.resource import PLANS
from plankeeper.resources.participants.resource import RESOURCE as PARTICIPANTS
from plankeeper.resources.payments import exports as payments
from plankeeper.resources.payments.schemas import Payment, PaymentRun
from plankeeper.resources.providers.resource import RESOURCE as PROVIDERS
from plankeeper.resources.resource import Resource
from plankeeper.resources.team_members.resource import RESOURCE as TEAM_MEMBERS

RESOURCES: Mapping[str, Resource] = {
    "exit-reasons": EXIT_REASONS,
    "account-managers": ACCOUNT_MANAGERS,
    "participants": PARTICIPANTS,
    "plans": PLANS,
    "providers": PROVIDERS,
    "note-types": NOTE_TYPES,
    "team-members": TEAM_MEMBERS,
    "invoices": INVOICES,
    "invoice-view-sessions": INVOICE_VIEW_SESSIONS,
    "notes": NOTES,
}
BY_KIND: Mapping[str, Resource] = {each.kind: each for each in RESOURCES.values()}
# Constraint violations of an import as errors: those of the API, and those that only an import can cause.
CONSTRAINT_ERRORS: Mapping[str, ConstraintErrorHandler] = {
    name: handler
    for each in RESOURCES.values()
    for name, handler in (*each.constraint_errors.items(), *each.import_errors.items())
}


class Export(NamedTuple):
    """Records that can be exported, but not imported: a row of the export, and the rows in order of id."""

    schema: type[Struct]
    export: Callable[[Transaction, UUID], AsyncGenerator[Sequence[Struct]]]


# Claims and payments are records of what was done here. `plankeeper backup` moves them to another database.
FINANCIAL_RECORDS: Mapping[str, Export] = {
    "claim-batches": Export(ClaimBatch, claims.export_batches),
    "claims": Export(claims.ClaimExport, claims.export_claims),
    "claim-receipts": Export(Receipt, claims.export_receipts),
    "adjustments": Export(Adjustment, claims.export_adjustments),
    "payment-runs": Export(PaymentRun, payments.export_runs),
    "payments": Export(Payment, payments.export_payments),
}
