"""The filters of a list: from the query of a page to the values of the list's SQL, with chips and messages."""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

from plankeeper.console.components.record_picker import (
    PickerKind,
    RecordPicker,
    pick_record,
    record_label,
)
from plankeeper.console.lists.dates import DatePreset, DateRange, TimeRange, day_bounds
from plankeeper.console.shell.forms import Form, parse_amount
from plankeeper.console.shell.routing import PageRequest
from plankeeper.core.dates import DateError, parse_date
from plankeeper.core.formatting import format_date, format_datetime, format_money
from plankeeper.core.ids import parse_uuid
from plankeeper.database.lists.filtered_list import FilteredList

Params = Mapping[str, str]
Choices = Mapping[str, str]  # labels by value
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
    choices: Choices = field(default_factory=dict[str, str])


class _Length(NamedTuple):
    name: str
    duration: timedelta


_TIME_FORMS = {
    "%Y%m%dT%H%MZ": _Length("minute", timedelta(minutes=1)),
    "%Y%m%dT%HZ": _Length("hour", timedelta(hours=1)),
}


def time_param(start: datetime, duration: timedelta) -> str:
    """The value of a filter of `time_filter`."""
    return next(start.astimezone(UTC).strftime(form) for form, each in _TIME_FORMS.items() if each.duration == duration)


MAX_TEXT_LENGTH = 255


@dataclass(frozen=True, slots=True)
class SingleFilter:
    """A filter with one parameter, its name."""

    name: str
    label: str

    @property
    def params(self) -> tuple[str, ...]:
        return (self.name,)


TextValues = Callable[[PageRequest, str], Awaitable[Mapping[str, object]]]


@dataclass(frozen=True, slots=True)
class TextFilter(SingleFilter):
    """A text. `values_of` returns the values of the SQL's fields for it."""

    values_of: TextValues
    placeholder: str = ""
    is_search: bool = False  # shown before the other filters
    kind: ClassVar[FilterKind] = "text"

    async def parse(self, params: Params, context: FilterContext) -> ParsedFilter:
        text = params.get(self.name, "")
        if len(text) > MAX_TEXT_LENGTH:
            return ParsedFilter(errors={self.name: f"must have at most {MAX_TEXT_LENGTH} characters"})
        if not text:
            return ParsedFilter()
        return ParsedFilter(dict(await self.values_of(context.request, text)), f"{self.label}: {text}")


@dataclass(frozen=True, slots=True)
class ChoiceFilter(SingleFilter):
    """One of several values, which `values_of` translates to the values of the SQL's fields.

    `load_choices` returns choices that depend on the request, and `list_offered` those of many choices that the form
    offers, both given the chosen value.
    """

    choices: Choices
    values_of: Callable[[str], Mapping[str, object]]
    any_label: str = "Any"
    list_offered: Callable[[str], Choices] | None = None
    load_choices: Callable[[PageRequest, str], Awaitable[Choices]] | None = None
    is_search: ClassVar[bool] = False
    kind: ClassVar[FilterKind] = "choice"

    async def parse(self, params: Params, context: FilterContext) -> ParsedFilter:
        choice = params.get(self.name, "")
        choices = await self.load_choices(context.request, choice) if self.load_choices else self.choices
        offered = self.list_offered(choice) if self.list_offered else choices
        if not choice:
            return ParsedFilter(choices=offered)
        if choice not in choices:
            return ParsedFilter(errors={self.name: "must be one of the choices"}, choices=offered)
        return ParsedFilter(dict(self.values_of(choice)), f"{self.label}: {choices[choice]}", choices=offered)


class LinkValue(NamedTuple):
    """The values of the SQL's fields for the text of a link, and its chip."""

    values: Mapping[str, object]
    chip: str


@dataclass(frozen=True, slots=True)
class LinkFilter(SingleFilter):
    """A filter that links of other pages set, such as a record's id. The form keeps its value in a hidden field.

    `read` returns null for a text that it doesn't know, which is an `error`.
    """

    read: Callable[[FilterContext, str], Awaitable[LinkValue | None]]
    error: str = "is unknown"
    is_search: ClassVar[bool] = False
    kind: ClassVar[FilterKind] = "hidden"

    async def parse(self, params: Params, context: FilterContext) -> ParsedFilter:
        text = params.get(self.name, "")[:MAX_TEXT_LENGTH]
        if not text:
            return ParsedFilter()
        found = await self.read(context, text)
        if found is None:
            return ParsedFilter(errors={self.name: self.error})
        return ParsedFilter(dict(found.values), found.chip)


def time_filter(label: str) -> LinkFilter:
    """A minute, such as `20261123T1413Z`, or an hour, such as `20261123T14Z`: the bars of charts lead to it.

    Its value `time` is a TimeRange.
    """

    async def read(context: FilterContext, text: str) -> LinkValue | None:
        for form, length in _TIME_FORMS.items():
            with suppress(ValueError, OverflowError):
                start = datetime.strptime(text, form).replace(tzinfo=UTC)
                if start.strftime(form) != text:  # an hour would be read as a minute
                    continue
                chip = f"{label}: {length.name} from {format_datetime(start, context.zone)}"
                return LinkValue({"time": TimeRange(start, start + length.duration)}, chip)
        return None

    return LinkFilter("time", label, read, "must be a minute such as 20261123T1413Z, or an hour such as 20261123T14Z")


@dataclass(frozen=True, slots=True)
class FlagFilter(SingleFilter):
    """A condition that is set or not. Its value in the SQL is true, or what `load_value` returns."""

    field: str
    load_value: Callable[[PageRequest], Awaitable[object]] | None = None
    is_search: ClassVar[bool] = False
    kind: ClassVar[FilterKind] = "flag"

    async def parse(self, params: Params, context: FilterContext) -> ParsedFilter:
        if not params.get(self.name):
            return ParsedFilter()
        value = await self.load_value(context.request) if self.load_value else True
        return ParsedFilter({self.field: value}, self.label)


@dataclass(frozen=True, slots=True)
class DateRangeFilter:
    """A first and a last day, or a preset. Days that are set outweigh the preset.

    `values_of` translates the range, in a time zone, to the values of the SQL's fields.
    """

    name: str  # of the preset
    label: str
    first_name: str
    last_name: str
    presets: Mapping[str, DatePreset]
    values_of: Callable[[DateRange, ZoneInfo], Mapping[str, object]]
    starts_today: bool = False  # if only the last day is set, and hasn't passed
    is_search: ClassVar[bool] = False
    kind: ClassVar[FilterKind] = "date_range"

    @property
    def params(self) -> tuple[str, ...]:
        return (self.name, self.first_name, self.last_name)

    async def parse(self, params: Params, context: FilterContext) -> ParsedFilter:
        days, errors = dict[str, date](), dict[str, str]()
        for name, label in ((self.first_name, "From"), (self.last_name, "To")):
            try:
                if text := params.get(name):
                    days[name] = parse_date(text)
            except DateError:
                errors[name] = f"{self.label}: “{label}” isn’t a date"
        if errors:
            return ParsedFilter(errors=errors)
        if days:
            own = {name: params[name] for name in days}
            return self._parse_days(DateRange(days.get(self.first_name), days.get(self.last_name)), own, context)
        preset = params.get(self.name, "")
        if preset and preset not in self.presets:
            return ParsedFilter(errors={self.name: "must be one of the choices"})
        if not preset:
            return ParsedFilter()
        values = self.values_of(self.presets[preset].range_of(context.today), context.zone)
        return ParsedFilter(dict(values), f"{self.label}: {self.presets[preset].label.lower()}")

    def _parse_days(self, days: DateRange, own: Params, context: FilterContext) -> ParsedFilter:
        if days.first and days.last and days.last < days.first:
            return ParsedFilter(errors={self.last_name: f"{self.label}: “To” is before “From”"})
        chip = _range_text(self.label, days)
        if self.starts_today and days.first is None and days.last and days.last >= context.today:
            days = days._replace(first=context.today)
        return ParsedFilter(dict(self.values_of(days, context.zone)), chip, params=own)


def _range_text(label: str, days: DateRange) -> str:
    if days.first and days.last:
        return f"{label}: {format_date(days.first)} – {format_date(days.last)}"
    if days.first:
        return f"{label}: from {format_date(days.first)}"
    return f"{label} by {format_date(days.last or date.max)}"


@dataclass(frozen=True, slots=True)
class AmountRangeFilter:
    """A lowest and a highest amount in dollars, for two fields of the SQL."""

    label: str
    min_name: str
    max_name: str
    min_field: str
    max_field: str
    is_search: ClassVar[bool] = False
    kind: ClassVar[FilterKind] = "amount_range"

    @property
    def name(self) -> str:
        return self.min_name

    @property
    def params(self) -> tuple[str, ...]:
        return (self.min_name, self.max_name)

    async def parse(self, params: Params, _context: FilterContext) -> ParsedFilter:
        texts = {name: text for name in self.params if (text := params.get(name, ""))}
        amounts = {name: parse_amount(text) for name, text in texts.items()}
        errors = {name: "Enter an amount, like 1,000.50" for name, each in amounts.items() if each is None}
        if errors or not amounts:
            return ParsedFilter(errors=errors)
        low, high = amounts.get(self.min_name), amounts.get(self.max_name)
        if low is not None and high is not None and high < low:
            return ParsedFilter(errors={self.max_name: f"{self.label}: “To” is less than “From”"})
        values = {self.min_field: low, self.max_field: high}
        return ParsedFilter(
            {name: each for name, each in values.items() if each is not None},
            f"{self.label} {_amounts_text(low, high)}",
        )


def _amounts_text(low: Decimal | None, high: Decimal | None) -> str:
    if low is not None and high is not None:
        return f"{_short_money(low)} – {_short_money(high)}"
    return f"≥ {_short_money(low)}" if low is not None else f"≤ {_short_money(high or Decimal())}"


def _short_money(amount: Decimal) -> str:
    return format_money(amount).removesuffix(".00")


@dataclass(frozen=True, slots=True)
class RecordFilter:
    """A record, which the field of a record picker identifies by its name, its number or its id.

    `choices` are values that aren't records, such as `none`, with their labels and the values of the SQL's fields.
    `values_of_text` translates a text that no record has as its name, such as that of a person who left.
    """

    name: str
    label: str
    picker: PickerKind
    values_of: Callable[[UUID], Mapping[str, object]]
    choices: Mapping[str, tuple[str, Mapping[str, object]]] = field(default_factory=dict[str, Any])
    values_of_text: Callable[[str], Mapping[str, object]] | None = None
    is_search: ClassVar[bool] = False
    kind: ClassVar[FilterKind] = "record"

    @property
    def params(self) -> tuple[str, ...]:
        return (self.name, f"{self.name}_id")

    async def parse(self, params: Params, context: FilterContext) -> ParsedFilter:
        text = params.get(self.name, "")
        for name, (label, values) in self.choices.items():
            if text and text in (name, label):
                shown = RecordPicker(self.picker, self.name, label, takes_any_text=True)
                return ParsedFilter(dict(values), label, params={self.name: name}, picker=shown)
        if record_id := parse_uuid(text):
            return await self._parse_id(record_id, context)
        form = Form([(name, params[name]) for name in self.params if name in params])
        picker = await pick_record(context.request, self.picker, self.name, form)
        if picker.id:
            return self._chosen(picker.id, picker)
        if self.values_of_text and picker.is_unclear and not picker.candidates:
            values = dict(self.values_of_text(text))
            return ParsedFilter(values, f"{self.label}: {text}", picker=picker._replace(takes_any_text=True))
        errors = {self.name: picker.message} if picker.is_unclear else {}
        return ParsedFilter(errors=errors, picker=picker)

    async def _parse_id(self, record_id: UUID, context: FilterContext) -> ParsedFilter:
        """A record that was deleted is shown by its id: invoices keep it."""
        label = await record_label(context.request, self.picker, record_id)
        return self._chosen(record_id, RecordPicker(self.picker, self.name, label or str(record_id), record_id))

    def _chosen(self, record_id: UUID, picker: RecordPicker) -> ParsedFilter:
        values = dict(self.values_of(record_id))
        return ParsedFilter(values, f"{self.label}: {picker.text}", params={self.name: str(record_id)}, picker=picker)


ListFilter = TextFilter | ChoiceFilter | LinkFilter | FlagFilter | DateRangeFilter | AmountRangeFilter | RecordFilter


_NONE: Mapping[str, tuple[str, Mapping[str, object]]] = MappingProxyType({})

# The console's filters on fields that a list declares: their labels are those of the declaration.


def text_filter(rows: FilteredList, field: str, values_of: TextValues, *, is_search: bool = False) -> TextFilter:
    return TextFilter(field, rows.filters[field].label, values_of, is_search=is_search)


def choice_filter(
    rows: FilteredList,
    field: str,
    choices: Mapping[str, str],
    *,
    name: str = "",
    values_of: Callable[[str], Mapping[str, object]] | None = None,
) -> ChoiceFilter:
    """One value of a field. `values_of` is for choices that stand for other values, or for several fields."""
    return ChoiceFilter(
        name or field, rows.filters[field].label, choices, values_of or (lambda choice: {field: choice})
    )


def record_filter(
    rows: FilteredList, field: str, picker: PickerKind, choices: Mapping[str, tuple[str, Mapping[str, object]]] = _NONE
) -> RecordFilter:
    """The record with the id of a field. `choices` are as in RecordFilter."""
    return RecordFilter(picker, rows.filters[field].label, picker, lambda found: {field: str(found)}, choices)


def day_filter(label: str, presets: Mapping[str, DatePreset]) -> DateRangeFilter:
    """The days of a time. Its value `days` is a TimeRange."""

    def values_of(days: DateRange, zone: ZoneInfo) -> Mapping[str, object]:
        return {"days": day_bounds(days, zone)}

    return DateRangeFilter("date", label, "from", "to", presets, values_of)


def date_range_filter(
    rows: FilteredList,
    fields: tuple[str, str],
    params: tuple[str, str, str],
    presets: Mapping[str, DatePreset],
    *,
    starts_today: bool = False,
) -> DateRangeFilter:
    """The days between two fields, which are included. `params` are those of a preset, the first and the last day."""

    def values_of(days: DateRange, _zone: ZoneInfo) -> Mapping[str, object]:
        return {name: day for name, day in zip(fields, days, strict=True) if day}

    return DateRangeFilter(
        params[0], rows.filters[fields[0]].label, *params[1:], presets, values_of, starts_today=starts_today
    )


def time_range_filter(
    rows: FilteredList, fields: tuple[str, str], params: tuple[str, str, str], presets: Mapping[str, DatePreset]
) -> DateRangeFilter:
    """The same for two times: from the beginning of the first day to the end of the last one."""

    def values_of(days: DateRange, zone: ZoneInfo) -> Mapping[str, object]:
        return {name: time for name, time in zip(fields, day_bounds(days, zone), strict=True) if time}

    return DateRangeFilter(params[0], rows.filters[fields[0]].label, *params[1:], presets, values_of)


def amount_range_filter(rows: FilteredList, fields: tuple[str, str], params: tuple[str, str]) -> AmountRangeFilter:
    """The amounts between two fields, which are included."""
    return AmountRangeFilter(rows.filters[fields[0]].label, *params, *fields)
