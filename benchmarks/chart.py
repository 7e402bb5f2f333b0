"""A bar chart of one size as SVG: a panel per scenario, for light and dark backgrounds."""

from html import escape

from benchmarks.report import format_rate, format_ratio
from benchmarks.results import OWN, SizeResults
from benchmarks.scenarios import Scenario

_WIDTH, _COLUMNS, _MARGIN = 960, 2, 24
_BAR_HEIGHT, _ROW_HEIGHT, _HEADER_HEIGHT, _LABEL_WIDTH, _VALUE = 14, 20, 30, 150, 130
_LEGEND = (
    "After each rate: how many times as many requests Plankeeper handles."
    " Dashed: lower bounds, which run only the statement; some bars are cut off."
)
_STYLE = """
text { font: 12px system-ui, sans-serif; fill: #1f2328; }
.title { font-size: 16px; font-weight: 600; } .panel { font-size: 13px; font-weight: 600; } .quiet { fill: #59636e; }
.us { fill: #0f766e; } .peer { fill: #7d8fa3; } .floor { fill: none; stroke: #7d8fa3; stroke-dasharray: 3 2; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; } .quiet { fill: #9198a1; }
  .us { fill: #2dd4bf; } .peer { fill: #6b7d92; } .floor { stroke: #8b9bb0; }
}
"""


def chart(size: SizeResults) -> str:
    """Requests per second. Each panel has its own scale."""
    title = f"Requests per second, {size.rows:,} participants (longer is better)"
    panels: list[str] = []
    tops = [60] * _COLUMNS
    width = (_WIDTH - _MARGIN * (_COLUMNS + 1)) // _COLUMNS
    for scenario in size.scenarios:
        column = tops.index(min(tops))
        panel, height = _panel(size, scenario, width)
        x = _MARGIN + column * (width + _MARGIN)
        panels.append(f'<g transform="translate({x} {tops[column]})">{panel}</g>')
        tops[column] += height
    frame = f'xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {max(tops)}"'
    return "\n".join(
        [
            f'<svg {frame} role="img" aria-labelledby="title"><title id="title">{escape(title)}</title>',
            f"<style>{_STYLE}</style>",
            f'<text class="title" x="{_MARGIN}" y="28">{escape(title)}</text>',
            f'<text class="quiet" x="{_MARGIN}" y="46">{escape(_LEGEND)}</text>',
            *panels,
            "</svg>\n",
        ]
    )


def _panel(size: SizeResults, scenario: Scenario, width: int) -> tuple[str, int]:
    """The panel of a scenario, and its height."""
    bars = [(system, measurement) for system in size.systems if (measurement := system.median(scenario))]
    # A lower bound can be far above the products. Its bar is cut off, so that the others stay distinguishable.
    maximum = max([measurement.rate for system, measurement in bars if not system.is_floor] or [1]) * 1.25
    lines = [f'<text class="panel" y="14">{escape(scenario.title)}</text>']
    for number, (system, measurement) in enumerate(bars):
        y = _HEADER_HEIGHT - 6 + number * _ROW_HEIGHT
        length = max(1.0, min(1.0, measurement.rate / maximum) * (width - _LABEL_WIDTH - _VALUE))
        css_class = "us" if system.name in OWN else "floor" if system.is_floor else "peer"
        label = " · ".join(
            part
            for part in (format_rate(measurement), format_ratio(size.ratio(system, scenario)).replace(" x", "×"))
            if part
        )
        lines += [
            f'<text x="{_LABEL_WIDTH - 8}" y="{y + 11}" text-anchor="end">{escape(system.title)}</text>',
            (
                f'<rect class="{css_class}" x="{_LABEL_WIDTH}" y="{y}"'
                f' width="{length:.1f}" height="{_BAR_HEIGHT}" rx="2"/>'
            ),
            f'<text class="quiet" x="{_LABEL_WIDTH + length + 6:.1f}" y="{y + 11}">{escape(label)}</text>',
        ]
    return "".join(lines), _HEADER_HEIGHT + len(bars) * _ROW_HEIGHT + 18
