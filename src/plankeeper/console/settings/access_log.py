"""The list of the access log: who viewed, listed or exported which participant or invoice."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from plankeeper.access.access_log import store
from plankeeper.access.access_log.schemas import AccessRecord, AccessRecordFilter
from plankeeper.console.components.labels import humanize
from plankeeper.console.lists.dates import PAST_PRESETS, TimeRange
from plankeeper.console.lists.definition import (
    MAX_COUNTED,
    BuiltInView,
    Column,
    Link,
    ListDefinition,
    Names,
    PagePosition,
    SourceCount,
    SourcePage,
    cut_source_page,
)
from plankeeper.console.lists.filters import ChoiceFilter, RecordFilter, day_filter
from plankeeper.console.lists.registration import add_list
from plankeeper.console.settings.access_texts import AccessNames, load_access_names
from plankeeper.console.shell.routing import (
    PREFIX,
    PageRequest,
    Pages,
)
from plankeeper.core.ids import parse_uuid, uuid7_lower_bound

FILE_BATCH_SIZE = 500  # records in a chunk of a file
FOLDED_PERIOD = timedelta(hours=1)
ACTIONS = {"viewed": "Viewed", "listed": "Listed", "exported": "Exported or sent"}
ACTORS = {"user": "People", "api_key": "API keys"}


@dataclass(slots=True)
class AccessEntry:
    """Records of the same read by the same person or key within an hour; `record` is the first one on the page."""

    record: AccessRecord
    count: int = 1

    @property
    def id(self) -> UUID:
        return self.record.id


def fold(records: Sequence[AccessRecord]) -> list[AccessEntry]:
    """One entry for equal reads within an hour, in the order of the first of them."""
    entries = list[AccessEntry]()
    latest = dict[tuple[Any, ...], AccessEntry]()
    for each in records:
        listed = tuple(each.resource_ids or (each.first_id, each.last_id))
        read = (each.actor.kind, each.actor.id, each.action, each.resource_kind, each.resource_id, each.query, listed)
        entry = latest.get(read)
        if entry and abs(entry.record.accessed_at - each.accessed_at) < FOLDED_PERIOD:
            entry.count += 1
        else:
            latest[read] = entry = AccessEntry(each)
            entries.append(entry)
    return entries


class AccessSource:
    """The rows of the access log."""

    async def read_page(self, request: PageRequest, values: Mapping[str, Any], place: PagePosition) -> SourcePage:
        """As many records as the page has rows, grouped in entries, so the page can have fewer rows."""
        start = parse_uuid(place.start)
        place = place if start else place._replace(after="", before="")
        filters, is_downward = access_filter(values), place.is_backward == place.is_ascending
        if start and is_downward:
            filters = filters._replace(before=min(start, filters.before or start))
        elif start:
            filters = filters._replace(after=max(start, filters.after or start))
        read = store.list_newest if is_downward else store.list_oldest
        found = await read(request.db, request.plan_manager_id, filters, place.size + 1)
        page = cut_source_page(place, found, lambda row: str(row.id), lambda row: str(row.id))
        page.rows = fold(page.rows)
        return page

    async def count(self, request: PageRequest, values: Mapping[str, Any]) -> SourceCount:
        number = await store.count(request.db, request.plan_manager_id, access_filter(values), MAX_COUNTED + 1)
        return SourceCount(number if number <= MAX_COUNTED else None)

    async def read_batches(self, request: PageRequest, values: Mapping[str, Any]) -> AsyncIterator[Sequence[Any]]:
        filters = access_filter(values)
        while True:
            rows = await store.list_newest(request.db, request.plan_manager_id, filters, FILE_BATCH_SIZE)
            yield [AccessEntry(each) for each in rows]
            if len(rows) < FILE_BATCH_SIZE:
                return
            filters = filters._replace(before=rows[-1].id)


def access_filter(values: Mapping[str, Any]) -> AccessRecordFilter:
    """The filter of the values of the list's filters. Ids are in order of time."""
    days: TimeRange = values.get("days") or TimeRange(None, None)
    record_id = values.get("record")
    return AccessRecordFilter(
        [record_id] if record_id else None,
        uuid7_lower_bound(days.start) if days.start else None,
        uuid7_lower_bound(days.end) if days.end else None,
        values.get("person"),
        values.get("actor"),
        values.get("action"),
        values.get("person_name"),
    )


async def load_names(request: PageRequest, rows: Sequence[Any]) -> Names:
    found: Any = await load_access_names(request, [each.record for each in rows])
    return found


async def load_file_names(request: PageRequest, rows: Sequence[Any]) -> Names:
    found: Any = await load_access_names(request, [each.record for each in rows], all_listed=True)
    return found


def _who(row: AccessEntry, _names: Names) -> str:
    actor = row.record.actor
    name = actor.name or actor.id or "System"
    return f"{name} (API key)" if actor.kind == "api_key" else name


def _action(row: AccessEntry, _names: Names) -> str:
    text = "Sent" if row.record.resource_kind == "webhook_endpoint" else humanize(row.record.action)
    return text if row.count == 1 else f"{text} {row.count} times"


def _record(row: AccessEntry, names: Names) -> Link:
    found: Any = names
    texts: AccessNames = found
    return Link(texts.describe(row.record), texts.path_of(row.record))


def _record_names(row: AccessEntry, names: Names) -> list[str]:
    found: Any = names
    texts: AccessNames = found
    return texts.names_of(row.record)


def _record_ids(row: AccessEntry, _names: Names) -> list[str]:
    record = row.record
    single = [record.resource_id] if record.resource_id else []
    return [str(each) for each in (*single, *(record.resource_ids or ()))]


def _range(row: AccessEntry, _names: Names) -> str | None:
    record = row.record
    return f"{record.first_id} to {record.last_id}" if record.first_id else None


COLUMNS = (
    Column("at", "When", "datetime", path="record.accessed_at", sort="at"),
    Column("who", "Who", "text", _who),
    Column("action", "Action", "text", _action),
    Column("record", "Record", "link", _record),
)
FILE_COLUMNS = (
    Column("names", "Names", "tags", _record_names),
    Column("actor_id", "Person or key ID", "text", path="record.actor.id"),
    Column("record_ids", "Record IDs", "tags", _record_ids),
    Column("range", "All IDs from and to", "text", _range),
    Column("query", "Query", "text", path="record.query"),
    Column("request_id", "Request ID", "text", path="record.request_id"),
)
FILTERS = (
    RecordFilter("record", "Participant or invoice", "participant_or_invoice", lambda found: {"record": found}),
    RecordFilter(
        "person",
        "Person or API key",
        "person",
        lambda found: {"person": str(found)},
        values_of_text=lambda text: {"person_name": text},
    ),
    ChoiceFilter("action", "Action", ACTIONS, lambda choice: {"action": choice}),
    ChoiceFilter("actor", "Made by", ACTORS, lambda choice: {"actor": choice}, "Anyone"),
    day_filter("Date", PAST_PRESETS),
)
ACCESS_LOG = ListDefinition(
    kind="access-log",
    title="Access log",
    one="entry",
    many="entries",
    rows=AccessSource(),
    columns=COLUMNS,
    filters=FILTERS,
    sort="-at",
    empty="There are no entries yet. They appear about a second after somebody opens a participant or an invoice.",
    views=(
        BuiltInView("Read by people", {"actor": "user"}),
        BuiltInView("Read by the API", {"actor": "api_key"}),
        BuiltInView("Today", {"date": "today"}),
    ),
    load_names=load_names,
    load_file_names=load_file_names,
    page_path=f"{PREFIX}/settings/access",
    section="access",
    role="owner",
    download_role="owner",
    file_columns=FILE_COLUMNS,
)

pages = Pages()


add_list(pages, ACCESS_LOG, "settings/access_log.html")
