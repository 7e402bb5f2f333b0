"""A bar chart of one size as SVG: a panel for each scenario, readable on light and dark paper."""

from html import escape

from benchmarks.report import rate, times
from benchmarks.results import US, SizeResults
from benchmarks.scenarios import Scenario

_WIDTH, _COLUMNS, _MARGIN = 960, 2, 24
_BAR, _STEP, _HEAD, _LABEL, _NUMBER = 14, 20, 30, 150, 130
_LEGEND = (
    "Behind each figure: how many times as many requests Plankeeper answers."
    " Dashed: floors, with no product around the statement; some are cut off."
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
    """Requests a second, each panel to a scale of its own."""
    title = f"Requests a second, {size.rows:,} participants (longer is better)"
    panels: list[str] = []
    tops = [60] * _COLUMNS
    width = (_WIDTH - _MARGIN * (_COLUMNS + 1)) // _COLUMNS
    for scenario in size.scenarios:
        column = tops.index(min(tops))
        drawn, height = _panel(size, scenario, width)
        x = _MARGIN + column * (width + _MARGIN)
        panels.append(f'<g transform="translate({x} {tops[column]})">{drawn}</g>')
        tops[column] += height
    frame = f'xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {max(tops)}"'
    return "\n".join([
        f'<svg {frame} role="img" aria-labelledby="title"><title id="title">{escape(title)}</title>',
        f"<style>{_STYLE}</style>",
        f'<text class="title" x="{_MARGIN}" y="28">{escape(title)}</text>',
        f'<text class="quiet" x="{_MARGIN}" y="46">{escape(_LEGEND)}</text>',
        *panels,
        "</svg>\n",
    ])  # fmt: skip


def _panel(size: SizeResults, scenario: Scenario, width: int) -> tuple[str, int]:
    """What a scenario looks like, and how high that is."""
    shown = [(system, figures) for system in size.systems if (figures := system.median(scenario))]
    # A floor may stand far above the rest: it is cut off, so that the rest can be told apart.
    most = max([figures.rate for system, figures in shown if not system.is_floor] or [1]) * 1.25
    lines = [f'<text class="panel" y="14">{escape(scenario.title)}</text>']
    for number, (system, figures) in enumerate(shown):
        y = _HEAD - 6 + number * _STEP
        long = max(1.0, min(1.0, figures.rate / most) * (width - _LABEL - _NUMBER))
        kind = "us" if system.name == US else "floor" if system.is_floor else "peer"
        told = " · ".join(
            part for part in (rate(figures), times(size.ratio(system, scenario)).replace(" x", "×")) if part
        )
        lines += [
            f'<text x="{_LABEL - 8}" y="{y + 11}" text-anchor="end">{escape(system.title)}</text>',
            f'<rect class="{kind}" x="{_LABEL}" y="{y}" width="{long:.1f}" height="{_BAR}" rx="2"/>',
            f'<text class="quiet" x="{_LABEL + long + 6:.1f}" y="{y + 11}">{escape(told)}</text>',
        ]
    return "".join(lines), _HEAD + len(shown) * _STEP + 18
