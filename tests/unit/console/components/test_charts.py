"""The geometry of charts, without a database."""

from decimal import Decimal

import pytest

from plankeeper.console.components.chart_geometry import (
    Chart,
    Number,
    Series,
    ticks_between,
)
from plankeeper.console.components.charts import (
    MONEY,
    PLOT_HEIGHT,
    Bar,
    StackedBar,
    Unit,
    bar_chart,
    bar_list,
    stacked_bar_chart,
)

INVOICES = Unit("invoice", "invoices")
SERIES = (Series("Paid", "good"), Series("On hold", "warn"), Series("Rejected", "bad"))


def chart_of(*values: Number, unit: Unit = INVOICES) -> Chart:
    bars = [Bar(f"{day} Nov", value, f"/list?day={day}") for day, value in enumerate(values, 1)]
    return bar_chart("Invoices per day", bars, unit=unit, head="Day")


@pytest.mark.parametrize(
    "low, high, ticks",
    [
        (0, 0, [0, 1]),
        (0, 1, [0, 1]),
        (0, 3, [0, 1, 2, 3]),
        (0, 7, [0, 2, 4, 6, 8]),
        (0, 43, [0, 20, 40, 60]),
        (0, 100, [0, 50, 100]),
        (-30, 50, [-40, -20, 0, 20, 40, 60]),
        (-5, -1, [-6, -4, -2, 0, 2]),
        (0, Decimal("0.02"), [0, 1]),
        (0, 10**15, [0, 5 * 10**14, 10**15]),
    ],
)
def test_ticks_are_round_and_enclose_the_values(low: Number, high: Number, ticks: list[int]) -> None:
    assert ticks_between(low, high) == ticks


@pytest.mark.parametrize(
    "value, count, money",
    [
        (0, "0", "$0"),
        (950, "950", "$950"),
        (1500, "1.5k", "$1.5k"),
        (20_000, "20k", "$20k"),
        (-2_000_000, "-2m", "-$2m"),
        (3 * 10**9, "3bn", "$3bn"),
        (10**15, "1,000tn", "$1,000tn"),
    ],
)
def test_labels_of_the_axis_are_short(value: int, count: str, money: str) -> None:
    assert (INVOICES.format_tick(value), MONEY.format_tick(value)) == (count, money)


@pytest.mark.parametrize(
    "value, text",
    [("0", "$0"), ("0.4", "$0"), ("949.6", "$950"), ("31204.10", "$31.2k"), ("-999999", "-$1m"), ("1234567", "$1.23m")],
)
def test_values_above_bars_have_about_three_digits(value: str, text: str) -> None:
    assert MONEY.format_short(Decimal(value)) == text


def test_values_have_their_unit() -> None:
    assert [INVOICES.format(value) for value in (0, 1, 1200)] == ["0 invoices", "1 invoice", "1,200 invoices"]
    assert [MONEY.format(Decimal(text)) for text in ("0", "-1234.5")] == ["$0.00", "-$1,234.50"]


@pytest.mark.parametrize("values", [(), (0,), (0, 0, 0)])
def test_a_chart_without_values_is_empty(values: tuple[int, ...]) -> None:
    assert chart_of(*values).is_empty
    assert chart_of(*values).summary == "Invoices per day: 0 invoices"


def test_a_bar_reaches_from_zero_to_its_value() -> None:
    chart = chart_of(4, 0, 2)
    baseline = next(each.y for each in chart.ticks if each.is_zero)
    heights = [[segment.height for segment in each.segments] for each in chart.columns]
    assert heights == [[PLOT_HEIGHT], [], [PLOT_HEIGHT / 2]]
    assert all(segment.y + segment.height == baseline for each in chart.columns for segment in each.segments)
    assert chart.columns[0].segments[0].tooltip == chart.columns[0].tooltip == "1 Nov: 4 invoices"
    assert [each.url for each in chart.columns] == ["/list?day=1", "/list?day=2", "/list?day=3"]
    assert chart.summary == "Invoices per day: 6 invoices in total; highest: 1 Nov, 4 invoices"


def test_a_negative_value_hangs_below_zero() -> None:
    chart = chart_of(Decimal(-50), Decimal(100), unit=MONEY)
    baseline = next(each.y for each in chart.ticks if each.is_zero)
    (below,), (above,) = (each.segments for each in chart.columns)
    assert (below.y, above.y + above.height) == (baseline, baseline)
    assert below.height * 2 == pytest.approx(above.height)
    assert chart.columns[0].value_label == "-$50"


def test_a_value_next_to_a_huge_one_can_still_be_seen() -> None:
    chart = chart_of(1, 10**15)
    assert [each.segments[0].height for each in chart.columns] == [2, PLOT_HEIGHT]


@pytest.mark.parametrize("count", [1, 6, 13, 30, 400])
def test_bars_stay_in_the_plot_and_labels_apart(count: int) -> None:
    chart = chart_of(*range(1, count + 1))
    assert all(0 <= each.segments[0].x < each.segments[0].x + each.segments[0].width <= 100 for each in chart.columns)
    assert 1 <= sum(bool(each.label) for each in chart.columns) <= 7
    assert sum(bool(each.label) and not each.is_minor for each in chart.columns) <= 4


def test_only_a_few_bars_have_their_values_above_them() -> None:
    assert [each.value_label for each in chart_of(1, 0, 3).columns] == ["1", "", "3"]
    assert {each.value_label for each in chart_of(*range(7)).columns} == {""}


def test_parts_are_stacked_and_series_without_values_are_left_out() -> None:
    bars = [
        StackedBar("1 Nov", (3, 0, 1), ("/paid", "/held", "/rejected"), "/all", "Week from 1 Nov 2026"),
        StackedBar("8 Nov", (0, 0, 2), ("/paid8", "/held8", "/rejected8"), "/all8"),
    ]
    chart = stacked_bar_chart("Invoices", SERIES, bars, unit=INVOICES, head="Week")
    first, second = ([*each.segments] for each in chart.columns)
    assert [(each.series, each.tone, each.height, each.url) for each in first] == [
        (0, "good", PLOT_HEIGHT * 3 / 4, "/paid"),
        (2, "bad", PLOT_HEIGHT / 4, "/rejected"),
    ]
    assert first[1].y + first[1].height == first[0].y
    assert [each.tooltip for each in [*first, *second]] == [
        "Week from 1 Nov 2026, Paid: 3 invoices",
        "Week from 1 Nov 2026, Rejected: 1 invoice",
        "8 Nov, Rejected: 2 invoices",
    ]
    assert [each.name for _, each in chart.series] == ["Paid", "Rejected"]
    assert list(chart.heads) == ["Week", "Paid", "Rejected", "Total"]
    table = [(row.name, [(cell.text, cell.url) for cell in row.cells]) for row in chart.rows]
    assert table == [
        ("Week from 1 Nov 2026", [("3", "/paid"), ("1", "/rejected"), ("4", "/all")]),
        ("8 Nov", [("0", "/paid8"), ("2", "/rejected8"), ("2", "/all8")]),
    ]


@pytest.mark.parametrize("bars, rows", [(31, 31), (32, 1)])
def test_the_table_of_a_long_chart_leaves_out_zeros(bars: int, rows: int) -> None:
    values = [StackedBar(f"Minute {each}", (int(each == 3), 0, 0), (None, None, None)) for each in range(bars)]
    chart = stacked_bar_chart("Requests", SERIES, values, unit=INVOICES, head="Minute")
    assert len(chart.columns) == bars
    assert len(chart.rows) == rows
    assert "Minute 3" in {each.name for each in chart.rows}


def test_listed_bars_are_relative_to_the_highest() -> None:
    bars = [Bar("Osprey", Decimal(200)), Bar("Heron", Decimal(50)), Bar("Ibis", Decimal(-10)), Bar("Wren", Decimal(0))]
    chart = bar_list("Spend", bars, unit=MONEY)
    assert [(each.name, each.text, each.width) for each in chart.bars] == [
        ("Osprey", "$200.00", 100),
        ("Heron", "$50.00", 25),
        ("Ibis", "-$10.00", 0),
        ("Wren", "$0.00", 0),
    ]


@pytest.mark.parametrize("values", [[], [0], [0, 0]])
def test_a_list_of_bars_without_values_is_empty(values: list[int]) -> None:
    assert bar_list("Spend", [Bar("A", value) for value in values], unit=MONEY).is_empty
