"""Texts of access records: the names of the records, and the filters of lists as the lists show them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID
from zoneinfo import ZoneInfo

from plankeeper.access.access_log.schemas import AccessRecord
from plankeeper.console.activity.list import ACTIVITY
from plankeeper.console.components.labels import field_label
from plankeeper.console.components.record_picker import load_record_names
from plankeeper.console.invoices.list import INVOICES
from plankeeper.console.lists.definition import ListDefinition
from plankeeper.console.lists.query import parse_filters, parse_list_query
from plankeeper.console.participants.list import PARTICIPANTS
from plankeeper.console.shell.forms import Form
from plankeeper.console.shell.routing import PREFIX, PageRequest
from plankeeper.core.context import AccessedKind
from plankeeper.core.formatting import format_datetime
from plankeeper.core.ids import parse_uuid
from plankeeper.resources.invoices.store import get_many_without_lines
from plankeeper.webhooks import endpoint_store

MAX_NAMES = 3  # of the records of a list, in a line of the page
MAX_FILE_NAMES = 100  # in a line of a file
MANY: Mapping[AccessedKind, str] = {
    "participant": "participants",
    "invoice": "invoices",
    "provider": "providers",
    "webhook_endpoint": "webhooks",
}
PATHS: Mapping[AccessedKind, str] = {
    "participant": f"{PREFIX}/participants",
    "invoice": f"{PREFIX}/invoices",
    "provider": f"{PREFIX}/providers",
    "webhook_endpoint": f"{PREFIX}/settings/webhooks",
}
LISTS: Mapping[str, ListDefinition] = {each.kind: each for each in (ACTIVITY, INVOICES, PARTICIPANTS)}
# Parameters for the position and the layout of a page of a list.
PAGING = {"after", "before", "limit", "list", "offset", "size", "sort", "view"}
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(slots=True)
class AccessNames:
    """The names of records by id, and the filters in words by query."""

    zone: ZoneInfo
    max_names: int
    names: dict[UUID, str] = field(default_factory=dict[UUID, str])
    filters: dict[str, str] = field(default_factory=dict[str, str])

    def describe(self, record: AccessRecord) -> str:
        """`Participant Ada Ng`, `24 participants, status: Active`."""
        kind = record.resource_kind
        if kind == "webhook_endpoint":
            return self._describe_webhook(record)
        if record.resource_id:
            return f"{kind.capitalize()} {self._name(record.resource_id)}"
        if record.first_id and record.last_id:
            ends = f"{self._name(record.first_id)} to {self._name(record.last_id)}"
            return f"{MANY[kind].capitalize()} in order of ID, from {ends}"
        ids = record.resource_ids or []
        if len(ids) > MAX_NAMES:
            text = f"{len(ids)} {MANY[kind]}"
        else:
            text = f"{MANY[kind].capitalize() if len(ids) > 1 else kind.capitalize()} {self._join(ids)}"
        filters = self.filters.get(record.query or "")
        return f"{text} ({filters})" if filters else text

    def path_of(self, record: AccessRecord) -> str | None:
        """The page of a single record, if the record exists."""
        id_ = record.resource_id
        return f"{PATHS[record.resource_kind]}/{id_}" if id_ and id_ in self.names else None

    def names_of(self, record: AccessRecord) -> list[str]:
        """The names of the records, at most `max_names`."""
        ids = [record.resource_id] if record.resource_id else record.resource_ids or []
        names = [self._name(each) for each in ids[: self.max_names]]
        return [*names, f"and {len(ids) - len(names)} more"] if len(ids) > len(names) else names

    def _describe_webhook(self, record: AccessRecord) -> str:
        values = dict(read_query(record.query))
        text = f"Webhook {self._name(record.resource_id) if record.resource_id else ''}"
        if values.get("cause") == "replayed":
            since = datetime.fromisoformat(values["since"]) if "since" in values else None
            return f"{text}: events since {format_datetime(since, self.zone)}" if since else f"{text}: past events"
        return f"{text}: one event" if values.get("cause") == "retried" else f"{text}: all changes from then on"

    def _join(self, ids: Sequence[UUID]) -> str:
        return ", ".join(self._name(each) for each in ids)

    def _name(self, id_: UUID) -> str:
        return self.names.get(id_) or "(deleted)"


def read_query(query: str | None) -> list[tuple[str, str]]:
    """The parameters of a stored query, which is decoded."""
    pairs = (each.partition("=") for each in (query or "").split("&"))
    return [(name, value) for name, is_pair, value in pairs if is_pair]


async def load_access_names(
    request: PageRequest, records: Sequence[AccessRecord], *, all_listed: bool = False
) -> AccessNames:
    """Load the names for the texts of records. `all_listed`: also the names of the records of long lists."""
    found = AccessNames(request.settings.time_zone, MAX_FILE_NAMES if all_listed else MAX_NAMES)
    ids: dict[AccessedKind, set[UUID]] = {each: set() for each in MANY}
    for each in records:
        listed = each.resource_ids or []
        shown = listed[: found.max_names] if all_listed or len(listed) <= MAX_NAMES else []
        ids[each.resource_kind] |= {id_ for id_ in (each.resource_id, each.first_id, each.last_id, *shown) if id_}
    queries = {each.query for each in records if each.query}
    found.names = await _load_names(request, ids, {value for each in queries for value in _ids_in(each)})
    for each in queries:
        found.filters[each] = await _describe_filters(request, each, found.names)
    return found


async def _load_names(
    request: PageRequest, ids: Mapping[AccessedKind, set[UUID]], in_queries: Iterable[UUID]
) -> dict[UUID, str]:
    """The names of participants and providers, the numbers of invoices and the URLs of webhooks that exist."""
    place = (request.db, request.plan_manager_id)
    people = await load_record_names(request, [*ids["participant"], *in_queries], [*ids["provider"], *in_queries])
    invoices = await get_many_without_lines(*place, list(ids["invoice"])) if ids["invoice"] else []
    webhooks = ids["webhook_endpoint"]
    endpoints = await endpoint_store.get_many(*place, list(webhooks)) if webhooks else []
    return {
        **people,
        **{each.id: each.invoice_number or "No number" for each in invoices},
        **{each.id: each.url for each in endpoints},
    }


def _ids_in(query: str) -> list[UUID]:
    return [id_ for each in _UUID.findall(query) if (id_ := parse_uuid(each))]


async def _describe_filters(request: PageRequest, query: str, names: Mapping[UUID, str]) -> str:
    """The filters of a list in words; empty if it has none."""
    values = dict(read_query(query))
    if not values:
        return query  # erased
    if "selected" in values:
        return "selected rows"
    definition = LISTS.get(values.get("list", ""))
    if definition is None:
        parts = [f"{field_label(name)}: {_words(text, names)}" for name, text in values.items() if name not in PAGING]
        return "; ".join(parts)
    fields = Form(list(values.items()))
    _, filters = await parse_filters(request, parse_list_query(definition, fields))
    chips = [parsed.chip for parsed in filters.by_name.values() if parsed.chip]
    return "; ".join(chips if definition is not ACTIVITY else ["in Activity", *chips])


def _words(text: str, names: Mapping[UUID, str]) -> str:
    """A value in which ids are names, where they are known."""

    def name_of(found: re.Match[str]) -> str:
        return names.get(UUID(found[0])) or "an ID"

    return _UUID.sub(name_of, text)
