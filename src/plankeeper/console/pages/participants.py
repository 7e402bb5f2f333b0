"""Participants: list and search, delete."""

from uuid import UUID

from msgspec import UNSET

from plankeeper.bin import service as bin_service
from plankeeper.console.names import display_name
from plankeeper.console.pages.bin_entries import bin_path, retention
from plankeeper.console.pagination import PAGE_SIZE, paginate_links
from plankeeper.console.participant_choices import STATUSES, manager_choices
from plankeeper.console.routing import PREFIX, FormRequest, HtmlPage, PageRequest, Pages, Redirect
from plankeeper.http.context import or_404
from plankeeper.http.parsing import parse_uuid
from plankeeper.http.schemas import STATE_CODES, StateFilter
from plankeeper.participants import queries, store
from plankeeper.participants.rules import is_scheme_number
from plankeeper.participants.schemas import Participant, ParticipantListQuery
from plankeeper.team_members import store as team_store
from plankeeper.team_members.schemas import TeamMemberListQuery

pages = Pages()

PARTICIPANTS_URL = f"{PREFIX}/participants"


@pages.get("/participants", role="viewer")
async def list_(request: PageRequest) -> HtmlPage:
    text = request.query.text("q")[:255]
    filters = {name: request.query.text(name) for name in ("status", "account_manager", "state")}
    after = parse_uuid(request.query.text("after"))
    query = ParticipantListQuery(
        limit=PAGE_SIZE,
        after=str(after) if after else "0",
        status=filters["status"] if filters["status"] in STATUSES else UNSET,
        state=StateFilter(filters["state"]) if filters["state"] in STATE_CODES else UNSET,
        account_manager=[filters["account_manager"]] if parse_uuid(filters["account_manager"]) else UNSET,
        q=text if text.strip() else UNSET,
    )
    rows = await queries.list_page(request.db, request.plan_manager_id, query)
    params = {"q": text, **filters}
    request.record_list("participant", [each.id for each in rows], params)
    links = paginate_links(PARTICIPANTS_URL, params, rows, after)
    choices = {"statuses": STATUSES, "states": STATE_CODES, "managers": await manager_choices(request)}
    context = {"participants": rows, "q": text, "is_filtered": any(params.values())}
    helpers = {"filters": filters, "display_name": display_name, "is_scheme_number": is_scheme_number}
    return HtmlPage("participants.html", context | links | choices | helpers)


@pages.get("/participants/{participant_id}/delete", role="manager", discloses="participant")
async def delete_form(request: PageRequest, participant_id: UUID) -> HtmlPage:
    participant = await get_or_404(request, participant_id)
    members = await team_store.count(request.db, request.plan_manager_id, participant_id, TeamMemberListQuery())
    return HtmlPage(
        "participant_delete.html",
        {"participant": participant, "name": display_name(participant), "members": members, **retention(request)},
    )


@pages.post("/participants/{participant_id}/delete", role="manager")
async def delete(request: FormRequest, participant_id: UUID) -> Redirect:
    participant = or_404(await store.get_summary(request.tx, request.plan_manager_id, participant_id))
    entry = await bin_service.delete_participant(request.write_context, participant_id)
    return Redirect(PARTICIPANTS_URL, f"{display_name(participant)} moved to the bin.", undo=bin_path(entry))


async def get_or_404(request: PageRequest, participant_id: UUID) -> Participant:
    return or_404(await store.get(request.db, request.plan_manager_id, participant_id))
