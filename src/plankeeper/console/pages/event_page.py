"""The page of an event, and the page that undoes its change."""

from typing import Any
from uuid import UUID

from plankeeper.console.edit_forms import VERSION_FIELD, EditConflictError, translate_constraints
from plankeeper.console.event_changes import (
    FieldChange,
    field_changes,
    fields_of,
    resource_name,
    resource_url,
    truncate,
    without_technical,
)
from plankeeper.console.event_undo import (
    FieldUndo,
    choice_field,
    chosen_values,
    find_undos,
    undo_url,
    version_of_record,
)
from plankeeper.console.forms import validate_struct
from plankeeper.console.lists.activity import ACTIVITY
from plankeeper.console.lists.saved_views import parse_query_text
from plankeeper.console.pages.trash_entries import trash_path
from plankeeper.console.routing import PREFIX, FormRequest, HtmlPage, PageRequest, Pages, Redirect
from plankeeper.console.undoable_records import UNDOABLE_RECORDS, executor, participant_id_of
from plankeeper.core.context import or_404
from plankeeper.core.ids import parse_uuid
from plankeeper.events import store
from plankeeper.events.disclosed import find_disclosed
from plankeeper.events.schemas import Event
from plankeeper.imports import store as import_store
from plankeeper.resources.parents import participant_exists, select_participant_for_share
from plankeeper.resources.team_members import service
from plankeeper.resources.trash import store as trash_store

pages = Pages()

MAX_NAME_LENGTH = 60  # characters of a record's name
MAX_TEXT_LENGTH = 10_000  # characters of a value on the page of an event
NOTHING_LEFT = "The record no longer exists."
NOT_IN_TRASH = "The record was deleted, and isn’t in the trash: it expired, or was deleted permanently or by a program."


@pages.get("/activity/{event_id}", role="viewer")
async def get(request: PageRequest, event_id: UUID) -> HtmlPage:
    event = await _get_event(request, event_id)
    changes = field_changes(event, request.settings.time_zone)
    shown = [_shorten(each) for each in changes]
    visible = without_technical(shown)
    context = {
        "event": event,
        "changes": visible,
        "technical": [each for each in shown if each not in visible],
        "is_truncated": shown != changes,
        "resource_name": truncate(resource_name(event), MAX_NAME_LENGTH),
        "resource_url": resource_url(event),
        "undo": undo_url(event),
        "of_import": await import_store.get_of_event(request.db, request.plan_manager_id, event_id),
        "back_url": parse_query_text(ACTIVITY, request.query.raw("list"), keep_page=True).url(),
    }
    return HtmlPage("event.html", context)


@pages.get("/activity/{event_id}/undo", role="manager")
async def undo_form(request: PageRequest, event_id: UUID) -> HtmlPage | Redirect:
    """The effect of the undo; for a creation and a deletion, the page that deletes or restores the record."""
    event = await _get_event(request, event_id)
    verb = event.type.partition(".")[2]
    if undo_url(event) is None:
        return _impossible(event, "This kind of event can’t be undone.")
    record = UNDOABLE_RECORDS[event.resource.kind]
    current = await record.get(request, event)
    if verb == "deleted":
        return await _undo_deletion(request, event, is_back=current is not None)
    if current is None:
        return _impossible(event, NOTHING_LEFT)
    if verb in ("created", "restored"):
        url = str(resource_url(event)).removesuffix("/edit")
        return Redirect(f"{url}/{'remove' if event.resource.kind == 'team_member' else 'delete'}")
    undos = find_undos(event, current, request.settings.time_zone)
    context = {
        "undos": undos,
        "has_conflicts": any(each.state == "conflict" for each in undos),
        "can_undo": any(each.state in ("revert", "conflict") for each in undos),
        "version": version_of_record(current),
        "choice_field": choice_field,
    }
    return HtmlPage("event_undo.html", _event_context(event) | context)


@pages.post("/activity/{event_id}/undo", role="manager", on_error=undo_form)
async def undo(request: FormRequest, event_id: UUID) -> Redirect | HtmlPage:
    event = await _get_event(request, event_id)
    if event.type == "team_member.deleted":
        return await _add_member_again(request, event)
    if not event.type.endswith(".updated") or event.resource.kind not in UNDOABLE_RECORDS:
        return await undo_form(request, event_id)
    record = UNDOABLE_RECORDS[event.resource.kind]
    await record.lock(request, event)
    current = or_404(await record.get(request, event))
    if request.form.text(VERSION_FIELD) != version_of_record(current):
        raise EditConflictError(
            "Someone else changed the record while you were editing. Nothing is undone yet: check the values, and undo"
            " again."
        )
    undos = find_undos(event, current, request.settings.time_zone)
    values = chosen_values(undos, request.form)
    if values:
        async with translate_constraints(request, record.constraint_errors):
            await record.update(request, event, validate_struct(record.update_type, values))
    return Redirect(_back_url(event), _undone_message(undos, values), undo=request.undo_path)


async def _get_event(request: PageRequest, event_id: UUID) -> Event:
    event = or_404(await store.get(executor(request), request.plan_manager_id, event_id))
    for kind, id_ in find_disclosed(event.resource).items():
        request.record_access("viewed", kind, id_)
    return event


def _shorten(change: FieldChange) -> FieldChange:
    before, after = truncate(change.before, MAX_TEXT_LENGTH), truncate(change.after, MAX_TEXT_LENGTH)
    return FieldChange(change.name, change.label, before, after)


def _event_context(event: Event) -> dict[str, Any]:
    name = truncate(resource_name(event), MAX_NAME_LENGTH)
    return {"event": event, "resource_name": name, "resource_url": resource_url(event)}


def _impossible(event: Event, reason: str) -> HtmlPage:
    return HtmlPage("event_undo_impossible.html", _event_context(event) | {"reason": reason})


async def _undo_deletion(request: PageRequest, event: Event, *, is_back: bool) -> HtmlPage | Redirect:
    if is_back:
        return _impossible(event, "The record exists again.")
    participant_id, db = participant_id_of(event), executor(request)
    if event.resource.kind == "provider":
        entries = await trash_store.find(db, request.plan_manager_id, "provider", UUID(event.resource.id))
    elif participant_id is None:
        return _impossible(event, NOTHING_LEFT)
    elif await participant_exists(db, request.plan_manager_id, participant_id):
        fields = [each for each in without_technical(field_changes(event, request.settings.time_zone)) if each.before]
        return HtmlPage("event_undo_removal.html", _event_context(event) | {"changes": fields})
    else:
        entries = await trash_store.find(db, request.plan_manager_id, "participant", participant_id)
    return Redirect(trash_path(entries[0])) if entries else _impossible(event, NOT_IN_TRASH)


async def _add_member_again(request: FormRequest, event: Event) -> Redirect | HtmlPage:
    """Add the member as it was when it was removed."""
    participant_id = participant_id_of(event)
    fields = fields_of(event.previous)
    if participant_id is None or parse_uuid(str(fields.get("user_id"))) is None:
        return _impossible(event, NOTHING_LEFT)
    participant = await select_participant_for_share(request.tx, request.plan_manager_id, participant_id)
    if participant is None:
        return _impossible(event, NOTHING_LEFT)
    permissions: list[dict[str, Any]] = fields.get("permissions") or []
    record: dict[str, Any] = fields | {"permissions": [each["name"] for each in permissions]}
    restored = await service.restore(request.write_context, participant, [record])
    if not restored.members:
        raise EditConflictError(" ".join(restored.changes))
    name = resource_name(event) or "The team member"
    message = " ".join([f"{name} is on the team again.", *restored.changes])
    return Redirect(f"{PREFIX}/participants/{participant_id}/team", message, undo=request.undo_path)


def _back_url(event: Event) -> str:
    """The record's timeline, or its page, or the list."""
    participant_id = participant_id_of(event)
    if participant_id:
        return f"{PREFIX}/participants/{participant_id}/timeline"
    return resource_url(event) or f"{PREFIX}/activity"


def _undone_message(undos: list[FieldUndo], values: dict[str, Any]) -> str:
    labels = [each.label for each in undos if each.name in values]
    return f"Undone: {', '.join(labels)}." if labels else "The values stay as they are."
