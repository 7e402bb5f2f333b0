"""The tabs of a participant: overview and team."""

from uuid import UUID

from plankeeper.console.lists.invoices import load_names
from plankeeper.console.pages.team_members import team_context
from plankeeper.console.pages.timeline import KINDS, with_texts
from plankeeper.console.participant_context import participant_context
from plankeeper.console.participant_sections import participant_sections
from plankeeper.console.routing import HtmlPage, PageRequest, Pages
from plankeeper.console.team_forms import PERMISSIONS
from plankeeper.events import activity_store
from plankeeper.resources.invoices import queries

pages = Pages()

LATEST_EVENTS = 3
LATEST_INVOICES = 5


@pages.get("/participants/{participant_id}", role="viewer", access_log="participant")
async def get(request: PageRequest, participant_id: UUID) -> HtmlPage:
    context = await participant_context(request, participant_id, "")
    latest = (request.db, request.plan_manager_id)
    rows = await queries.latest_for_participant(*latest, participant_id, LATEST_INVOICES)
    events = await activity_store.list_of_participant(*latest, participant_id, None, KINDS[""][1], LATEST_EVENTS)
    context |= {
        "sections": participant_sections(context["participant"]),
        "invoices": rows,
        "names": await load_names(request, rows),
        "events": with_texts(request, events),
    }
    return HtmlPage("participant.html", context)


@pages.get("/participants/{participant_id}/team", role="viewer", access_log="participant")
async def team(request: PageRequest, participant_id: UUID) -> HtmlPage:
    context = await participant_context(request, participant_id, "/team")
    members = await team_context(request, participant_id, f"{context['page_url']}/team")
    return HtmlPage("participant_team.html", {**context, **members, "permissions": PERMISSIONS})
