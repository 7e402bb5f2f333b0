"""What a broken constraint means in an import: the slices' own words, and those for what only an import can break."""

from collections.abc import Mapping
from uuid import UUID

from plankeeper.database.client import ConstraintViolation, Executor
from plankeeper.http.errors import ApiError, ValidationError
from plankeeper.http.routing import ConstraintErrorHandler
from plankeeper.participants import service as participants
from plankeeper.team_members import service as team_members


def _invalid(**errors: str) -> ConstraintErrorHandler:
    async def handle(_db: Executor, _plan_manager_id: UUID, _violation: ConstraintViolation) -> ApiError:
        return ValidationError(**errors)

    return handle


CONSTRAINT_ERRORS: Mapping[str, ConstraintErrorHandler] = {
    **participants.CONSTRAINT_ERRORS,
    **team_members.CONSTRAINT_ERRORS,
    "team_members_participant_id_fkey": _invalid(participant_id="must be the id of a participant of this plan manager"),
    "users_email_key": _invalid(email="is another user's of this plan manager"),
    "exit_reasons_parent_id_fkey": _invalid(parent_id="must be the id of an exit reason in this file or known before"),
    "invoice_lines_pkey": _invalid(line_items="two lines have the same id"),
}
