"""The trash: deleted participants and providers, and restoring them."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from msgspec.json import decode

from plankeeper.console.components.events import TRASH_URL, retention
from plankeeper.console.components.labels import NOT_SET, TECHNICAL_FIELDS, field_label, format_field
from plankeeper.console.components.pagination import PAGE_SIZE, with_query
from plankeeper.console.participants.form import SECTIONS
from plankeeper.console.shell.routing import (
    PREFIX,
    FormRequest,
    HtmlPage,
    PageRequest,
    Pages,
    Redirect,
)
from plankeeper.core.context import or_404
from plankeeper.core.ids import parse_uuid
from plankeeper.core.settings import Settings
from plankeeper.resources.providers.schemas import Provider
from plankeeper.resources.resource import Snapshot
from plankeeper.resources.team_members.schemas import TeamMemberRow
from plankeeper.resources.trash import service, store
from plankeeper.resources.trash.store import TrashKind

pages = Pages()

MAX_MESSAGE_LENGTH = 1000  # characters of a message, which a cookie holds
PAGE_ORDER: dict[TrashKind, Sequence[str]] = {
    "participant": list(dict.fromkeys(name for section in SECTIONS.values() for name in section.fields)),
    "provider": Provider.__struct_fields__,
}
TEAM_ORDER = ("first_name", "last_name", "role", "contact_priority", "permissions", *TeamMemberRow.__struct_fields__)
NAMELESS: dict[TrashKind, str] = {"participant": "Participant without a name", "provider": "Provider without a name"}


@pages.get("/trash", role="viewer")
async def list_(request: PageRequest) -> HtmlPage:
    before = parse_uuid(request.query.text("before"))
    rows = await store.list_newest(request.db, request.plan_manager_id, before, PAGE_SIZE + 1)
    shown = rows[:PAGE_SIZE]
    request.record_list("participant", [each.resource_id for each in shown if each.kind == "participant"], {})
    older = with_query(TRASH_URL, {"before": str(shown[-1].id)}) if len(rows) > PAGE_SIZE else None
    entries = [(each, each.name or NAMELESS[each.kind], days_left(each.deleted_at, request.settings)) for each in shown]
    return HtmlPage("settings/trash.html", {"entries": entries, "older": older, "before": before, **retention(request)})


@pages.get("/trash/{entry_id}", role="viewer")
async def get(request: PageRequest, entry_id: UUID) -> HtmlPage:
    return HtmlPage("settings/trash_entry.html", await entry_context(request, entry_id))


@pages.post("/trash/{entry_id}/restore", role="manager", on_error=get)
async def restore(request: FormRequest, entry_id: UUID) -> Redirect:
    entry, changes = await service.restore(request.write_context, entry_id)
    message = " ".join([f"{entry.name or NAMELESS[entry.kind]} restored.", *changes])
    return Redirect(f"{PREFIX}/{entry.kind}s/{entry.resource_id}", message[:MAX_MESSAGE_LENGTH])


@pages.get("/trash/{entry_id}/delete", role="owner")
async def delete_form(request: PageRequest, entry_id: UUID) -> HtmlPage:
    return HtmlPage("settings/trash_delete.html", await entry_context(request, entry_id))


@pages.post("/trash/{entry_id}/delete", role="owner")
async def delete(request: FormRequest, entry_id: UUID) -> Redirect:
    entry = await service.delete_permanently(request.write_context, entry_id)
    return Redirect(TRASH_URL, f"{entry.name or NAMELESS[entry.kind]} permanently deleted.")


async def entry_context(request: PageRequest, entry_id: UUID) -> dict[str, Any]:
    """The context of an entry's pages: the record and its team, as fields with labels and texts."""
    entry = or_404(await store.get(request.db, request.plan_manager_id, entry_id))
    if entry.kind == "participant":
        request.record_access("viewed", "participant", entry.resource_id)
    snapshot = decode(entry.snapshot, type=Snapshot)
    return {
        "entry": entry,
        "name": entry.name or NAMELESS[entry.kind],
        "days_left": days_left(entry.deleted_at, request.settings),
        "fields": record_fields(request, snapshot.record, snapshot.names, PAGE_ORDER[entry.kind]),
        "team": [record_fields(request, each, {}, TEAM_ORDER) for each in snapshot.team],
        **retention(request),
    }


def record_fields(
    request: PageRequest, record: dict[str, Any], names: dict[str, str], order: Sequence[str] = ()
) -> list[tuple[str, str]]:
    """The labels and texts of the fields that are set, with names instead of the ids of other records.

    Fields come in `order`, others last.
    """
    positions = {name: position for position, name in enumerate(dict.fromkeys(order))}
    zone = request.settings.time_zone
    texts = dict[str, str]()
    for name in sorted(record, key=lambda name: positions.get(name, len(positions))):
        value = record[name]
        if name not in TECHNICAL_FIELDS:
            is_reference = isinstance(value, str) and value in names
            texts[name] = names[value] if is_reference else format_field(name, value, zone)
    return [(field_label(name), text) for name, text in texts.items() if text != NOT_SET]


def days_left(deleted_at: datetime, settings: Settings) -> int | None:
    """Whole days until an entry expires; null if entries don't expire."""
    if settings.trash_retention is None:
        return None
    return max(0, (deleted_at + timedelta(days=settings.trash_retention) - datetime.now(UTC)).days)
