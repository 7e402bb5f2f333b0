"""Notes: all of a record, add one from the page of its record, edit, delete."""

from uuid import UUID

from plankeeper.console.components.edit_forms import (
    EditedRecord,
    changes_in,
    edit_context,
    form_from,
    require_unchanged,
)
from plankeeper.console.notes.section import MAX_LENGTH, note_type_choices, record_url
from plankeeper.console.shell.forms import Form, parse_number
from plankeeper.console.shell.routing import FormRequest, HtmlPage, PageRequest, Pages, Redirect
from plankeeper.core.context import or_404
from plankeeper.core.errors import NotFound
from plankeeper.core.validation import known_fields, validate_struct
from plankeeper.resources.notes import service, store
from plankeeper.resources.notes.schemas import Note, NoteCreate, NotedKind, NoteUpdate

pages = Pages()

PAGE_SIZE = 50
MAX_PAGE = 10**5 - 1


async def _new(request: PageRequest, kind: NotedKind, resource_id: UUID) -> HtmlPage:
    """The form of a new note on a page of its own, which also shows its errors."""
    if not await store.exists(request.executor, request.plan_manager_id, kind, resource_id):
        raise NotFound
    context = {"kind": kind, "record_url": record_url(kind, resource_id), "types": await note_type_choices(request)}
    return HtmlPage("notes/new.html", context | {"form": request.form or Form(), "max_length": MAX_LENGTH})


async def _create(request: FormRequest, kind: NotedKind, resource_id: UUID) -> Redirect:
    if not await store.lock_resources(request.tx, request.plan_manager_id, kind, [resource_id]):
        raise NotFound
    resource = {"kind": kind, "id": str(resource_id)}
    values = {"resource": resource, **_form_values(request.form)}
    await service.create(request.write_context, validate_struct(NoteCreate, values))
    return Redirect(f"{record_url(kind, resource_id)}", "Note added.", undo=request.undo_path)


def _form_values(form: Form) -> dict[str, object]:
    return {
        "note_type_id": parse_number(form.text("note_type_id"), 10**15 - 1) or 0,
        "text": form.multiline_text("text"),
        "pinned": bool(form.text("pinned")),
        "alert": bool(form.text("alert")),
    }


async def _list(request: PageRequest, kind: NotedKind, resource_id: UUID) -> HtmlPage:
    """The notes of a record, as on its page, in pages."""
    place = (request.db, request.plan_manager_id, kind, resource_id)
    if not await store.exists(*place):
        raise NotFound
    number = parse_number(request.query.text("page"), MAX_PAGE) or 1
    notes = await store.list_shown(*place, PAGE_SIZE + 1, PAGE_SIZE * (number - 1))
    context = {"kind": kind, "record_url": record_url(kind, resource_id), "notes": notes[:PAGE_SIZE], "number": number}
    return HtmlPage("notes/list.html", context | {"has_more": len(notes) > PAGE_SIZE})


@pages.get("/participants/{participant_id}/notes", role="viewer", is_limited=True, access_log="participant")
async def list_of_participant(request: PageRequest, participant_id: UUID) -> HtmlPage:
    return await _list(request, "participant", participant_id)


@pages.get("/providers/{provider_id}/notes", role="viewer", is_limited=True)
async def list_of_provider(request: PageRequest, provider_id: UUID) -> HtmlPage:
    return await _list(request, "provider", provider_id)


@pages.get("/invoices/{invoice_id}/notes", role="viewer", is_limited=True, access_log="invoice")
async def list_of_invoice(request: PageRequest, invoice_id: UUID) -> HtmlPage:
    return await _list(request, "invoice", invoice_id)


@pages.get("/participants/{participant_id}/notes/new", role="manager", access_log="participant")
async def new_of_participant(request: PageRequest, participant_id: UUID) -> HtmlPage:
    return await _new(request, "participant", participant_id)


@pages.post("/participants/{participant_id}/notes", role="manager", on_error=new_of_participant)
async def create_of_participant(request: FormRequest, participant_id: UUID) -> Redirect:
    return await _create(request, "participant", participant_id)


@pages.get("/providers/{provider_id}/notes/new", role="manager")
async def new_of_provider(request: PageRequest, provider_id: UUID) -> HtmlPage:
    return await _new(request, "provider", provider_id)


@pages.post("/providers/{provider_id}/notes", role="manager", on_error=new_of_provider)
async def create_of_provider(request: FormRequest, provider_id: UUID) -> Redirect:
    return await _create(request, "provider", provider_id)


@pages.get("/invoices/{invoice_id}/notes/new", role="manager", access_log="invoice")
async def new_of_invoice(request: PageRequest, invoice_id: UUID) -> HtmlPage:
    return await _new(request, "invoice", invoice_id)


@pages.post("/invoices/{invoice_id}/notes", role="manager", on_error=new_of_invoice)
async def create_of_invoice(request: FormRequest, invoice_id: UUID) -> Redirect:
    return await _create(request, "invoice", invoice_id)


@pages.get("/notes/{note_id}/edit", role="manager")
async def edit(request: PageRequest, note_id: UUID) -> HtmlPage:
    note = await _get(request, note_id)
    context = await edit_context(request, NoteUpdate, form_from(NoteUpdate, note), _edited(note))
    url = record_url(note.resource.kind, note.resource.id)
    context |= {"note": note, "record_url": url, "types": await note_type_choices(request), "max_length": MAX_LENGTH}
    return HtmlPage("notes/edit.html", context)


async def _get(request: PageRequest, note_id: UUID) -> Note:
    """A note that the page shows; raises NotFound."""
    note = or_404(await store.get(request.executor, request.plan_manager_id, note_id))
    if note.resource.kind != "provider":
        request.record_access("viewed", note.resource.kind, note.resource.id)
    return note


def _edited(note: Note) -> EditedRecord:
    return EditedRecord("note", note.id, note.updated_at, known_fields(NoteUpdate))


@pages.post("/notes/{note_id}/edit", role="manager", on_error=edit)
async def update(request: FormRequest, note_id: UUID) -> Redirect:
    before = or_404(await store.get_for_update(request.tx, request.plan_manager_id, note_id))
    await require_unchanged(request, _edited(before))
    change = changes_in(NoteUpdate, request.form, form_from(NoteUpdate, before))
    await service.save(request.write_context, before, change)
    url = record_url(before.resource.kind, before.resource.id)
    return Redirect(url, "Note saved.", undo=request.undo_path)


@pages.get("/notes/{note_id}/delete", role="manager")
async def delete_form(request: PageRequest, note_id: UUID) -> HtmlPage:
    note = await _get(request, note_id)
    return HtmlPage("notes/delete.html", {"note": note, "record_url": record_url(note.resource.kind, note.resource.id)})


@pages.post("/notes/{note_id}/delete", role="manager", on_error=delete_form)
async def delete(request: FormRequest, note_id: UUID) -> Redirect:
    note = await service.delete(request.write_context, note_id)
    url = record_url(note.resource.kind, note.resource.id)
    return Redirect(url, "Note deleted.", undo=request.undo_path)
