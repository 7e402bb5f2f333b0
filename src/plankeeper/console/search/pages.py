"""Search: records of every kind, suggestions during typing, and the record of a complete number or id."""

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

from starlette.responses import JSONResponse

from plankeeper.console.components.events import RECORD_PATHS
from plankeeper.console.components.labels import display_name, full_name, humanize
from plankeeper.console.components.pagination import with_query
from plankeeper.console.components.record_picker import PICKER_KINDS, find_candidates
from plankeeper.console.developers.requests import find_requests, request_filter
from plankeeper.console.shell.forms import parse_amount
from plankeeper.console.shell.record_limits import select_inside
from plankeeper.console.shell.routing import (
    PREFIX,
    HtmlPage,
    PageRequest,
    Pages,
    Redirect,
)
from plankeeper.core.dates import DateError, parse_date
from plankeeper.core.formatting import (
    format_abn,
    format_date,
    format_money,
    format_ndis_number,
)
from plankeeper.core.ids import parse_uuid
from plankeeper.resources.search import service, store
from plankeeper.resources.search.limits import limit_search
from plankeeper.resources.search.schemas import (
    KINDS,
    InvoiceMatch,
    Kind,
    KindResults,
    Match,
    NoteMatch,
    ParticipantDetailMatch,
    ParticipantMatch,
    ProviderMatch,
    SearchResults,
    TeamMemberMatch,
    Values,
)

pages = Pages()

SEARCH_URL = f"{PREFIX}/search"
MAX_TEXT_LENGTH = 255
SHOWN = 6  # results of each kind beside those of the others
SUGGESTED = 4  # results of each kind below the field
HEADINGS: dict[Kind, str] = {
    "participant": "Participants",
    "team_member": "Team members",
    "provider": "Providers",
    "invoice": "Invoices",
    "note": "Notes",
}
# The lists that can show all results of a kind; those of others are on a page of the search.
LIST_URLS: dict[Kind, str] = {"participant": f"{PREFIX}/participants", "provider": f"{PREFIX}/providers"}
NDIS_DIGITS, ABN_DIGITS = 9, 11
EXCERPT_LENGTH = 90


class Result(NamedTuple):
    """A record that was found: its page, its name, and details that distinguish records of that name."""

    url: str
    title: str
    detail: str


class ResultGroup(NamedTuple):
    """The results of one kind."""

    kind: Kind
    heading: str
    total: str
    results: list[Result]
    similar: list[Result]
    all_url: str | None  # where all of them are, if there are more


@pages.get("/search", role="viewer", is_limited=True)
async def search(request: PageRequest) -> HtmlPage | Redirect:
    text, kind = request.query.text("q")[:MAX_TEXT_LENGTH], request.query.text("kind")
    id_ = parse_uuid(text)
    if id_:
        return await _find_by_id(request, id_)
    kinds: Sequence[Kind] = [each for each in KINDS if each == kind] or KINDS
    limit = SHOWN if len(kinds) > 1 else service.MAX_COUNT
    results = await _search(request, text, kinds, limit)
    exact = _with_number(results, text)
    if len(exact) == 1:
        return Redirect(_result(exact[0], request.settings.time_zone).url)
    return _results_page(request, text, results)


@pages.get("/search/suggest", role="viewer", is_limited=True)
async def suggest(request: PageRequest) -> JSONResponse:
    """The best results as JSON: of every kind, or the candidates for a field that takes records of one kind."""
    text, kind = request.query.text("q")[:MAX_TEXT_LENGTH], request.query.text("kind")
    if kind in PICKER_KINDS:
        candidates = await find_candidates(request, kind, text)
        return JSONResponse({"candidates": [each._asdict() for each in candidates]})
    results = await _search(request, text, KINDS, SUGGESTED)
    _record_access(request, text, results)
    zone = request.settings.time_zone
    groups = [_group(each, text, zone) for each in results.kinds]
    return JSONResponse(
        {
            "groups": [
                {
                    "heading": each.heading,
                    "all": {"url": each.all_url, "title": _all_label(each)} if each.all_url else None,
                    "results": [result._asdict() for result in (*each.results, *each.similar)],
                }
                for each in groups
                if each.results or each.similar
            ]
        }
    )


async def _search(request: PageRequest, text: str, kinds: Sequence[Kind], limit: int) -> SearchResults:
    place = (request.db, request.plan_manager_id)
    values, participants_of = parse_values(text), request.participants_of
    return await service.search(*place, text, kinds, limit, values, participants_of)


def parse_values(text: str) -> Values:
    """The text as an amount and as a date, if it can be one."""
    with suppress(DateError):
        return Values(None, parse_date(text))
    return Values(parse_amount(text), None)


async def _find_by_id(request: PageRequest, id_: UUID) -> HtmlPage | Redirect:
    """The page of the record, the event or the API request with an id; of several memberships, a list."""
    for kind in await _kinds_of(request, id_):
        return Redirect(PREFIX + RECORD_PATHS.get(kind, "/activity/{}").format(id_))
    members = await store.members_by_user(
        limit_search(request.db, request.participants_of), request.plan_manager_id, id_, service.MAX_COUNT
    )
    if len(members) == 1:
        return Redirect(_result(members[0], request.settings.time_zone).url)
    if (
        not members
        and not request.participants_of
        and await find_requests(request, request_filter({"request_id": str(id_)}), None, 1)
    ):
        return Redirect(with_query(f"{PREFIX}/requests", {"request_id": str(id_)}))
    found = KindResults("team_member", list(members), len(members), has_more=False, similar=[])
    return _results_page(request, str(id_), SearchResults([found], []))


async def _kinds_of(request: PageRequest, id_: UUID) -> list[str]:
    """The kinds of the records and events with an id that the account can see."""
    found = await store.find_by_id(request.db, request.plan_manager_id, id_)
    if request.participants_of is None:
        return found
    inside = [each for each in ("participant", "invoice") if await select_inside(request, each, [id_])]
    return [each for each in found if each == "provider" or each in inside]


def _results_page(request: PageRequest, text: str, results: SearchResults) -> HtmlPage:
    _record_access(request, text, results)
    zone = request.settings.time_zone
    context = {
        "q": text,
        "groups": [_group(each, text, zone) for each in results.kinds if each.matches or each.similar],
        "corrections": [(each.title(), with_query(SEARCH_URL, {"q": each})) for each in results.corrections],
        "is_single": len(results.kinds) == 1,
        "search_url": with_query(SEARCH_URL, {"q": text}),
        "new_url": with_query(f"{PREFIX}/participants/new", _name_fields(text)),
    }
    return HtmlPage("search/search.html", context)


def _group(found: KindResults, text: str, zone: ZoneInfo) -> ResultGroup:
    count = f"more than {found.count}" if found.has_more else str(found.count)
    has_others = found.has_more or found.count > len(found.matches)
    url = LIST_URLS.get(found.kind) if found.is_listed else None
    return ResultGroup(
        found.kind,
        HEADINGS[found.kind],
        count,
        [_result(each, zone) for each in found.matches],
        [_result(each, zone) for each in found.similar],
        with_query(url or SEARCH_URL, {"q": text, "kind": "" if url else found.kind}) if has_others else None,
    )


def _all_label(group: ResultGroup) -> str:
    """`See all 12 participants`, or for more than are counted `See all participants, more than 50`."""
    noun = group.heading.lower()
    return f"See all {group.total} {noun}" if group.total.isdecimal() else f"See all {noun}, {group.total}"


def _result(match: Match, zone: ZoneInfo) -> Result:
    if isinstance(match, ParticipantMatch):
        name = display_name(match)
        title = f"{name} ({match.preferred_name})" if match.preferred_name else name
        number = format_ndis_number(match.participant_number or "")
        status = "" if match.status == "Active" else match.status
        detail = _join(_birth_or_address(match), number, match.phone_number, match.email, status)
        return Result(f"{PREFIX}/participants/{match.id}", title, detail)
    if isinstance(match, TeamMemberMatch):
        participant = full_name(match.participant_first_name, match.participant_last_name) or "No name"
        url = f"{PREFIX}/participants/{match.participant_id}/team-members/{match.id}"
        relation = f"{match.role or 'Team member'} of {participant}"
        return Result(url, display_name(match, match.email), _join(relation, match.phone_number))
    if isinstance(match, ProviderMatch):
        abn = f"ABN {format_abn(match.abn)}" if match.abn else ""
        title = (match.entity_name or "").strip() or "No name"
        return Result(
            f"{PREFIX}/providers/{match.id}", title, _join(abn, match.email, "" if match.active else "Inactive")
        )
    if isinstance(match, NoteMatch):
        return _note_result(match, zone)
    return _invoice_result(match, zone)


def _note_result(match: NoteMatch, zone: ZoneInfo) -> Result:
    """A note leads to its record."""
    record = f"{match.resource_kind} {(match.resource_name or '').strip() or 'without a name'}"
    written = format_date(match.created_at.astimezone(zone))
    url = PREFIX + RECORD_PATHS[match.resource_kind].format(match.resource_id)
    return Result(url, _excerpt(match.content), _join(match.note_type, f"on the {record}", written))


def _excerpt(text: str) -> str:
    """The beginning of a note in one line."""
    line = " ".join(text.split())
    return line if len(line) <= EXCERPT_LENGTH else f"{line[: EXCERPT_LENGTH - 1].rstrip()}…"


def _birth_or_address(match: ParticipantMatch) -> str:
    """The field by which a participant was found, other than names and numbers."""
    if not isinstance(match, ParticipantDetailMatch):
        return ""
    return f"born {format_date(match.date_of_birth)}" if match.date_of_birth else match.address or ""


def _invoice_result(match: InvoiceMatch, zone: ZoneInfo) -> Result:
    participant = full_name(match.participant_first_name, match.participant_last_name)
    total = "" if match.total is None else format_money(match.total)
    date = format_date(match.invoice_date) if match.invoice_date else ""
    received = f"received {format_date(match.created_at.astimezone(zone))}"
    detail = _join(match.entity_name, participant, date, total, humanize(match.claim_status), received)
    return Result(f"{PREFIX}/invoices/{match.id}", match.invoice_number or "No number", detail)


def _join(*parts: str | None) -> str:
    return " · ".join(each.strip() for each in parts if each and each.strip())


def _with_number(results: SearchResults, text: str) -> list[Match]:
    """The participants with a complete NDIS number, or the providers with a complete ABN."""
    digits = "".join(text.split())
    if not digits.isdecimal() or len(digits) not in (NDIS_DIGITS, ABN_DIGITS):
        return []
    matches = (match for each in results.kinds for match in each.matches)
    return [each for each in matches if _number(each).replace(" ", "") == digits]


def _number(match: Match) -> str:
    if isinstance(match, ParticipantMatch):
        return match.participant_number or ""
    return (match.abn or "") if isinstance(match, ProviderMatch) else ""


def _record_access(request: PageRequest, text: str, results: SearchResults) -> None:
    """Record the listed participants, also those of team members, and the listed invoices.

    A date is recorded as it is stored, so that an erasure finds it.
    """
    day = parse_values(text).date
    query = {"q": day.isoformat() if day else text}
    matches = [match for each in results.kinds for match in (*each.matches, *each.similar)]
    participants = [each.id for each in matches if isinstance(each, ParticipantMatch)]
    participants += [each.participant_id for each in matches if isinstance(each, TeamMemberMatch)]
    notes = [each for each in matches if isinstance(each, NoteMatch)]
    participants += [each.resource_id for each in notes if each.resource_kind == "participant"]
    invoices = [each.id for each in matches if isinstance(each, InvoiceMatch)]
    invoices += [each.resource_id for each in notes if each.resource_kind == "invoice"]
    request.record_list("participant", participants, query)
    request.record_list("invoice", invoices, query)


def _name_fields(text: str) -> dict[str, str]:
    """The text as the first and the last name of a new participant."""
    if any(each.isdecimal() for each in text) or "@" in text:
        return {}
    last, comma, first = (each.strip() for each in text.partition(","))
    if not comma:
        first, _, last = (each.strip() for each in text.rpartition(" "))
    return {"first_name": first, "last_name": last}
