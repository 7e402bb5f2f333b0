"""Participants: list and search, delete."""

from uuid import UUID

from plankeeper.console.labels import display_name
from plankeeper.console.lists.page import show_list
from plankeeper.console.lists.participants import PARTICIPANTS
from plankeeper.console.lists.selection import download_list
from plankeeper.console.pages.trash_entries import retention, trash_path
from plankeeper.console.routing import PREFIX, Download, FormRequest, HtmlPage, PageRequest, Pages, Redirect
from plankeeper.core.context import or_404
from plankeeper.resources.participants import store
from plankeeper.resources.participants.schemas import Participant
from plankeeper.resources.team_members import store as team_store
from plankeeper.resources.team_members.schemas import TeamMemberListQuery
from plankeeper.resources.trash import service as trash_service

pages = Pages()

PARTICIPANTS_URL = f"{PREFIX}/participants"


@pages.get("/participants", role="viewer")
async def list_(request: PageRequest) -> HtmlPage:
    return await show_list(request, PARTICIPANTS)


@pages.get("/participants.csv", role="viewer")
async def download(request: PageRequest) -> Download:
    return await download_list(request, PARTICIPANTS)


@pages.get("/participants/{participant_id}/delete", role="manager", access_log="participant")
async def delete_form(request: PageRequest, participant_id: UUID) -> HtmlPage:
    participant = await get_or_404(request, participant_id)
    members = await team_store.count(request.db, request.plan_manager_id, participant_id, TeamMemberListQuery())
    return HtmlPage(
        "participant_delete.html",
        {"participant": participant, "name": display_name(participant), "members": members, **retention(request)},
    )


@pages.post("/participants/{participant_id}/delete", role="manager")
async def delete(request: FormRequest, participant_id: UUID) -> Redirect:
    participant = or_404(await store.get(request.tx, request.plan_manager_id, participant_id))
    entry = await trash_service.delete(request.write_context, "participant", participant_id)
    return Redirect(PARTICIPANTS_URL, f"{display_name(participant)} moved to the trash.", undo=trash_path(entry))


async def get_or_404(request: PageRequest, participant_id: UUID) -> Participant:
    return or_404(await store.get(request.db, request.plan_manager_id, participant_id))
