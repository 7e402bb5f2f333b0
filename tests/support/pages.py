"""The documentation as the tests read it: pages, fenced blocks, tables, and the comparison of responses with examples.

In an example's response, `…` matches anything: inside a text for any characters, as the last item of a list
for any further items, as a field of an object for any further fields, as a line for any further lines.
"""

import json
import re
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

PROJECT = Path(__file__).parents[2]
ELLIPSIS = "…"


class Block(NamedTuple):
    """A fenced block: its page, the line of its fence, its language, its text."""

    page: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def end(self) -> int:
        """The line of the closing fence."""
        return self.line + self.text.count("\n") + 2


@cache
def pages() -> list[str]:
    """Every page of the documentation, relative to the project, in the order of reading."""
    found = sorted(path.relative_to(PROJECT).as_posix() for path in (PROJECT / "docs").rglob("*.md"))
    first = [
        "README.md",
        "CONTRIBUTING.md",
        "CHANGELOG.md",
        "docs/first-request.md",
        "docs/api/README.md",
        "docs/api/authentication.md",
        "docs/api/lists.md",
    ]
    return [*first, *(page for page in found if page not in first)]


@cache
def text_of(page: str) -> str:
    return (PROJECT / page).read_text()


@cache
def blocks(page: str) -> list[Block]:
    result: list[Block] = []
    language, start, inside = "", 0, list[str]()
    for number, line in enumerate(text_of(page).splitlines(), start=1):
        if line.startswith("```") and not start:
            language, start, inside = line[3:].strip(), number, []
        elif line == "```":
            result.append(Block(page, start, language, "\n".join(inside)))
            start = 0
        elif start:
            inside.append(line)
    assert not start, f"{page}:{start}: the block has no end"
    return result


def substitute(text: str, replacements: dict[str, str], times: int = 1) -> str:
    """The text with patterns replaced: each must be there as often as it says."""
    for pattern, replacement in replacements.items():
        text, count = re.subn(pattern, replacement, text, flags=re.MULTILINE)
        assert count == times, (pattern, count)
    return text


def without_blocks(page: str) -> str:
    """A page without its fenced blocks."""
    return re.sub(r"^ *```.*?^ *```$", "", text_of(page), flags=re.MULTILINE | re.DOTALL)


def section(page: str, heading: str) -> str:
    """The text under a heading, up to the next one."""
    parts = re.split(r"^#+ (.+)$", without_blocks(page), flags=re.MULTILINE)
    assert heading in parts[1::2], f"{page} has no section {heading!r}"
    return parts[parts.index(heading, 1) + 1]


def table_rows(text: str) -> list[list[str]]:
    """The cells of a section's tables, without the lines of their heads."""
    result: list[list[str]] = []
    lines = text.splitlines()
    for above, line, below in zip(["", *lines], lines, [*lines[1:], ""], strict=False):
        if line.startswith("|") and not re.fullmatch(r"[-| :]+", line) and not re.fullmatch(r"[-| :]+", below or "x"):
            result.append([cell.strip() for cell in line.strip("|").split(" | ")])
        assert not (line.startswith("|") and above and not above.startswith("|")), f"a table needs a blank line: {line}"
    return result


def differences(expected: Any, actual: Any, place: str = "$") -> list[str]:
    """The differences between a response and the example of a page."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        expected_fields = {name: value for name, value in expected.items() if name != ELLIPSIS}
        problems = [f"{place}.{name}: is missing" for name in expected_fields if name not in actual]
        if ELLIPSIS not in expected:
            problems += [f"{place}.{name}: is not shown" for name in actual if name not in expected_fields]
        shared = [name for name in expected_fields if name in actual]
        return problems + [
            problem
            for name in shared
            for problem in differences(expected_fields[name], actual[name], f"{place}.{name}")
        ]
    if isinstance(expected, list) and isinstance(actual, list):
        more = bool(expected) and expected[-1] == ELLIPSIS
        expected_items = expected[:-1] if more else expected
        if len(actual) < len(expected_items) or (len(actual) > len(expected_items) and not more):
            return [f"{place}: {len(actual)} items, not {len(expected_items)}"]
        pairs = enumerate(zip(expected_items, actual, strict=False))
        return [problem for index, pair in pairs for problem in differences(*pair, f"{place}[{index}]")]
    if expected == ELLIPSIS or (isinstance(expected, str) and isinstance(actual, str) and matches(expected, actual)):
        return []
    return [] if repr(expected) == repr(actual) else [f"{place}: is {actual!r}, not {expected!r}"]


def matches(expected: str, actual: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, expected.split(ELLIPSIS))), actual, re.DOTALL) is not None


def json_differences(expected: str, actual: str) -> list[str]:
    try:
        return differences(json.loads(expected, parse_float=Decimal), json.loads(actual, parse_float=Decimal))
    except ValueError as error:
        return [f"no JSON: {error}"]


def http_differences(expected: str, actual: str) -> list[str]:
    """The status line, the headers that are shown, and the body, of the output of `curl -i`."""
    expected_head, _, expected_body = expected.partition("\n\n")
    head, _, body = actual.replace("\r\n", "\n").partition("\n\n")
    status, *headers = expected_head.splitlines()
    actual_lines = head.splitlines()
    problems = [] if status == actual_lines[0] else [f"the status is {actual_lines[0]!r}, not {status!r}"]
    problems += [f"no header {each!r}" for each in headers if not any(matches(each, line) for line in actual_lines)]
    return problems + json_differences(expected_body, body)


# What a command prints if it takes more than five seconds, as on a busy machine.
PROGRESS_LINE = re.compile(r"^[\d.,]+ \w+ (?:read|written)(?:, creating indexes)?\n", re.MULTILINE)


def text_differences(expected: str, actual: str) -> list[str]:
    actual = PROGRESS_LINE.sub("", actual)
    return [] if matches(expected.rstrip(), actual.rstrip()) else [f"printed was:\n{actual}"]


OUTPUT_CHECKS = {"json": json_differences, "http": http_differences, "text": text_differences}


def heading_anchors(page: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", without_blocks(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
