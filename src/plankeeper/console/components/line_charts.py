"""Line charts of amounts over time: from values to the geometry that `line_chart` of `charts.html` draws."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import NamedTuple

from plankeeper.console.components.chart_geometry import Number, Row, Scale, Tick, Tone, ticks_between
from plankeeper.console.components.charts import CHARACTER_WIDTH, MAX_LABELS, MAX_LABELS_ON_PHONES, PLOT_HEIGHT, Unit
from plankeeper.core.formatting import format_date

TOP = 8  # above the highest value
MAX_X_ON_PHONES = 86.0  # per cent: a label that begins later wouldn't end in the plot


class Series(NamedTuple):
    """A line through values at the ends of days. Stepped: each value holds from the beginning of its day."""

    name: str
    tone: Tone
    values: Sequence[tuple[date, Number]]
    is_stepped: bool = False
    is_dashed: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """A line as the data of an SVG path, with `x` in per cent and `y` in pixels."""

    name: str
    tone: Tone
    path: str
    is_dashed: bool


class Mark(NamedTuple):
    """A label at `x` per cent. Phones omit a minor one."""

    x: float
    label: str
    is_minor: bool


class Target(NamedTuple):
    """The part of the plot that shows a tooltip, in per cent."""

    x: float
    width: float
    tooltip: str


@dataclass(frozen=True, slots=True)
class LineChart:
    """Lines over the days of a period, and the table of their values. `today` is in per cent; null outside of it."""

    id: str
    title: str
    summary: str
    height: int
    axis_width: int
    ticks: Sequence[Tick]
    lines: Sequence[Line]
    marks: Sequence[Mark]
    targets: Sequence[Target]
    today: float | None
    heads: Sequence[str]
    rows: Sequence[Row]


class Period(NamedTuple):
    """The first and the last day of a chart."""

    first: date
    last: date

    def x_after(self, day: date) -> float:
        """The position of the end of a day, in per cent."""
        return round(100 * ((day - self.first).days + 1) / ((self.last - self.first).days + 1), 2)

    def x_before(self, day: date) -> float:
        """The position of the beginning of a day."""
        return self.x_after(day - timedelta(days=1)) if day > self.first else 0.0


def line_chart(
    id_: str,
    title: str,
    period: Period,
    series: Sequence[Series],
    *,
    unit: Unit,
    today: date,
    summary: str,
    heads: Sequence[str],
    rows: Sequence[tuple[date, Row]],
) -> LineChart:
    """Lines over time. Each row of the table is also the tooltip of the days up to its own."""
    values = [value for each in series for _, value in each.values]
    axis = ticks_between(min(values, default=0), max(values, default=0))
    scale = Scale(axis[0], axis[-1], PLOT_HEIGHT, TOP)
    ticks = [Tick(scale.y(each), unit.format_tick(each), each == 0) for each in axis]
    return LineChart(
        id=id_,
        title=title,
        summary=summary,
        height=TOP + PLOT_HEIGHT,
        axis_width=round(CHARACTER_WIDTH * max(len(each.label) for each in ticks)) + 10,
        ticks=ticks,
        lines=[
            Line(each.name, each.tone, _path(each, period, scale), each.is_dashed) for each in series if each.values
        ],
        marks=_month_marks(period),
        targets=_targets(period, heads, rows),
        today=period.x_after(today) if period.first <= today <= period.last else None,
        heads=heads,
        rows=[row for _, row in rows],
    )


def _path(series: Series, period: Period, scale: Scale) -> str:
    """`M0 168L8.49 120`; stepped `M0 168V120H25V90H100`."""
    points = [(period.x_after(day), scale.y(value)) for day, value in series.values]
    if not series.is_stepped:
        return "M" + "L".join(f"{x:g} {y:g}" for x, y in points)
    steps = [(period.x_before(day), y) for (day, _), (_, y) in zip(series.values, points, strict=True)]
    return f"M{steps[0][0]:g} {steps[0][1]:g}" + "".join(f"H{x:g}V{y:g}" for x, y in steps[1:]) + "H100"


def _month_marks(period: Period) -> list[Mark]:
    """The beginnings of months, or of weeks in a short period, as far as their labels fit."""
    days = [period.first + timedelta(days=number) for number in range((period.last - period.first).days + 1)]
    starts = [each for each in days if each.day == 1] if len(days) > 60 else days[::7]
    step = max(1, -(-len(starts) // MAX_LABELS))
    phone_step = step * -(-len(starts) // (step * MAX_LABELS_ON_PHONES))
    marks = list[Mark]()
    for index, each in enumerate(starts[::step]):
        x = period.x_before(each)
        is_minor = index * step % phone_step != 0 or x > MAX_X_ON_PHONES
        marks.append(Mark(x, _short(each, is_day=len(days) <= 60), is_minor))
    return marks


def _short(day: date, *, is_day: bool) -> str:
    """`21 Nov`, or `Nov 26` for a month."""
    number, month, year = format_date(day).split(" ")
    return f"{number} {month}" if is_day else f"{month} {year[-2:]}"


def _targets(period: Period, heads: Sequence[str], rows: Sequence[tuple[date, Row]]) -> list[Target]:
    targets, start = list[Target](), 0.0
    for day, row in rows:
        end = period.x_after(day)
        parts = [f"{head} {cell.text}" for head, cell in zip(heads[1:], row.cells, strict=True) if cell.text]
        targets.append(Target(start, round(end - start, 2), f"{row.name}: {', '.join(parts)}"))
        start = end
    return targets
