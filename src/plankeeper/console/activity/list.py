"""The list of activity."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from msgspec import Raw

from plankeeper.console.activity.source import ActivitySource, ShownGroup
from plankeeper.console.components.events import (
    actor_name,
    event_title,
    field_changes,
    resource_name,
    type_groups,
    without_technical,
)
from plankeeper.console.components.labels import humanize
from plankeeper.console.lists.dates import PAST_PRESETS
from plankeeper.console.lists.definition import BuiltInView, Column, ListDefinition, Names
from plankeeper.console.lists.filters import (
    ChoiceFilter,
    FilterContext,
    FlagFilter,
    LinkFilter,
    LinkValue,
    RecordFilter,
    day_filter,
)
from plankeeper.console.shell.routing import PageRequest
from plankeeper.core.context import AccessedKind
from plankeeper.core.ids import parse_uuid
from plankeeper.events.schemas import HistoryEvent, list_disclosed

TYPES = {value: label for group in type_groups().values() for value, label in group.items()}
ACTORS = {"user": "People", "api_key": "API keys", "system": "System"}


def list_types(chosen: str) -> dict[str, str]:
    """The kinds of changes, and for the chosen kind its types: all types would be a select of 150 rows."""
    offered = dict[str, str]()
    for group in type_groups().values():
        offered |= group if chosen in group else dict([*group.items()][:1])
    return offered


async def load_names(request: PageRequest, rows: Sequence[Any]) -> Names:
    """The changes of each update, by the id of its event."""
    events = [each for each in rows if isinstance(each, HistoryEvent)]
    return {each.id: _changes(each, request.settings.time_zone) for each in events if each.previous and each.data}


def _changes(event: HistoryEvent, zone: ZoneInfo) -> str:
    changes = without_technical(field_changes(event, zone))
    return "; ".join(f"{each.label}: {each.before or 'not set'} → {each.after or 'not set'}" for each in changes)


def _change(event: HistoryEvent, _names: Names) -> str:
    return event_title(event.type)


def _record(event: HistoryEvent, _names: Names) -> str | None:
    return resource_name(event)


def _changed_fields(event: HistoryEvent, names: Names) -> str | None:
    return names.get(event.id)


def _actor(event: HistoryEvent, _names: Names) -> str:
    return actor_name(event.actor.name, event.actor.kind)


def _actor_kind(event: HistoryEvent, _names: Names) -> str:
    return humanize(event.actor.kind)


def _json(raw: Raw | None) -> str:
    return bytes(raw).decode() if raw else ""


def _before(event: HistoryEvent, _names: Names) -> str:
    return _json(event.previous)


def _after(event: HistoryEvent, _names: Names) -> str:
    return _json(event.data)


def list_events_disclosed(rows: Sequence[Any]) -> Mapping[AccessedKind, Sequence[UUID]]:
    """The participants and invoices of the events, which the page has in groups and the file one by one."""
    return list_disclosed(event for row in rows for event in (row.shown if isinstance(row, ShownGroup) else [row]))


async def _read_record(_context: FilterContext, text: str) -> LinkValue:
    return LinkValue({"resource_id": text}, "One record")


async def _read_import(_context: FilterContext, text: str) -> LinkValue | None:
    found = parse_uuid(text)
    return LinkValue({"import": found}, "One import") if found else None


# The columns of the file: first those for people, then those for programs and auditors.
COLUMNS = (
    Column("created_at", "Time", "datetime"),
    Column("change", "Change", "text", _change),
    Column("record", "Record", "text", _record),
    Column("changes", "Changed fields", "text", _changed_fields),
    Column("actor", "Made by", "text", _actor),
    Column("actor_kind", "Person, key or system", "text", _actor_kind),
    Column("type", "Event type", "text"),
    Column("actor_id", "Person or key ID", "text", path="actor.id"),
    Column("resource_id", "Record ID", "text", path="resource.id"),
    Column("request_id", "Request ID", "text"),
    Column("before", "Before", "text", _before),
    Column("after", "After", "text", _after),
)
FILTERS = (
    RecordFilter("participant", "Participant", "participant", lambda found: {"participant": str(found)}),
    RecordFilter("person", "Person or API key", "person", lambda found: {"person": str(found)}),
    ChoiceFilter("type", "Type of change", TYPES, lambda choice: {"type": choice}, "All changes", list_types),
    ChoiceFilter("actor", "Made by", ACTORS, lambda choice: {"actor": choice}, "Anyone"),
    day_filter("Date", PAST_PRESETS),
    FlagFilter("views", "With invoice views", "views"),
    LinkFilter("resource_id", "One record", _read_record),
    LinkFilter("import", "One import", _read_import),
)
ACTIVITY = ListDefinition(
    kind="activity",
    title="Activity",
    one="event",
    many="events",
    rows=ActivitySource(),
    columns=COLUMNS,
    filters=FILTERS,
    sort="-created_at",
    empty="There is no activity yet. Every change by a person or a program appears here.",
    views=(
        BuiltInView("Made by people", {"actor": "user"}),
        BuiltInView("Made by the API", {"actor": "api_key"}),
        BuiltInView("Today", {"date": "today"}),
    ),
    load_names=load_names,
    list_disclosed=list_events_disclosed,
    download_role="manager",
    is_table=False,
)
