"""Note types with their colours: list, create, edit, delete."""

from plankeeper.console.edit_forms import filled, new_in, require_unchanged, to_edit
from plankeeper.console.forms import Form, struct_of
from plankeeper.console.routing import PREFIX, Act, Look, Page, Pages, Redirect
from plankeeper.http.context import found
from plankeeper.http.errors import NotFound
from plankeeper.note_types import routes, store
from plankeeper.note_types.schemas import NoteTypeChange, NoteTypeCreate, NoteTypeListQuery

pages = Pages()

NOTE_TYPES = f"{PREFIX}/note-types"
PAGE = 50


@pages.get("/note-types", need="viewer")
async def list_(look: Look) -> Page:
    after = look.query.text("after")
    begin = str(_number(after)) if after else "0"
    rows = await store.page(look.db, look.plan_manager_id, NoteTypeListQuery(limit=PAGE, after=begin))
    following = f"{NOTE_TYPES}?after={rows[PAGE - 1].id}" if len(rows) > PAGE else None
    return Page("note_types.html", {"note_types": rows[:PAGE], "next": following, "after": after})


@pages.get("/note-types/new", need="manager")
async def new(_look: Look) -> Page:
    return Page("note_type_new.html")


@pages.post("/note-types", need="manager", again=new)
async def create(act: Act) -> Redirect:
    made = await routes.create(act.write, struct_of(NoteTypeCreate, _typed(act.form)))
    return Redirect(NOTE_TYPES, f"The note type {made.note_type} is there.")


@pages.get("/note-types/{note_type_id}/edit", need="manager")
async def edit(look: Look, note_type_id: str) -> Page:
    kept = await routes.get(look.read, _number(note_type_id))
    return Page("note_type_edit.html", {"note_type": kept, **to_edit(look, filled(NoteTypeChange, kept))})


@pages.post("/note-types/{note_type_id}/edit", need="manager", again=edit)
async def update(act: Act, note_type_id: str) -> Redirect:
    number = _number(note_type_id)
    found(next(iter(await store.records_for_update(act.tx, act.plan_manager_id, [number])), None))
    [kept] = await store.fetch(act.tx, act.plan_manager_id, [number])
    now = filled(NoteTypeChange, kept)
    require_unchanged(act, now)
    changed = await routes.update(act.write, number, new_in(NoteTypeChange, act.form, now))
    return Redirect(NOTE_TYPES, f"The note type {changed.note_type} is saved.")


@pages.get("/note-types/{note_type_id}/delete", need="manager")
async def delete_form(look: Look, note_type_id: str) -> Page:
    return Page("note_type_delete.html", {"kept": await routes.get(look.read, _number(note_type_id))})


@pages.post("/note-types/{note_type_id}/delete", need="manager")
async def delete(act: Act, note_type_id: str) -> Redirect:
    await routes.delete(act.write, _number(note_type_id))
    return Redirect(NOTE_TYPES, "The note type is deleted.")


def _typed(form: Form) -> dict[str, object]:
    """What was typed; a colour that is left empty is none."""
    colors = {name: form.text(name) or None for name in ("badge_color", "highlight_color")}
    return {"note_type": form.text("note_type"), **colors}


def _number(text: str) -> int:
    """The id in a path or a query; what is none is no page."""
    if not text.isascii() or not text.isdecimal() or len(text) > 18:
        raise NotFound
    return int(text)
