"""Tables in Markdown."""

from collections.abc import Sequence


def markdown_table(rows: Sequence[Sequence[str]]) -> list[str]:
    """A table in Markdown with aligned columns. The first row is the header."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    header, *body = [f"| {' | '.join(map(str.ljust, row, widths))} |" for row in rows]
    return [header, f"| {' | '.join('-' * width for width in widths)} |", *body]
