"""Constraint violations of an import as errors: those of the API, and those that only an import can cause."""

from collections.abc import Mapping
from uuid import UUID

from plankeeper.core.context import ConstraintErrorHandler
from plankeeper.core.errors import DomainError, ValidationError
from plankeeper.database.client import Executor
from plankeeper.database.errors import ConstraintViolation
from plankeeper.resources.participants import service as participants
from plankeeper.resources.providers import service as providers
from plankeeper.resources.team_members import service as team_members


def _invalid(**errors: str) -> ConstraintErrorHandler:
    async def handle(_db: Executor, _plan_manager_id: UUID, _violation: ConstraintViolation) -> DomainError:
        return ValidationError(**errors)

    return handle


CONSTRAINT_ERRORS: Mapping[str, ConstraintErrorHandler] = {
    **participants.CONSTRAINT_ERRORS,
    **providers.CONSTRAINT_ERRORS,
    **team_members.CONSTRAINT_ERRORS,
    "team_members_participant_id_fkey": _invalid(participant_id="must be the id of a participant of this plan manager"),
    "users_email_key": _invalid(email="is already used by another user of this plan manager"),
    "exit_reasons_parent_id_fkey": _invalid(
        parent_id="must be the id of an exit reason of this file or of this plan manager"
    ),
    "invoices_pkey": _invalid(id="is that of an invoice that another import has just created: import the file again"),
    "invoice_lines_pkey": _invalid(line_items="must not contain two lines with the same id"),
}
