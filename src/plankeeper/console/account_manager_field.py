"""The account manager in the forms of participants: a select, or if there are many, a field that takes a name."""

from collections.abc import Sequence

from plankeeper.console.forms import Form
from plankeeper.console.record_picker import RecordPicker, pick_record
from plankeeper.console.routing import PageRequest
from plankeeper.core.errors import FieldError
from plankeeper.resources.participants.schemas import Participant

MAX_OPTIONS = 12  # account managers of a select
FIELD = "account_manager"


async def account_manager_picker(request: PageRequest, participant: Participant | None) -> RecordPicker:
    """The field as it was sent, or else with the participant's account manager, who may be hidden by now."""
    manager = participant.account_manager if participant else None
    shown = RecordPicker(FIELD, FIELD, "")
    if manager and manager.id:
        shown = RecordPicker(FIELD, FIELD, manager.name or "No name", manager.id)
    if FIELD not in request.form:
        return shown
    is_unchanged = not request.form.text(f"{FIELD}_choice") and request.form.text(FIELD) == shown.text
    if is_unchanged and request.form.text(f"{FIELD}_id") == str(shown.id or ""):
        return shown
    return await pick_record(request, FIELD, FIELD, request.form)


async def read_account_manager(
    request: PageRequest, participant: Participant | None
) -> tuple[Form, Sequence[FieldError]]:
    """The form with the id of the account manager in the field, and the error of a text without a match.

    A form with a select stays as it is.
    """
    if FIELD not in request.form:
        return request.form, ()
    picker = await account_manager_picker(request, participant)
    if picker.is_unclear:
        return request.form, [FieldError(FIELD, picker.message)]
    others = [(name, text) for name, text in request.form.multi_items() if name != f"{FIELD}_id"]
    return Form([*others, (f"{FIELD}_id", str(picker.id or ""))]), ()
