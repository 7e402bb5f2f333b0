"""The office's own fees: make those of a month, list them, take them."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from plankeeper.core.context import AccessedKind, ReadContext, WriteContext, or_404
from plankeeper.core.lists import Page, read_page
from plankeeper.http.routing import PAYMENTS, Router
from plankeeper.resources.fees import service, store, takings
from plankeeper.resources.fees.schemas import (
    Fee,
    FeeListQuery,
    FeeTaking,
    FeeTakingListQuery,
    MonthFees,
    NewFees,
    NewFeesQuery,
    NewFeeTaking,
    NewFeeTakingQuery,
    TakenLine,
    TakenLineListQuery,
)

router = Router("fees")
takings_router = Router("fee_takings")

_TAKING = "/fee-takings/{fee_taking_id}"


def _list_records(page: Page[Fee]) -> Mapping[AccessedKind, Sequence[UUID]]:
    invoices, participants = [each.id for each in page.data], [each.participant_id for each in page.data]
    return {"invoice": invoices, "participant": list(dict.fromkeys(participants))} if invoices else {}


def _list_invoices(page: Page[TakenLine]) -> Mapping[AccessedKind, Sequence[UUID]]:
    return {"invoice": list(dict.fromkeys(each.invoice_id for each in page.data))} if page.data else {}


@router.get("/fees", scope=PAYMENTS, extension=True, access_log=_list_records)
async def list_(ctx: ReadContext, query: FeeListQuery) -> Page[Fee]:
    """List the fees that were made."""
    return await read_page(query, store.list_page, store.LIST.count_matching, ctx.db, ctx.plan_manager_id)


@router.post("/fees", scope=PAYMENTS, extension=True, status=201)
async def create(ctx: WriteContext, query: NewFeesQuery, new: NewFees) -> MonthFees:
    """Make the fees of a month that don't exist, or see what would be made."""
    return await service.create(ctx, new.month, is_dry_run=query.dry_run is True)


@takings_router.get("/fee-takings", scope=PAYMENTS, extension=True)
async def list_takings(ctx: ReadContext, query: FeeTakingListQuery) -> Page[FeeTaking]:
    """List the takings of fees."""
    place = ctx.db, ctx.plan_manager_id
    return await read_page(query, store.list_takings_page, store.TAKINGS.count_matching, *place)


@takings_router.post(
    "/fee-takings",
    scope=PAYMENTS,
    extension=True,
    status=201,
    creates=True,
    errors=("invalid_transition",),  # after a restore
)
async def take(ctx: WriteContext, query: NewFeeTakingQuery, new: NewFeeTaking) -> FeeTaking:
    """Take fees that the agency has paid, or see what would be taken."""
    return await takings.take(ctx, new, is_dry_run=query.dry_run is True)


@takings_router.get(_TAKING, scope=PAYMENTS, extension=True, has_etag=True)
async def get_taking(ctx: ReadContext, fee_taking_id: UUID) -> FeeTaking:
    """Get a taking of fees."""
    return or_404(await store.get_taking(ctx.db, ctx.plan_manager_id, fee_taking_id))


@takings_router.get(_TAKING + "/lines", scope=PAYMENTS, extension=True, access_log=_list_invoices)
async def list_lines(ctx: ReadContext, fee_taking_id: UUID, query: TakenLineListQuery) -> Page[TakenLine]:
    """List what a taking takes of each line."""
    or_404(await store.taking_exists(ctx.db, ctx.plan_manager_id, fee_taking_id) or None)
    place = ctx.db, ctx.plan_manager_id, fee_taking_id
    return await read_page(query, store.list_lines_page, store.count_lines, *place)
