"""Charts: from values to the geometry that `components/charts.html` draws."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from plankeeper.console.components.chart_geometry import (
    BarList,
    Cell,
    Chart,
    Column,
    ListedBar,
    Number,
    Row,
    Scale,
    Segment,
    Series,
    Tick,
    Tone,
    ticks_between,
)

PLOT_HEIGHT = 168
MIN_HEIGHT = 2  # of a value that isn't zero
MAX_LABELS = 7  # below the bars
MAX_LABELS_ON_PHONES = 4
MAX_ROWS_WITH_ZEROS = 31  # of a chart's table
MAX_VALUE_LABELS = 6  # charts with more bars show values only in tooltips and in the table
CHARACTER_WIDTH = 7.5  # of the labels of the axis
SCALES = ((Decimal(10) ** 12, "tn"), (Decimal(10) ** 9, "bn"), (Decimal(10) ** 6, "m"), (Decimal(10) ** 3, "k"))


@dataclass(frozen=True, slots=True)
class Unit:
    """The unit of numbers, such as `Unit("invoice", "invoices")`, or dollars (`MONEY`)."""

    singular: str
    plural: str
    is_money: bool = False

    def format(self, value: Number) -> str:
        """`12 invoices` or `$1,234.50`."""
        text = self.format_value(value)
        return text if self.is_money else f"{text} {self.singular if value == 1 else self.plural}"

    def format_value(self, value: Number) -> str:
        """`12` or `$1,234.50`."""
        return f"{_sign(value)}${abs(value):,.2f}" if self.is_money else f"{value:,}"

    def format_short(self, value: Number) -> str:
        """About three digits: `12`, `$950`, `$31.2k`."""
        decimals = 2 - Decimal(value).adjusted() if value else 0
        return self.format_tick(round(Decimal(value), min(decimals, 0)))

    def format_tick(self, value: Number) -> str:
        """`12`, `1.5k` or `$2m`."""
        scale, suffix = next((each for each in SCALES if abs(value) >= each[0]), (Decimal(1), ""))
        digits = f"{(abs(Decimal(value)) / scale).normalize():,f}"
        return f"{_sign(value)}{'$' if self.is_money else ''}{digits}{suffix}"


MONEY = Unit("dollar", "dollars", is_money=True)


@dataclass(frozen=True, slots=True)
class Bar:
    """One value. `label` is short, such as `21 Nov`; `name` is the complete one for tooltips and tables."""

    label: str
    value: Number
    url: str | None = None
    name: str = ""
    tone: Tone = "accent"


@dataclass(frozen=True, slots=True)
class StackedBar:
    """A value for each series, none of them negative; `urls` lead to the parts, and `url` to all of them together."""

    label: str
    values: Sequence[Number]
    urls: Sequence[str | None]
    url: str | None = None
    name: str = ""


@dataclass(frozen=True, slots=True)
class _Part:
    value: Number
    tone: Tone
    series: int
    url: str | None
    name: str


@dataclass(frozen=True, slots=True)
class _Stack:
    """The parts of one bar, from the bottom up."""

    label: str
    name: str
    url: str | None
    parts: Sequence[_Part]

    @property
    def total(self) -> Number:
        return sum((each.value for each in self.parts), start=0)

    @property
    def has_links(self) -> bool:
        """Whether its parts lead to lists of their own."""
        return any(each.url and each.name for each in self.parts)


def bar_chart(title: str, bars: Sequence[Bar], *, unit: Unit, head: str) -> Chart:
    """Vertical bars. `head` is the heading of the table's first column, such as `Week`."""
    stacks = [
        _Stack(each.label, each.name or each.label, each.url, [_Part(each.value, each.tone, 0, each.url, "")])
        for each in bars
    ]
    rows = [Row(each.name, [Cell(unit.format_value(each.total), each.url)]) for each in stacks]
    heads = (head, "Amount" if unit.is_money else unit.plural.capitalize())
    return _chart(title, stacks, unit, series=(), heads=heads, rows=rows)


def stacked_bar_chart(
    title: str, series: Sequence[Series], bars: Sequence[StackedBar], *, unit: Unit, head: str
) -> Chart:
    """Vertical bars with a part for each series, from the bottom up. Series without any value are left out.

    A table of more than 31 bars leaves out those of 0: nobody reads an hour minute by minute to find three requests.
    """
    used = [(index, each) for index, each in enumerate(series) if any(bar.values[index] for bar in bars)]
    stacks = _stacks(bars, used)
    rows = [
        Row(
            each.name,
            [
                *(Cell(unit.format_value(part.value), part.url) for part in each.parts),
                Cell(unit.format_value(each.total), each.url),
            ],
        )
        for each in stacks
        if each.total or len(stacks) <= MAX_ROWS_WITH_ZEROS
    ]
    heads = (head, *(each.name for _, each in used), "Total")
    return _chart(title, stacks, unit, series=used, heads=heads, rows=rows)


def bar_list(title: str, bars: Sequence[Bar], *, unit: Unit) -> BarList:
    """Horizontal bars in the given order. A negative value has no bar."""
    highest = max((each.value for each in bars), default=0)
    listed = [
        ListedBar(
            each.name or each.label,
            unit.format_value(each.value),
            each.url,
            round(100 * float(max(each.value, 0) / highest), 2) if highest > 0 else 0,
            each.tone,
        )
        for each in bars
    ]
    return BarList(title, not any(each.value for each in bars), listed)


def _stacks(bars: Sequence[StackedBar], series: Sequence[tuple[int, Series]]) -> list[_Stack]:
    return [
        _Stack(
            bar.label,
            bar.name or bar.label,
            bar.url,
            [_Part(bar.values[index], each.tone, index, bar.urls[index], each.name) for index, each in series],
        )
        for bar in bars
    ]


def _chart(
    title: str,
    stacks: Sequence[_Stack],
    unit: Unit,
    *,
    series: Sequence[tuple[int, Series]],
    heads: Sequence[str],
    rows: Sequence[Row],
) -> Chart:
    totals = [each.total for each in stacks]
    values = ticks_between(min(totals, default=0), max(totals, default=0))
    top = 22  # for the values above the bars
    scale = Scale(values[0], values[-1], PLOT_HEIGHT, top)
    ticks = [Tick(scale.y(each), unit.format_tick(each), each == 0) for each in values]
    return Chart(
        id=f"c{zlib.crc32(title.encode()) & 0xFFFF:x}",
        title=title,
        summary=_summarize(title, stacks, unit),
        is_empty=not any(totals),
        height=top + PLOT_HEIGHT,
        axis_width=round(CHARACTER_WIDTH * max(len(each.label) for each in ticks)) + 10,
        ticks=ticks,
        columns=[_column(stacks, index, unit, scale) for index in range(len(stacks))],
        series=series,
        heads=heads,
        rows=rows,
    )


def _column(stacks: Sequence[_Stack], index: int, unit: Unit, scale: Scale) -> Column:
    stack, count = stacks[index], len(stacks)
    pitch = 100 / count
    label_step = -(-count // MAX_LABELS)
    phone_step = label_step * -(-count // (label_step * MAX_LABELS_ON_PHONES))
    share = 0.45 if count <= MAX_VALUE_LABELS else 0.7
    segments = _segments(stack, unit, scale, x=pitch * (index + (1 - share) / 2), width=pitch * share)
    return Column(
        x=round(pitch * index, 2),
        width=round(pitch, 2),
        center=round(pitch * (index + 0.5), 2),
        label=stack.label if index % label_step == 0 else "",
        is_minor=index % phone_step != 0,
        url=stack.url,
        tooltip=_tooltip(stack, unit),
        value_label=unit.format_short(stack.total) if stack.total and count <= MAX_VALUE_LABELS else "",
        value_y=min((each.y for each in segments), default=scale.y(0)) - 6,
        segments=segments,
        has_parts=stack.has_links,
    )


def _tooltip(stack: _Stack, unit: Unit) -> str:
    """`21 Nov 2026: 12 requests`; with the parts if they have no tooltips of their own."""
    text = f"{stack.name}: {unit.format(stack.total)}"
    parts = [f"{each.name}: {unit.format_value(each.value)}" for each in stack.parts if each.value]
    return text if stack.has_links or len(parts) < 2 else f"{text}. {'. '.join(parts)}"


def _segments(stack: _Stack, unit: Unit, scale: Scale, *, x: float, width: float) -> list[Segment]:
    segments: list[Segment] = []
    start: Number = 0
    for part in stack.parts:
        if not part.value:
            continue
        top, bottom = sorted((scale.y(start), scale.y(start + part.value)))
        height = max(bottom - top, MIN_HEIGHT)
        name = f"{stack.name}, {part.name}" if part.name else stack.name
        tooltip = f"{name}: {unit.format(part.value)}"
        y = bottom - height if part.value > 0 else top
        segments.append(
            Segment(
                round(x, 2), round(width, 2), round(y, 2), round(height, 2), part.tone, part.series, part.url, tooltip
            )
        )
        start += part.value
    return segments


def _summarize(title: str, stacks: Sequence[_Stack], unit: Unit) -> str:
    """`Invoices received: 43 invoices in total, the most in Week from 2 Nov 2026 (12 invoices)`."""
    if not any(each.total for each in stacks):
        return f"{title}: {unit.format(0)}"
    total: Number = sum((each.total for each in stacks), start=0)
    highest = max(stacks, key=lambda each: each.total)
    return f"{title}: {unit.format(total)} in total; highest: {highest.name}, {unit.format(highest.total)}"


def _sign(value: Number) -> str:
    return "-" if value < 0 else ""
