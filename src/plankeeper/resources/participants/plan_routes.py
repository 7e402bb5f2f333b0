"""Plans of participants: list, create, get, update, delete."""

from uuid import UUID

from msgspec import UNSET

from plankeeper.core.context import ReadContext, WriteContext, or_404
from plankeeper.core.errors import NotFound
from plankeeper.core.fields import EmptyResponse
from plankeeper.core.ids import UuidOr404
from plankeeper.core.lists import Page, PageRows, build_page
from plankeeper.http.routing import READ, WRITE, Router
from plankeeper.resources.parents import participant_exists
from plankeeper.resources.participants import plans
from plankeeper.resources.plans import service, store
from plankeeper.resources.plans.schemas import Plan, PlanCreate, PlanListQuery, PlanQuery, PlanUpdate

router = Router("plans", service.CONSTRAINT_ERRORS, lock=plans.lock)

TODAY = PlanQuery()


@router.get("/participants/{participant_id}/plans", scope=READ, extension=True, access_log="participant")
async def list_(ctx: ReadContext, participant_id: UUID, query: PlanListQuery) -> Page[Plan]:
    """List the plans of a participant. The numbers of their components are those of today, or of the day `on`."""
    rows = await store.list_page(ctx.db, ctx.plan_manager_id, participant_id, query)
    if not rows and not await participant_exists(ctx.db, ctx.plan_manager_id, participant_id):
        raise NotFound
    total = None if query.uses_cursor else await store.count(ctx.db, ctx.plan_manager_id, participant_id, query)
    day = ctx.settings.today if query.on is UNSET else query.on
    with_numbers = await service.with_numbers(ctx.db, ctx.plan_manager_id, rows, day)
    return build_page(query, PageRows(with_numbers, has_more=rows.has_more, next_cursor=rows.next_cursor), total)


@router.post("/participants/{participant_id}/plans", scope=WRITE, extension=True, status=201, creates=True)
async def create(ctx: WriteContext, participant_id: UUID, new: PlanCreate) -> Plan:
    """Create a plan. It must not overlap another plan of the participant."""
    return await _respond(ctx, await plans.create(ctx, participant_id, new))


@router.get(
    "/participants/{participant_id}/plans/{plan_id}",
    scope=READ,
    extension=True,
    has_etag=True,
    access_log="participant",
)
async def get(ctx: ReadContext, participant_id: UUID, plan_id: UuidOr404, query: PlanQuery = TODAY) -> Plan:
    """Get a plan. The numbers of its components are those of today, or of the day `on`."""
    found = await store.get_many(ctx.db, ctx.plan_manager_id, [plan_id])
    plan = or_404(next((each for each in found if each.participant_id == participant_id), None))
    day = ctx.settings.today if query.on is UNSET else query.on
    [result] = await service.with_numbers(ctx.db, ctx.plan_manager_id, [plan], day)
    return result


@router.put("/participants/{participant_id}/plans/{plan_id}", scope=WRITE, extension=True, errors=("plan_in_use",))
async def update(ctx: WriteContext, participant_id: UUID, plan_id: UuidOr404, change: PlanUpdate) -> Plan:
    """Update a plan. Omitted fields keep their values. `components` replaces all components."""
    return await _respond(ctx, await plans.update(ctx, participant_id, plan_id, change))


@router.delete("/participants/{participant_id}/plans/{plan_id}", scope=WRITE, extension=True, errors=("plan_in_use",))
async def delete(ctx: WriteContext, participant_id: UUID, plan_id: UuidOr404) -> EmptyResponse:
    """Delete a plan, unless a line that belongs to it is claimed."""
    await plans.delete(ctx, participant_id, plan_id)
    return EmptyResponse()


async def _respond(ctx: WriteContext, plan: Plan) -> Plan:
    day = ctx.settings.today
    [result] = await service.with_numbers(ctx.tx, ctx.plan_manager_id, [plan], day)
    return result
