"""Several participants at once: set their account manager, download them."""

from typing import Any
from uuid import UUID

from plankeeper.console.labels import display_name
from plankeeper.console.lists.participants import PARTICIPANTS
from plankeeper.console.lists.selection import (
    Outcome,
    confirm_selection,
    download_selected,
    outcome_page,
    read_selection,
    seen_values,
)
from plankeeper.console.record_picker import pick_record
from plankeeper.console.routing import PREFIX, Download, FormRequest, HtmlPage, PageRequest, Pages
from plankeeper.core.errors import DomainError, ValidationError
from plankeeper.resources.participants import service, store
from plankeeper.resources.participants.schemas import Participant, ParticipantUpdate

pages = Pages()

FIELD, NO_MANAGER = "account_manager", "no_account_manager"  # the field, and the box that takes the manager away
MISSING_MANAGER = "Enter the name of an account manager, or tick “No account manager”"
CONTRADICTION = "can’t be a name while “No account manager” is ticked"


@pages.get("/participants/selected.csv", role="viewer")
async def download(request: PageRequest) -> Download:
    return await download_selected(request, PARTICIPANTS)


@pages.get("/participants/selected/account-manager", role="manager")
async def account_manager_form(request: PageRequest) -> HtmlPage:
    """The selected participants with their account managers, and the choice of another one."""
    selection = await read_selection(request, PARTICIPANTS, request.form or request.query, _manager)
    context: dict[str, Any] = {
        "selection": selection,
        "rows": [(each, display_name(each), f"{each.id}:{_manager(each)}") for each in selection.shown],
        "picker": await pick_record(request, "active_account_manager", FIELD, request.form),
        "has_no_manager": bool(request.form.text(NO_MANAGER)),
    }
    return HtmlPage("selected_account_manager.html", context)


@pages.post("/participants/selected/account-manager", role="manager", on_error=account_manager_form)
async def set_account_manager(request: FormRequest) -> HtmlPage:
    """Each change is an event of its own. Participants whose account manager has changed since the form are skipped."""
    manager_id = await _read_manager(request)
    selection = await confirm_selection(request, PARTICIPANTS, _manager)
    seen = {each.id: _manager(each) for each in selection.rows} | seen_values(request.form)
    locked = await store.select_for_update(request.tx, request.plan_manager_id, [each.id for each in selection.rows])
    now = {each.id: str(each.account_manager_id or "") for each in locked}
    outcomes = [await _set_one(request, each, manager_id, now.get(each.id), seen) for each in selection.rows]
    return outcome_page(request, "Account manager set", selection, outcomes)


async def _read_manager(request: FormRequest) -> str | None:
    """The id of the account manager that the form names; null for none. Raises ValidationError."""
    picker = await pick_record(request, "active_account_manager", FIELD, request.form)
    if request.form.text(NO_MANAGER):
        if picker.text:
            raise ValidationError(account_manager=CONTRADICTION)
        return None
    if picker.id is None:
        raise ValidationError(account_manager=picker.message or MISSING_MANAGER)
    return str(picker.id)


async def _set_one(
    request: FormRequest, participant: Participant, manager_id: str | None, current: str | None, seen: dict[UUID, str]
) -> Outcome:
    name, url = display_name(participant), f"{PREFIX}/participants/{participant.id}"
    if current is None:
        return Outcome(name, url, "deleted in the meantime", is_changed=False)
    if seen[participant.id] != current:
        return Outcome(name, url, "changed by someone else", is_changed=False)
    count, change = len(request.recorded), ParticipantUpdate(account_manager_id=manager_id)
    try:
        async with request.tx.savepoint():
            after = await service.update(request.write_context, participant.id, change)
    except DomainError as error:
        return Outcome(name, url, error.detail, is_changed=False)
    before_name = participant.account_manager.name or "none"
    if len(request.recorded) == count:
        return Outcome(name, url, f"already {before_name}", is_changed=False)
    text = f"{before_name} → {after.account_manager.name or 'none'}"
    return Outcome(name, url, text, is_changed=True, undo_path=f"{PREFIX}/activity/{request.recorded[-1]}/undo")


def _manager(participant: Participant) -> str:
    """The id of the account manager, which the page names."""
    return str(participant.account_manager.id or "")
