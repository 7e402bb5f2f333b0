"""The overview of the settings."""

from collections.abc import Sequence

from plankeeper.console.components.edit_forms import (
    EditedRecord,
    changes_in,
    edit_context,
    form_from,
    require_unchanged,
)
from plankeeper.console.components.pagination import PAGE_SIZE, paginate_links
from plankeeper.console.shell.forms import Form, parse_number
from plankeeper.console.shell.routing import (
    PREFIX,
    FormRequest,
    HtmlPage,
    PageRequest,
    Pages,
    Redirect,
)
from plankeeper.core.context import AccessedKind, or_404
from plankeeper.core.validation import known_fields, validate_struct
from plankeeper.resources.note_types import service, store
from plankeeper.resources.note_types.schemas import (
    NoteType,
    NoteTypeCreate,
    NoteTypeListQuery,
    NoteTypeUpdate,
)
from plankeeper.resources.notes.queries import list_page as list_notes
from plankeeper.resources.notes.schemas import Note, NoteListQuery

pages = Pages()

NOTED_PEOPLE: Sequence[AccessedKind] = ("participant", "invoice")  # the access log has who reads their notes
MAX_SHOWN_NOTES = 20  # of a type that can't be deleted, because notes have it


@pages.get("/settings", role="viewer", is_limited=True)
async def overview(request: PageRequest) -> HtmlPage:
    return HtmlPage("settings/settings.html", {"role": request.role})


NOTE_TYPES_URL = f"{PREFIX}/note-types"


@pages.get("/note-types", role="viewer", is_limited=True)
async def list_(request: PageRequest) -> HtmlPage:
    after = request.query.text("after")
    after_id = str(_parse_id(after)) if after else "0"
    rows = await store.list_page(
        request.db, request.plan_manager_id, NoteTypeListQuery(limit=PAGE_SIZE, after=after_id)
    )
    links = paginate_links(NOTE_TYPES_URL, {}, rows, after)
    return HtmlPage("settings/note_types.html", {"note_types": rows, **links})


@pages.get("/note-types/new", role="manager")
async def new(_request: PageRequest) -> HtmlPage:
    return HtmlPage("settings/note_type_new.html")


@pages.post("/note-types", role="manager", on_error=new)
async def create(request: FormRequest) -> Redirect:
    created = await service.create(request.write_context, validate_struct(NoteTypeCreate, _form_values(request.form)))
    return Redirect(NOTE_TYPES_URL, f"Note type “{created.note_type}” created.")


@pages.get("/note-types/{note_type_id}/edit", role="manager")
async def edit(request: PageRequest, note_type_id: str) -> HtmlPage:
    note_type = await get_or_404(request, note_type_id)
    current = form_from(NoteTypeUpdate, note_type)
    context = await edit_context(request, NoteTypeUpdate, current, edited_note_type(note_type))
    return HtmlPage("settings/note_type_edit.html", {"note_type": note_type, **context})


@pages.post("/note-types/{note_type_id}/edit", role="manager", on_error=edit)
async def update(request: FormRequest, note_type_id: str) -> Redirect:
    before = or_404(await store.get_for_update(request.tx, request.plan_manager_id, _parse_id(note_type_id)))
    await require_unchanged(request, edited_note_type(before))
    change = changes_in(NoteTypeUpdate, request.form, form_from(NoteTypeUpdate, before))
    updated = await service.save(request.write_context, before, change)
    return Redirect(NOTE_TYPES_URL, f"Note type “{updated.note_type}” saved.", undo=request.undo_path)


@pages.get("/note-types/{note_type_id}/delete", role="manager")
async def delete_form(request: PageRequest, note_type_id: str) -> HtmlPage:
    note_type = await get_or_404(request, note_type_id)
    count = await store.count_notes(request.db, request.plan_manager_id, note_type.id)
    query = NoteListQuery(note_type_id=note_type.id, limit=MAX_SHOWN_NOTES)
    notes: Sequence[Note] = await list_notes(request.db, request.plan_manager_id, query) if count else []
    for kind in NOTED_PEOPLE:
        request.record_list(kind, [each.resource.id for each in notes if each.resource.kind == kind], {})
    return HtmlPage("settings/note_type_delete.html", {"note_type": note_type, "count": count, "notes": notes})


@pages.post("/note-types/{note_type_id}/delete", role="manager", on_error=delete_form)
async def delete(request: FormRequest, note_type_id: str) -> Redirect:
    await service.delete(request.write_context, _parse_id(note_type_id))
    return Redirect(NOTE_TYPES_URL, "Note type deleted.")


async def get_or_404(request: PageRequest, note_type_id: str) -> NoteType:
    return or_404(await store.get(request.db, request.plan_manager_id, _parse_id(note_type_id)))


def edited_note_type(note_type: NoteType) -> EditedRecord:
    return EditedRecord("note_type", note_type.id, note_type.updated_at, known_fields(NoteTypeUpdate))


def _form_values(form: Form) -> dict[str, object]:
    """The values of the form; an empty colour is null."""
    colors = {name: form.text(name) or None for name in ("badge_color", "highlight_color")}
    return {"note_type": form.text("note_type"), **colors}


def _parse_id(text: str) -> int:
    """The id in a path or a query; raises NotFound if it is not one."""
    return or_404(parse_number(text, 10**18 - 1))
