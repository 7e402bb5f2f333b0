"""Statements of participants: list, create, get as JSON, as a page or as a PDF."""

from uuid import UUID

from plankeeper.core.context import ReadContext, WriteContext
from plankeeper.core.dates import Month
from plankeeper.core.errors import DomainError, NotFound
from plankeeper.core.fields import unset_to_none
from plankeeper.core.files import Download
from plankeeper.core.ids import UuidOr404
from plankeeper.core.lists import Page, read_page
from plankeeper.core.pdf.documents import UnprintableError
from plankeeper.http.routing import READ, WRITE, Router
from plankeeper.resources.parents import participant_exists
from plankeeper.resources.statements import files, service, store
from plankeeper.resources.statements.schemas import NewStatement, Statement, StatementListQuery, StatementSummary

router = Router("statements")

PDF = "application/pdf"


@router.get("/participants/{participant_id}/statements", scope=READ, extension=True, access_log="participant")
async def list_(ctx: ReadContext, participant_id: UUID, query: StatementListQuery) -> Page[StatementSummary]:
    """List the statements of a participant, without their numbers."""
    if not await participant_exists(ctx.db, ctx.plan_manager_id, participant_id):
        raise NotFound
    return await read_page(query, store.list_page, store.count, ctx.db, ctx.plan_manager_id, participant_id)


@router.post("/participants/{participant_id}/statements", scope=WRITE, extension=True, status=201, creates=True)
async def create(ctx: WriteContext, participant_id: UUID, new: NewStatement) -> Statement:
    """Make the statement of a plan and a month. Nothing is sent."""
    plan_id = unset_to_none(new.plan_id)
    return await service.make_statement(
        ctx,
        participant_id,
        UUID(plan_id) if plan_id else None,
        Month.parse(new.month).first,
        after_death=new.after_death is True,
    )


async def _to_page(ctx: ReadContext, statement: Statement) -> Download:
    return files.to_file(statement, ctx.settings.time_zone)


async def _to_pdf(ctx: ReadContext, statement: Statement) -> Download:
    try:
        content = await service.statement_pdf(ctx, statement.id)
    except UnprintableError as error:
        detail = f"The statement can't be printed: {error}. Get it as text/html instead."
        raise DomainError("invalid_transition", detail) from None
    return Download.of_bytes(f"statement-{statement.month}.pdf", PDF, content)


@router.get(
    "/participants/{participant_id}/statements/{statement_id}",
    scope=READ,
    extension=True,
    has_etag=True,
    access_log="participant",
    formats={files.HTML: _to_page, PDF: _to_pdf},
    errors=("invalid_transition",),  # a document that can't be printed
)
async def get(ctx: ReadContext, participant_id: UUID, statement_id: UuidOr404) -> Statement:
    """Get a statement as it was made. `Accept: text/html` returns a page to print, `application/pdf` a document."""
    return (await service.get(ctx.db, ctx.plan_manager_id, participant_id, statement_id)).statement
