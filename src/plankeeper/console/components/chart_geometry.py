"""The geometry of charts. Widths are percentages and heights are pixels, so that text keeps its size on every screen.

`components/charts.html` draws it as SVG with attributes and classes only, because the content security policy forbids
style attributes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

# Colour by meaning. Charts of several series also have a texture for each.
Tone = Literal["accent", "muted", "good", "warn", "bad"]
Number = Decimal | int

MAX_INTERVALS = 4  # between the ticks of an axis


@dataclass(frozen=True, slots=True)
class Series:
    """One kind of part of stacked bars."""

    name: str
    tone: Tone


@dataclass(frozen=True, slots=True)
class Tick:
    """A line of the grid; `y` in pixels from the top."""

    y: float
    label: str
    is_zero: bool


@dataclass(frozen=True, slots=True)
class Segment:
    """A rectangle: `x` and `width` in per cent, `y` and `height` in pixels. `series` counts from 0."""

    x: float
    width: float
    y: float
    height: float
    tone: Tone
    series: int
    url: str | None
    tooltip: str


@dataclass(frozen=True, slots=True)
class Column:
    """A bar with the space around it. `label` is empty where labels would overlap; phones omit a minor label too.

    `has_parts`: its segments have links and tooltips of their own; otherwise the bar has one of each.
    """

    x: float
    width: float
    center: float
    label: str
    is_minor: bool
    url: str | None
    tooltip: str
    value_label: str
    value_y: float
    segments: Sequence[Segment]
    has_parts: bool


@dataclass(frozen=True, slots=True)
class Cell:
    """A value of the table, and the list that it counts."""

    text: str
    url: str | None


@dataclass(frozen=True, slots=True)
class Row:
    """The values of one bar in the table."""

    name: str
    cells: Sequence[Cell]


@dataclass(frozen=True, slots=True)
class Chart:
    """Vertical bars, and the table of their values. `series` is empty if all bars are of one kind.

    `id` is short, because each part of a bar refers to it. `summary` describes the chart in one sentence to people who
    can't see it.
    """

    id: str
    title: str
    summary: str
    is_empty: bool
    height: int
    axis_width: int
    ticks: Sequence[Tick]
    columns: Sequence[Column]
    series: Sequence[tuple[int, Series]]
    heads: Sequence[str]
    rows: Sequence[Row]


@dataclass(frozen=True, slots=True)
class ListedBar:
    """A horizontal bar; `width` in per cent."""

    name: str
    text: str
    url: str | None
    width: float
    tone: Tone


@dataclass(frozen=True, slots=True)
class BarList:
    """Horizontal bars below each other, with names and values as text."""

    title: str
    is_empty: bool
    bars: Sequence[ListedBar]


@dataclass(frozen=True, slots=True)
class Scale:
    """From values to pixels from the top."""

    low: Decimal
    high: Decimal
    height: int
    top: int = 0

    def y(self, value: Number) -> float:
        return round(self.top + self.height * float((self.high - value) / (self.high - self.low)), 2)


def ticks_between(low: Number, high: Number) -> list[Decimal]:
    """Up to 6 round numbers (1, 2 or 5 times a power of ten apart) that include 0 and enclose both values."""
    lowest, highest = min(Decimal(low), Decimal(0)), max(Decimal(high), Decimal(0))
    least = max((highest - lowest) / MAX_INTERVALS, Decimal(1))
    magnitude = Decimal(10) ** least.adjusted()
    step = next(magnitude * each for each in (1, 2, 5, 10) if magnitude * each >= least)
    first, last = (lowest / step).to_integral_value("ROUND_FLOOR"), (highest / step).to_integral_value("ROUND_CEILING")
    return [step * each for each in range(int(first), max(int(last), 1) + 1)]
