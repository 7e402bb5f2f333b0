"""Team members: list, create, get, update, delete."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from plankeeper.core.context import (
    AccessedKind,
    ReadContext,
    WriteContext,
    or_404,
)
from plankeeper.core.errors import NotFound
from plankeeper.core.fields import EmptyResponse
from plankeeper.core.ids import UuidOr404
from plankeeper.core.lists import Page, build_page, read_page
from plankeeper.http.routing import READ, WRITE, Router
from plankeeper.resources.parents import participant_exists
from plankeeper.resources.team_members import service, store
from plankeeper.resources.team_members.schemas import (
    AllTeamMembersQuery,
    TeamMember,
    TeamMemberCreate,
    TeamMemberListQuery,
    TeamMemberUpdate,
)

router = Router("team_members", service.CONSTRAINT_ERRORS, lock=service.select_for_update)


def _list_participants(page: Page[TeamMember]) -> Mapping[AccessedKind, Sequence[UUID]]:
    return {"participant": list(dict.fromkeys(each.participant_id for each in page.data))}


@router.get("/team-members", scope=READ, extension=True, access_log=_list_participants)
async def list_all(ctx: ReadContext, query: AllTeamMembersQuery) -> Page[TeamMember]:
    """List the team members of all participants. They are in order of `participant_id` and `id`.

    A person on several teams occurs several times, with the same `id`.
    """
    return await read_page(query, store.list_page_of_all, store.count_of_all, ctx.db, ctx.plan_manager_id)


@router.get("/participants/{participant_id}/team-members", scope=READ, access_log="participant")
async def list_(ctx: ReadContext, participant_id: UUID, query: TeamMemberListQuery) -> Page[TeamMember]:
    """List the team members of a participant. Each comes with its permissions."""
    rows = await store.list_page(ctx.db, ctx.plan_manager_id, participant_id, query)
    if not rows and not await participant_exists(ctx.db, ctx.plan_manager_id, participant_id):
        raise NotFound
    total = None if query.uses_cursor else await store.count(ctx.db, ctx.plan_manager_id, participant_id, query)
    return build_page(query, rows, total)


@router.post(
    "/participants/{participant_id}/team-members",
    scope=WRITE,
    extension=True,
    status=201,
    errors=("permission_requires_email", "contact_priority_taken", "team_member_exists"),
    creates=True,
)
async def create(ctx: WriteContext, participant_id: UUID, new: TeamMemberCreate) -> TeamMember:
    """Create a team member. Without `permissions` it has no access. Access requires an email."""
    return await service.create(ctx, participant_id, new)


@router.get(
    "/participants/{participant_id}/team-members/{team_member_id}",
    scope=READ,
    extension=True,
    has_etag=True,
    access_log="participant",
)
async def get(ctx: ReadContext, participant_id: UUID, team_member_id: UuidOr404) -> TeamMember:
    """Get a team member. It contains its permissions."""
    return or_404(await store.get(ctx.db, ctx.plan_manager_id, participant_id, team_member_id))


@router.put(
    "/participants/{participant_id}/team-members/{team_member_id}",
    scope=WRITE,
    errors=("permission_requires_email", "contact_priority_taken"),
)
async def update(
    ctx: WriteContext, participant_id: UUID, team_member_id: UuidOr404, change: TeamMemberUpdate
) -> TeamMember:
    """Update a team member. Omitted fields keep their values; null clears a value. The email cannot be changed."""
    return await service.update(ctx, participant_id, team_member_id, change)


@router.delete("/participants/{participant_id}/team-members/{team_member_id}", scope=WRITE, extension=True)
async def delete(ctx: WriteContext, participant_id: UUID, team_member_id: UuidOr404) -> EmptyResponse:
    """Remove a team member. A person with an email remains on the teams of other participants."""
    await service.delete(ctx, participant_id, team_member_id)
    return EmptyResponse()
