"""A filter for one minute or one hour, which the links of charts set."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import ClassVar, NamedTuple

from plankeeper.console.lists.filter_types import FilterContext, FilterKind, Params, ParsedFilter
from plankeeper.core.formatting import format_datetime


class _Length(NamedTuple):
    name: str
    duration: timedelta


_TIME_FORMS = {
    "%Y%m%dT%H%MZ": _Length("minute", timedelta(minutes=1)),
    "%Y%m%dT%HZ": _Length("hour", timedelta(hours=1)),
}


@dataclass(frozen=True, slots=True)
class TimeFilter:
    """A minute, such as `20261123T1413Z`, or an hour, such as `20261123T14Z`: the bars of charts lead to it.

    The form keeps it, without a visible field. `values_of` takes its beginning and its end.
    """

    name: str
    label: str
    values_of: Callable[[datetime, datetime], Mapping[str, object]]
    is_search: ClassVar[bool] = False
    kind: ClassVar[FilterKind] = "hidden"

    @property
    def params(self) -> tuple[str, ...]:
        return (self.name,)

    async def parse(self, params: Params, context: FilterContext) -> ParsedFilter:
        text = params.get(self.name, "")
        if not text:
            return ParsedFilter()
        for form, length in _TIME_FORMS.items():
            with suppress(ValueError, OverflowError):
                start = datetime.strptime(text, form).replace(tzinfo=UTC)
                if start.strftime(form) != text:  # an hour would be read as a minute
                    continue
                chip = f"{self.label}: {length.name} from {format_datetime(start, context.zone)}"
                return ParsedFilter(dict(self.values_of(start, start + length.duration)), chip)
        return ParsedFilter(
            errors={self.name: "must be a minute such as 20261123T1413Z, or an hour such as 20261123T14Z"}
        )


def time_param(start: datetime, duration: timedelta) -> str:
    """The value of a TimeFilter."""
    return next(start.astimezone(UTC).strftime(form) for form, each in _TIME_FORMS.items() if each.duration == duration)
