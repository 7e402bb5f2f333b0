"""Participants: create, and edit section by section."""

from collections.abc import Awaitable, Callable
from uuid import UUID

from plankeeper.console.components.edit_forms import (
    EditedRecord,
    describe_changes,
    edit_context,
    find_changes,
    require_confirmed,
    require_unchanged,
    select_fields,
)
from plankeeper.console.components.labels import display_name
from plankeeper.console.components.record_picker import read_account_manager
from plankeeper.console.participants.form import (
    SECTIONS,
    empty_form,
    empty_row,
    fields_to_save,
    find_implausible_changes,
    find_missing_identity,
    form_choices,
    participant_form,
    sections_of_new,
)
from plankeeper.console.participants.header import describe_open_invoices
from plankeeper.console.participants.pages import PARTICIPANTS_URL, get_or_404
from plankeeper.console.shell.forms import without_spaces
from plankeeper.console.shell.routing import (
    FormRequest,
    HtmlPage,
    PageRequest,
    Pages,
    Redirect,
)
from plankeeper.core.context import or_404
from plankeeper.core.fields import apply_patch
from plankeeper.resources.participants import service, store
from plankeeper.resources.participants.rules import is_ndis_number
from plankeeper.resources.participants.schemas import Participant, ParticipantUpdate, without_references

pages = Pages()

EDIT_PATH = "/participants/{participant_id}/edit"


@pages.get("/participants/new", role="manager")
async def new(request: PageRequest) -> HtmlPage:
    form = request.form or empty_form(
        first_name=request.query.text("first_name"), last_name=request.query.text("last_name")
    )
    exit_fields = SECTIONS["exit"].fields[1:]
    context = {"form": form, "sections": sections_of_new(), "has_exit": any(form.text(name) for name in exit_fields)}
    return HtmlPage("participants/new.html", context | dict(await form_choices(request, None)))


@pages.post("/participants", role="manager", on_error=new, constraint_errors=service.CONSTRAINT_ERRORS)
async def create(request: FormRequest) -> Redirect:
    form, manager_errors = await read_account_manager(request, None)
    form = without_spaces(form, "participant_number", empty_form(), is_ndis_number)
    change, errors = find_changes(ParticipantUpdate, form, empty_form())
    row = apply_patch(change, empty_row())
    errors = [*errors, *manager_errors] or find_missing_identity(row)
    implausible = await find_implausible_changes(request, None, row)
    require_confirmed(request.form, implausible, errors, PARTICIPANTS_URL)
    created = await service.create(request.write_context, change)
    return Redirect(f"{PARTICIPANTS_URL}/{created.id}", f"{display_name(created)} added.")


@pages.get(EDIT_PATH, role="manager")
async def edit(request: PageRequest, participant_id: UUID) -> Redirect:
    """The first section. Each section's page links to the others."""
    await get_or_404(request, participant_id)
    return Redirect(f"{PARTICIPANTS_URL}/{participant_id}/edit/{next(iter(SECTIONS))}")


def edited_section(participant: Participant, name: str) -> EditedRecord:
    return EditedRecord("participant", participant.id, participant.updated_at, SECTIONS[name].fields)


def edit_section(name: str) -> Callable[[PageRequest, UUID], Awaitable[HtmlPage]]:
    """The handler of the page that edits a section."""

    async def edit(request: PageRequest, participant_id: UUID) -> HtmlPage:
        participant = await get_or_404(request, participant_id)
        current = select_fields(participant_form(participant), SECTIONS[name].fields)
        page_url = f"{PARTICIPANTS_URL}/{participant_id}"
        context = {
            "participant": participant,
            "name": display_name(participant),
            "page_url": page_url,
            "part": name,
            "sections": {name: SECTIONS[name]},
            "title": SECTIONS[name].title,
            "tabs": [(f"{page_url}/edit/{each}", section.title, None) for each, section in SECTIONS.items()],
            **await edit_context(request, ParticipantUpdate, current, edited_section(participant, name)),
        }
        if name == "exit":
            context["open_invoices"] = await describe_open_invoices(request, participant_id)
        return HtmlPage("participants/edit.html", {**context, **await form_choices(request, participant)})

    return edit


def update_section(name: str) -> Callable[[FormRequest, UUID], Awaitable[Redirect]]:
    """The handler that saves a section. A concurrent change of another section isn't a conflict."""

    async def update(request: FormRequest, participant_id: UUID) -> Redirect:
        participant = or_404(await store.get_for_update(request.tx, request.plan_manager_id, participant_id))
        await require_unchanged(request, edited_section(participant, name))
        current, before = participant_form(participant), without_references(participant)
        form, manager_errors = await read_account_manager(request, participant)
        form = without_spaces(form, "participant_number", current, is_ndis_number)
        change, errors = find_changes(ParticipantUpdate, form, current, fields_to_save(name, form))
        errors += manager_errors
        after = apply_patch(change, before)
        if name == "person":
            errors = errors or find_missing_identity(after)
        implausible = await find_implausible_changes(request, before, after)
        require_confirmed(request.form, implausible, errors, PARTICIPANTS_URL)
        await service.save(request.write_context, participant, change)
        return Redirect(
            f"{PARTICIPANTS_URL}/{participant_id}", f"Changes saved{describe_changes(change)}.", undo=request.undo_path
        )

    return update


for _name in SECTIONS:
    _edit = pages.get(f"{EDIT_PATH}/{_name}", role="manager", access_log="participant")(edit_section(_name))
    _save = pages.post(
        f"{EDIT_PATH}/{_name}", role="manager", on_error=_edit, constraint_errors=service.CONSTRAINT_ERRORS
    )
    _save(update_section(_name))
