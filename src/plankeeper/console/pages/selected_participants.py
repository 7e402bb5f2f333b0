"""Several participants at once: set their account manager, download them."""

from typing import Any
from uuid import UUID

from plankeeper.console.lists.download import download_selection
from plankeeper.console.lists.participants import PARTICIPANTS
from plankeeper.console.lists.selection import Outcome, outcome_page, read_selection, seen_values
from plankeeper.console.names import display_name
from plankeeper.console.participant_choices import manager_choices
from plankeeper.console.routing import PREFIX, Download, FormRequest, HtmlPage, PageRequest, Pages
from plankeeper.http.errors import ApiError, ValidationError
from plankeeper.participants import service
from plankeeper.participants.schemas import Participant, ParticipantUpdate

pages = Pages()

NO_MANAGER = "none"  # the choice that takes the account manager away
UNKNOWN_MANAGER = "must be one of the choices"


@pages.get("/participants/selected.csv", role="viewer")
async def download(request: PageRequest) -> Download:
    return await download_selection(request, await read_selection(request, PARTICIPANTS, request.query, "exported"))


@pages.get("/participants/selected/account-manager", role="manager")
async def account_manager_form(request: PageRequest) -> HtmlPage:
    """The selected participants with their account managers, and the choice of another one."""
    selection = await read_selection(request, PARTICIPANTS, request.form or request.query)
    context: dict[str, Any] = {
        "selection": selection,
        "rows": [(each, display_name(each), _seen(each)) for each in selection.rows],
        "choices": {"": "Choose", **await manager_choices(request), NO_MANAGER: "No account manager"},
        "chosen": request.form.text("account_manager"),
    }
    return HtmlPage("selected_account_manager.html", context)


@pages.post("/participants/selected/account-manager", role="manager", on_error=account_manager_form)
async def set_account_manager(request: FormRequest) -> HtmlPage:
    """Each change is an event of its own. Participants whose account manager has changed since the form are skipped."""
    choice = request.form.text("account_manager")
    if choice not in {NO_MANAGER, *await manager_choices(request)}:
        raise ValidationError(account_manager=UNKNOWN_MANAGER)
    selection = await read_selection(request, PARTICIPANTS, request.form)
    manager_id, seen = None if choice == NO_MANAGER else choice, seen_values(request.form)
    outcomes = [await _set_one(request, each, manager_id, seen) for each in selection.rows]
    return outcome_page("Account manager set", selection, outcomes)


async def _set_one(
    request: FormRequest, participant: Participant, manager_id: str | None, seen: dict[UUID, str]
) -> Outcome:
    name, url = display_name(participant), f"{PREFIX}/participants/{participant.id}"
    context = request.write_context
    try:
        async with request.tx.savepoint():
            before = await service.select_for_update(context, participant.id)
            current = str(before.account_manager_id or "") if before else None
            if current is None:
                return Outcome(name, url, "deleted meanwhile", is_changed=False)
            if seen.get(participant.id, current) != current:
                return Outcome(name, url, "changed by somebody else meanwhile", is_changed=False)
            count = len(request.recorded)
            after = await service.update(context, participant.id, ParticipantUpdate(account_manager_id=manager_id))
    except ApiError as error:
        return Outcome(name, url, error.detail, is_changed=False)
    before_name = participant.account_manager.name or "none"
    if len(request.recorded) == count:
        return Outcome(name, url, f"already {before_name}", is_changed=False)
    text = f"{before_name} → {after.account_manager.name or 'none'}"
    return Outcome(name, url, text, is_changed=True, undo_path=f"{PREFIX}/activity/{request.recorded[-1]}/undo")


def _seen(participant: Participant) -> str:
    return f"{participant.id}:{participant.account_manager.id or ''}"
