"""The page of an event, and the page that undoes its change."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from plankeeper.console.activity.list import ACTIVITY
from plankeeper.console.activity.undo import (
    ShownField,
    choice_field,
    chosen_values,
    show_fields,
    undo_url,
    version_of_record,
)
from plankeeper.console.components.edit_forms import VERSION_FIELD, EditConflictError, translate_constraints
from plankeeper.console.components.events import (
    field_changes,
    record_path,
    resource_name,
    resource_url,
    trash_path,
    truncate_change,
    without_technical,
)
from plankeeper.console.components.review_return import ReviewPage, review_page
from plankeeper.console.lists.saved_views import parse_query_text
from plankeeper.console.shell.record_limits import select_inside
from plankeeper.console.shell.routing import (
    PREFIX,
    FormRequest,
    HtmlPage,
    PageRequest,
    Pages,
    Redirect,
)
from plankeeper.core.context import or_404
from plankeeper.core.errors import NotFound
from plankeeper.core.formatting import truncate
from plankeeper.core.ids import parse_uuid
from plankeeper.events import store
from plankeeper.events.schemas import Event, find_disclosed
from plankeeper.imports import store as import_store
from plankeeper.resources.parents import participant_exists
from plankeeper.resources.registry import BY_KIND
from plankeeper.resources.trash import store as trash_store
from plankeeper.resources.undo import ACTION_TYPES, Undo, find_undos, lock, snapshot_of, undo_deletion, undo_update

pages = Pages()

MAX_NAME_LENGTH = 60  # characters of a record's name
MAX_TEXT_LENGTH = 10_000  # characters of a value on the page of an event
NOTHING_LEFT = "The record no longer exists."
CHANGED_SINCE = "The record has changed again since."
NOT_IN_TRASH = "The record was deleted, and isn’t in the trash: it expired, or was deleted permanently or by a program."


@pages.get("/activity/{event_id}", role="viewer", is_limited=True)
async def get(request: PageRequest, event_id: UUID) -> HtmlPage:
    event = await _get_event(request, event_id)
    await _require_visible(request, event)
    changes = field_changes(event, request.settings.time_zone)
    shown = [truncate_change(each, MAX_TEXT_LENGTH) for each in changes]
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
    return HtmlPage("activity/event.html", context)


async def _require_visible(request: PageRequest, event: Event) -> None:
    """Raise NotFound for an event about another participant or invoice than those that a limited viewer sees."""
    if request.participants_of is None:
        return
    disclosed = find_disclosed(event.resource)
    inside = [await select_inside(request, kind, [id_]) for kind, id_ in disclosed.items()]
    if not all(inside) or (not inside and event.resource.kind != "provider"):
        raise NotFound


@pages.get("/activity/{event_id}/undo", role="manager")
async def undo_form(request: PageRequest, event_id: UUID) -> HtmlPage | Redirect:
    """The effect of the undo; for a creation and a deletion, the page that deletes or restores the record."""
    event = await _get_event(request, event_id)
    verb = event.type.partition(".")[2]
    if undo_url(event) is None:
        return _impossible(event, "This kind of event can’t be undone.")
    undo = await _find_undo(request, event)
    if verb == "deleted":
        return await _undo_deletion(request, event, is_back=undo.reason == "exists")
    if undo.current is None:
        return _impossible(event, NOTHING_LEFT)
    if verb in ("created", "restored"):
        url = str(resource_url(event)).removesuffix("/edit")
        return Redirect(f"{url}/{'remove' if event.resource.kind == 'team_member' else 'delete'}")
    if undo.reason == "changed" and event.type in ACTION_TYPES:
        return _impossible(event, CHANGED_SINCE)
    fields = show_fields(undo, request.settings.time_zone)
    context = {
        "undos": fields,
        "has_conflicts": undo.reason == "changed",
        "can_undo": any(each.state in ("revert", "conflict") for each in fields),
        "version": version_of_record(undo.current),
        "choice_field": choice_field,
        "review": _review_page(request, event),
    }
    return HtmlPage("activity/event_undo.html", _event_context(event) | context)


@pages.post("/activity/{event_id}/undo", role="manager", on_error=undo_form)
async def undo(request: FormRequest, event_id: UUID) -> Redirect | HtmlPage:
    event = await _get_event(request, event_id)
    if event.type == "team_member.deleted":
        return await _add_member_again(request, event)
    if event.type == "plan.deleted":
        return await _add_plan_again(request, event)
    if event.type == "note.deleted":
        return await _add_note_again(request, event)
    if undo_url(event) is None or not (event.type.endswith(".updated") or event.type in ACTION_TYPES):
        return await undo_form(request, event_id)
    await lock(request.write_context, event)
    undo = await _find_undo(request, event)
    if undo.reason == "changed" and event.type in ACTION_TYPES:
        return _impossible(event, CHANGED_SINCE)
    if request.form.text(VERSION_FIELD) != version_of_record(or_404(undo.current)):
        raise EditConflictError(
            "Someone else changed the record while you were editing. Nothing is undone yet: check the values, and undo"
            " again."
        )
    values = chosen_values(undo, request.form)
    if values:
        async with translate_constraints(request, BY_KIND[event.resource.kind].constraint_errors):
            await undo_update(request.write_context, event, values)
    shown = [each for each in show_fields(undo, request.settings.time_zone) if each.name in values]
    review = _review_page(request, event)
    return Redirect(review.url if review else _back_url(event), _undone_message(shown), undo=request.undo_path)


def _review_page(request: PageRequest, event: Event) -> ReviewPage | None:
    """The page of the review queue from which the undo was opened."""
    return review_page(request, UUID(event.resource.id)) if event.resource.kind == "invoice" else None


async def _find_undo(request: PageRequest, event: Event) -> Undo:
    [undo] = await find_undos(request.executor, request.plan_manager_id, [event], settings=request.settings)
    return undo


async def _get_event(request: PageRequest, event_id: UUID) -> Event:
    event = or_404(await store.get(request.executor, request.plan_manager_id, event_id))
    for kind, id_ in find_disclosed(event.resource).items():
        request.record_access("viewed", kind, id_)
    return event


def _event_context(event: Event) -> dict[str, Any]:
    name = truncate(resource_name(event), MAX_NAME_LENGTH)
    return {"event": event, "resource_name": name, "resource_url": resource_url(event)}


def _impossible(event: Event, reason: str) -> HtmlPage:
    return HtmlPage("activity/event_undo_impossible.html", _event_context(event) | {"reason": reason})


async def _undo_deletion(request: PageRequest, event: Event, *, is_back: bool) -> HtmlPage | Redirect:
    if is_back:
        return _impossible(event, "The record exists again.")
    participant_id, db = find_disclosed(event.resource).get("participant"), request.executor
    if event.resource.kind == "provider":
        entries = await trash_store.find(db, request.plan_manager_id, "provider", UUID(event.resource.id))
    elif participant_id is None and event.resource.kind != "note":
        return _impossible(event, NOTHING_LEFT)
    elif participant_id is None or await participant_exists(db, request.plan_manager_id, participant_id):
        fields = [each for each in without_technical(field_changes(event, request.settings.time_zone)) if each.before]
        return HtmlPage("activity/event_undo_removal.html", _event_context(event) | {"changes": fields})
    else:
        entries = await trash_store.find(db, request.plan_manager_id, "participant", participant_id)
    return Redirect(trash_path(entries[0])) if entries else _impossible(event, NOT_IN_TRASH)


async def _add_member_again(request: FormRequest, event: Event) -> Redirect | HtmlPage:
    """Add the member as it was when it was removed."""
    snapshot = snapshot_of(event)
    if parse_uuid(str(snapshot.record.get("user_id"))) is None:
        return _impossible(event, NOTHING_LEFT)
    restored = await undo_deletion(request.write_context, "team_member", snapshot)
    if not restored.keys and not restored.changes:
        return _impossible(event, NOTHING_LEFT)
    if not restored.keys:
        raise EditConflictError(" ".join(restored.changes))
    name = resource_name(event) or "The team member"
    message = " ".join([f"{name} is on the team again.", *restored.changes])
    return Redirect(f"{PREFIX}/participants/{event.resource.participant_id}/team", message, undo=request.undo_path)


async def _add_plan_again(request: FormRequest, event: Event) -> Redirect | HtmlPage:
    """Add the plan as it was when it was deleted. Raises ValidationError if another plan overlaps it by now."""
    snapshot = snapshot_of(event)
    if snapshot.record.get("components") is None:  # erased
        return _impossible(event, NOTHING_LEFT)
    restored = await undo_deletion(request.write_context, "plan", snapshot)
    if not restored.keys:
        return _impossible(event, NOTHING_LEFT)
    message = f"The plan {resource_name(event)} is there again."
    return Redirect(f"{PREFIX}/participants/{event.resource.participant_id}/plans", message, undo=request.undo_path)


async def _add_note_again(request: FormRequest, event: Event) -> Redirect | HtmlPage:
    """Add the note as it was when it was deleted, to its record."""
    snapshot = snapshot_of(event)
    if snapshot.record.get("text") is None:  # erased
        return _impossible(event, NOTHING_LEFT)
    restored = await undo_deletion(request.write_context, "note", snapshot)
    if not restored.keys:
        return _impossible(event, "The record or the type of the note no longer exists.")
    resource = snapshot.record["resource"]
    url = str(record_path(resource["kind"], resource["id"]))
    return Redirect(url, "The note is there again.", undo=request.undo_path)


def _back_url(event: Event) -> str:
    """The record's timeline, or its page, or the list."""
    participant_id = find_disclosed(event.resource).get("participant")
    if participant_id:
        return f"{PREFIX}/participants/{participant_id}/timeline"
    return resource_url(event) or f"{PREFIX}/activity"


def _undone_message(undone: Sequence[ShownField]) -> str:
    labels = [each.label for each in undone]
    return f"Undone: {', '.join(labels)}." if labels else "The values stay as they are."
