"""The arguments and the results of filters of lists."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Literal, NamedTuple
from zoneinfo import ZoneInfo

from plankeeper.console.record_picker import RecordPicker
from plankeeper.console.routing import PageRequest

Params = Mapping[str, str]
FilterKind = Literal["text", "choice", "date_range", "amount_range", "record", "flag", "hidden"]


class FilterContext(NamedTuple):
    """The request, and today in the time zone of the console."""

    request: PageRequest
    today: date

    @property
    def zone(self) -> ZoneInfo:
        return self.request.settings.time_zone


@dataclass(slots=True)
class ParsedFilter:
    """A parsed filter of a request.

    `values`: by field of the list's SQL. `chip`: the filter in words; null if it isn't set. `errors`: by parameter.
    `params`: its parameters as links have them, if they differ from those of the request. `picker`: the field of a
    record. `choices`: the values to choose from with their labels.
    """

    values: dict[str, Any] = field(default_factory=dict[str, Any])
    chip: str | None = None
    errors: dict[str, str] = field(default_factory=dict[str, str])
    params: Params | None = None
    picker: RecordPicker | None = None
    choices: Params = field(default_factory=dict[str, str])
