"""Runs of statements: list, start, get, their items, and items that are tried again."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from msgspec import UnsetType

from plankeeper.core.context import AccessedKind, ReadContext, WriteContext, or_404
from plankeeper.core.dates import Month
from plankeeper.core.lists import Page, build_page
from plankeeper.http.routing import READ, WRITE, Router
from plankeeper.resources.statement_runs import queries, service, store
from plankeeper.resources.statement_runs.schemas import (
    NewStatementRun,
    StatementRun,
    StatementRunItem,
    StatementRunItemListQuery,
    StatementRunListQuery,
    StatementRunRetry,
)

router = Router("statement_runs")

_RUN = "/statement-runs/{statement_run_id}"


@router.get("/statement-runs", scope=READ, extension=True)
async def list_(ctx: ReadContext, query: StatementRunListQuery) -> Page[StatementRun]:
    """List runs of statements. Filters are combined with AND."""
    rows = await queries.list_page(ctx.db, ctx.plan_manager_id, query)
    total = None if query.uses_cursor else await queries.count(ctx.db, ctx.plan_manager_id, query)
    return build_page(query, rows, total)


@router.post(
    "/statement-runs",
    scope=WRITE,
    extension=True,
    status=201,
    creates=True,
    errors=("invalid_transition",),  # after a restore
)
async def create(ctx: WriteContext, new: NewStatementRun) -> StatementRun:
    """Start the run of a month. One that has ended makes the statements that it lacks."""
    return await service.start(ctx, Month.parse(new.month).first)


@router.get(_RUN, scope=READ, extension=True, has_etag=True)
async def get(ctx: ReadContext, statement_run_id: UUID) -> StatementRun:
    """Get a run of statements."""
    return or_404(await store.get(ctx.db, ctx.plan_manager_id, statement_run_id))


def _list_participants(page: Page[StatementRunItem]) -> Mapping[AccessedKind, Sequence[UUID]]:
    """The participants of items, for the access log."""
    ids = list(dict.fromkeys(each.participant_id for each in page.data))
    return {"participant": ids} if ids else {}


@router.get(_RUN + "/items", scope=READ, extension=True, access_log=_list_participants)
async def list_items(
    ctx: ReadContext, statement_run_id: UUID, query: StatementRunItemListQuery
) -> Page[StatementRunItem]:
    """List what a run has done for each plan."""
    or_404(await store.exists(ctx.db, ctx.plan_manager_id, statement_run_id) or None)
    rows = await queries.list_items_page(ctx.db, ctx.plan_manager_id, statement_run_id, query)
    total = (
        None if query.uses_cursor else await queries.count_items(ctx.db, ctx.plan_manager_id, statement_run_id, query)
    )
    return build_page(query, rows, total)


@router.post(_RUN + "/retry", scope=WRITE, extension=True, optional_body=True, errors=("invalid_transition",))
async def retry(ctx: WriteContext, statement_run_id: UUID, body: StatementRunRetry) -> StatementRun:
    """Try statements again that have failed, or that nobody receives."""
    ids = None if isinstance(body.item_ids, UnsetType) else [UUID(each) for each in body.item_ids]
    return await service.retry(ctx, statement_run_id, ids)
