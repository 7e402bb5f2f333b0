"""The list of API requests."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from plankeeper.access.api_keys import store as api_key_store
from plankeeper.access.request_log.schemas import LoggedFieldError, LoggedRequest
from plankeeper.console.lists.dates import LOG_PRESETS, DateRange, TimeRange, day_bounds
from plankeeper.console.lists.definition import BuiltInView, Column, ListDefinition, Names
from plankeeper.console.lists.filters import DateRangeFilter, LoadedChoiceFilter, TextFilter, TimeFilter
from plankeeper.console.logged_requests import KeptRequest, RequestSource
from plankeeper.console.routing import PageRequest

_STATUS = re.compile("[1-5]([0-9]{2}|xx)", re.IGNORECASE)
STATUSES = {"2xx": "Succeeded (2xx)", "4xx": "Rejected (4xx)", "5xx": "Failed (5xx)"}


class Outcome(NamedTuple):
    """The status of a response, with the code of its error and the fields that were invalid."""

    status: int
    error_code: str | None
    field_errors: Sequence[LoggedFieldError] = ()
    errors_total: int = 0

    def __str__(self) -> str:
        return f"{self.status} {self.error_code or ''}".rstrip()


async def load_keys(request: PageRequest, chosen: str) -> Mapping[str, str]:
    """The names of the API keys, and of a deleted one if it is chosen."""
    keys = await api_key_store.list_by_plan_manager(request.db, request.plan_manager_id)
    names = {str(each.id): f"{each.name} …{each.last_four}" for each in keys}
    return names | ({chosen: "deleted key"} if chosen and chosen not in names else {})


async def load_statuses(_request: PageRequest, chosen: str) -> Mapping[str, str]:
    """Groups of statuses, and a single one if it is chosen."""
    return STATUSES | ({chosen: STATUSES.get(chosen.lower(), chosen)} if _STATUS.fullmatch(chosen) else {})


async def load_names(request: PageRequest, rows: Sequence[Any]) -> Names:
    """The names of the API keys by id."""
    names: Names = await load_keys(request, "") if rows else {}
    return names


def list_field_errors(request: LoggedRequest) -> list[str]:
    """The fields that were invalid, each with its code."""
    more = request.errors_total - len(request.field_errors)
    return [*map(str, request.field_errors), *([f"{more:,} more"] if more > 0 else [])]


def _at(row: KeptRequest, _names: Names) -> datetime:
    return row.request.responded_at


def _key(row: KeptRequest, names: Names) -> str:
    return names.get(row.request.key_id) or "deleted key"


def _line(row: KeptRequest, _names: Names) -> str:
    return f"{row.request.method} {row.request.path}"


def _outcome(row: KeptRequest, _names: Names) -> Outcome:
    return Outcome(row.request.status, row.request.error_code, row.request.field_errors, row.request.errors_total)


def _field_errors(row: KeptRequest, _names: Names) -> list[str]:
    return list_field_errors(row.request)


def _duration(row: KeptRequest, _names: Names) -> str:
    return f"{row.request.duration_ms} ms"


def _user_agent(row: KeptRequest, _names: Names) -> str:
    return row.request.user_agent or ""


def _request_id(row: KeptRequest, _names: Names) -> str:
    return row.request.request_id


async def _text_values(_request: PageRequest, text: str) -> Mapping[str, object]:
    return {"words": text.lower().split()}


async def _id_values(_request: PageRequest, text: str) -> Mapping[str, object]:
    return {"request_id": text}


def _day_values(days: DateRange, zone: ZoneInfo) -> Mapping[str, object]:
    return {"days": day_bounds(days, zone)}


def _time_values(start: datetime, end: datetime) -> Mapping[str, object]:
    return {"time": TimeRange(start, end)}


FILE_COLUMNS = (
    Column("field_errors", "Invalid fields", "tags", _field_errors, is_default=False),
    Column("user_agent", "User agent", "text", _user_agent, is_default=False),
)
COLUMNS = (
    Column("at", "Time", "record_time", _at),
    Column("request", "Request", "code", _line),
    Column("status", "Status", "request_status", _outcome),
    Column("duration", "Duration", "text", _duration),
    Column("key", "API key", "text", _key),
    Column("request_id", "Request ID", "request_id", _request_id),
    *FILE_COLUMNS,
)
FILTERS = (
    TextFilter("text", "Method or path", _text_values, placeholder="PUT participants", is_search=True),
    LoadedChoiceFilter("key", "API key", load_keys, lambda choice: {"key": choice}),
    LoadedChoiceFilter("status", "Status", load_statuses, lambda choice: {"status": choice.rstrip("xX")}),
    DateRangeFilter("date", "Date", "from", "to", LOG_PRESETS, _day_values),
    TimeFilter("time", "Time", _time_values),
    TextFilter("request_id", "Request ID", _id_values),
)
REQUESTS = ListDefinition(
    kind="requests",
    title="Requests",
    one="request",
    many="requests",
    rows=RequestSource(),
    columns=COLUMNS,
    filters=FILTERS,
    sort="-at",
    empty="There are no recent API requests.",
    views=(BuiltInView("Rejected", {"status": "4xx"}), BuiltInView("Failed", {"status": "5xx"})),
    load_names=load_names,
    file_columns=FILE_COLUMNS,
)
