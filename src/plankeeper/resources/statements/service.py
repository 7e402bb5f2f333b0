"""Statements: made, recorded as sent, and their PDFs."""

from datetime import date
from uuid import UUID

from plankeeper.core.context import ReadContext, WriteContext
from plankeeper.resources.statements.schemas import SendWay, Statement, StatementSend


async def make_statement(
    ctx: WriteContext,
    participant_id: UUID,
    plan_id: UUID | None,
    month: date,
    *,
    run_id: UUID | None = None,
    after_death: bool = False,
) -> Statement:
    """Make and store the statement of a plan and the month that begins on the day `month`.

    Without `plan_id`, it is that of the last plan that is in force in the month. A run makes each statement once: the
    second time, it is returned unchanged. Raises NotFound for an unknown participant, and ValidationError with the
    field `month` (no plan is in force in it: `inconsistent`; it hasn't begun: `too_large`), `plan_id` (`not_found`,
    `inconsistent`), or `after_death` (the participant has died: `required`).
    """
    raise NotImplementedError


async def record_sent(ctx: WriteContext, statement_id: UUID, way: SendWay, recipient: str) -> StatementSend:
    """Record that a statement was sent, with the event `statement.sent`. Raises NotFound."""
    raise NotImplementedError


async def statement_pdf(ctx: ReadContext | WriteContext, statement_id: UUID) -> bytes:
    """The PDF of a statement, which is rendered and stored once.

    Raises NotFound, DomainError 503 without a storage of documents, and UnprintableTextError. In a worker, pass
    `ReadContext(db, plan_manager_id, settings)`.
    """
    raise NotImplementedError
