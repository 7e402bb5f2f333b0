"""Export and erasure of a participant's data, and legal holds, for owners."""

from uuid import UUID

from plankeeper.console.components.labels import display_name
from plankeeper.console.participants.pages import PARTICIPANTS_URL
from plankeeper.console.shell.routing import (
    PREFIX,
    FormRequest,
    HtmlPage,
    PageRequest,
    Pages,
    Redirect,
)
from plankeeper.core.errors import DomainError, NotFound, ValidationError
from plankeeper.core.files import Download
from plankeeper.core.formatting import single_line
from plankeeper.privacy import person_export, service, store
from plankeeper.privacy.person_export import PersonExport
from plankeeper.privacy.schemas import COUNT_LABELS
from plankeeper.privacy.service import LegalHoldError
from plankeeper.resources.participants import store as participant_store

pages = Pages()

HOLDS_URL = f"{PREFIX}/settings/legal-holds"
MAX_HOLDS = 500
MAX_REASON_LENGTH = 255
MAX_MENTIONS_SHOWN = 50
MAX_MENTION_LENGTH = 200


@pages.get("/participants/{participant_id}/data", role="owner", access_log="participant")
async def show_data(request: PageRequest, participant_id: UUID) -> HtmlPage:
    export = await person_export.export_person(request.db, request.plan_manager_id, participant_id)
    context = {
        "participant_id": participant_id,
        "name": await _display_name(request, participant_id),
        "sizes": person_export.section_sizes(export),
    }
    return HtmlPage("participants/data.html", context)


@pages.get("/participants/{participant_id}/data.json", role="owner")
async def download_document(request: PageRequest, participant_id: UUID) -> Download:
    content = person_export.to_document(await _export(request, participant_id))
    return Download.of_bytes(f"participant-{participant_id}.json", "application/json", content.encode())


@pages.get("/participants/{participant_id}/data.html", role="owner")
async def download_page(request: PageRequest, participant_id: UUID) -> Download:
    content = person_export.to_page(await _export(request, participant_id))
    return Download.of_bytes(f"participant-{participant_id}.html", "text/html; charset=utf-8", content.encode())


async def _export(request: PageRequest, participant_id: UUID) -> PersonExport:
    export = await person_export.export_person(request.db, request.plan_manager_id, participant_id)
    async with request.db.transaction() as tx:
        await person_export.record_export(request.with_transaction(tx).write_context, export)
    request.record_access("exported", "participant", participant_id)
    return export


@pages.get("/participants/{participant_id}/erase", role="owner", access_log="participant")
async def erase_form(request: PageRequest, participant_id: UUID) -> HtmlPage:
    name = await _display_name(request, participant_id)
    context: dict[str, object] = {"participant_id": participant_id, "name": name, "labels": COUNT_LABELS, "hold": None}
    try:
        async with request.db.transaction() as tx:
            write_context = request.with_transaction(tx).write_context
            report = await service.preview_erasure(write_context, participant_id, search_events=False)
    except LegalHoldError as error:
        return HtmlPage("participants/erase.html", context | {"hold": error.hold})
    mentions = [
        (each.table, each.column, each.text[:MAX_MENTION_LENGTH]) for each in report.mentions[:MAX_MENTIONS_SHOWN]
    ]
    more = report.more_mentions or len(report.mentions) > MAX_MENTIONS_SHOWN
    return HtmlPage("participants/erase.html", context | {"report": report, "mentions": mentions, "more": more})


@pages.post("/participants/{participant_id}/erase", role="owner", on_error=erase_form)
async def erase(request: FormRequest, participant_id: UUID) -> Redirect:
    name = await _display_name(request, participant_id)
    if request.form.text("confirmation").strip() != name:
        raise ValidationError(confirmation=f"must be exactly “{name}”")
    try:
        await service.erase(request.write_context, participant_id, search_events=False)
    except LegalHoldError as error:  # placed since the form was shown
        raise DomainError("invalid_request", f"{error}.") from None
    return Redirect(PARTICIPANTS_URL, "The person’s data is erased.")


@pages.get("/participants/{participant_id}/hold", role="owner", access_log="participant")
async def hold_form(request: PageRequest, participant_id: UUID) -> HtmlPage:
    if not await service.is_known(request.db, request.plan_manager_id, participant_id):
        raise NotFound
    context = {
        "participant_id": participant_id,
        "name": await _display_name(request, participant_id),
        "hold": await store.get_hold(request.db, request.plan_manager_id, participant_id),
        "is_erased": await store.is_erased(request.db, request.plan_manager_id, participant_id),
        "max_length": MAX_REASON_LENGTH,
    }
    return HtmlPage("participants/hold.html", context)


@pages.post("/participants/{participant_id}/hold", role="owner", on_error=hold_form)
async def hold(request: FormRequest, participant_id: UUID) -> Redirect:
    reason = request.form.text("reason").strip()
    if not reason or single_line(reason, MAX_REASON_LENGTH) != reason:
        raise ValidationError(reason=f"must be one line of 1 to {MAX_REASON_LENGTH} characters")
    try:
        await service.hold(request.write_context, participant_id, reason)
    except LegalHoldError as error:
        raise DomainError("invalid_request", f"{error}.") from None
    return Redirect(HOLDS_URL, "The legal hold is placed.")


@pages.post("/participants/{participant_id}/hold/release", role="owner")
async def release_hold(request: FormRequest, participant_id: UUID) -> Redirect:
    await service.release_hold(request.write_context, participant_id)
    return Redirect(HOLDS_URL, "The legal hold is released.")


@pages.get("/settings/legal-holds", role="owner")
async def list_holds(request: PageRequest) -> HtmlPage:
    holds = await store.list_newest_holds(request.db, request.plan_manager_id, MAX_HOLDS)
    request.record_list("participant", [each.participant_id for each in holds], {})
    return HtmlPage("settings/legal_holds.html", {"holds": holds})


async def _display_name(request: PageRequest, participant_id: UUID) -> str:
    """The participant's name, or the id of a participant without one, such as a deleted one."""
    found = await participant_store.get(request.db, request.plan_manager_id, participant_id)
    return display_name(found, str(participant_id)) if found else str(participant_id)
