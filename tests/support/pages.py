"""The documentation as the tests read it: pages, fenced blocks, tables, and what an example's answer must match.

In an example's answer `…` stands for whatever is there: inside a text for any characters, as the last item of a list
for any further items, as a member of an object for any further members, as a line for any further lines.
"""

import json
import re
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

PROJECT = Path(__file__).parents[2]
MORE = "…"


class Block(NamedTuple):
    """A fenced block: its page, the line of its fence, its language, its text."""

    page: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


@cache
def pages() -> list[str]:
    """Every page of the documentation, relative to the project, in the order of reading."""
    found = sorted(path.relative_to(PROJECT).as_posix() for path in (PROJECT / "docs").rglob("*.md"))
    first = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/api/README.md", "docs/api/authentication.md"]
    return [*first, "docs/api/lists.md", *(page for page in found if page not in {*first, "docs/api/lists.md"})]


@cache
def text_of(page: str) -> str:
    return (PROJECT / page).read_text()


@cache
def blocks(page: str) -> list[Block]:
    found: list[Block] = []
    language, start, inside = "", 0, list[str]()
    for number, line in enumerate(text_of(page).splitlines(), start=1):
        if line.startswith("```") and not start:
            language, start, inside = line[3:].strip(), number, []
        elif line == "```":
            found.append(Block(page, start, language, "\n".join(inside)))
            start = 0
        elif start:
            inside.append(line)
    assert not start, f"{page}:{start}: the block has no end"
    return found


def prose(page: str) -> str:
    """A page without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", text_of(page), flags=re.MULTILINE | re.DOTALL)


def section(page: str, heading: str) -> str:
    """What stands under a heading, up to the next one."""
    parts = re.split(r"^#+ (.+)$", prose(page), flags=re.MULTILINE)
    assert heading in parts[1::2], f"{page} has no section {heading!r}"
    return parts[parts.index(heading, 1) + 1]


def rows(text: str) -> list[list[str]]:
    """The cells of a section's tables, without the lines of their heads."""
    found: list[list[str]] = []
    lines = text.splitlines()
    for above, line, below in zip(["", *lines], lines, [*lines[1:], ""], strict=False):
        if line.startswith("|") and not re.fullmatch(r"[-| :]+", line) and not re.fullmatch(r"[-| :]+", below or "x"):
            found.append([cell.strip() for cell in line.strip("|").split(" | ")])
        assert not (line.startswith("|") and above and not above.startswith("|")), f"a table needs a blank line: {line}"
    return found


def differences(shown: Any, got: Any, place: str = "$") -> list[str]:
    """Where an answer is not what a page shows."""
    if isinstance(shown, dict) and isinstance(got, dict):
        wanted = {name: value for name, value in shown.items() if name != MORE}
        wrong = [f"{place}.{name}: is missing" for name in wanted if name not in got]
        if MORE not in shown:
            wrong += [f"{place}.{name}: is not shown" for name in got if name not in wanted]
        shared = [name for name in wanted if name in got]
        return wrong + [fault for name in shared for fault in differences(wanted[name], got[name], f"{place}.{name}")]
    if isinstance(shown, list) and isinstance(got, list):
        more = bool(shown) and shown[-1] == MORE
        wanted_items = shown[:-1] if more else shown
        if len(got) < len(wanted_items) or (len(got) > len(wanted_items) and not more):
            return [f"{place}: {len(got)} items, not {len(wanted_items)}"]
        pairs = enumerate(zip(wanted_items, got, strict=False))
        return [fault for index, pair in pairs for fault in differences(*pair, f"{place}[{index}]")]
    if shown == MORE or (isinstance(shown, str) and isinstance(got, str) and matches(shown, got)):
        return []
    return [] if repr(shown) == repr(got) else [f"{place}: is {got!r}, not {shown!r}"]


def matches(shown: str, got: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, shown.split(MORE))), got, re.DOTALL) is not None


def json_differences(shown: str, got: str) -> list[str]:
    try:
        return differences(json.loads(shown, parse_float=Decimal), json.loads(got, parse_float=Decimal))
    except ValueError as error:
        return [f"no JSON: {error}"]


def http_differences(shown: str, got: str) -> list[str]:
    """The status line, the headers that are shown, and the body, of the output of `curl -i`."""
    shown_head, _, shown_body = shown.partition("\n\n")
    head, _, body = got.replace("\r\n", "\n").partition("\n\n")
    status, *headers = shown_head.splitlines()
    there = head.splitlines()
    wrong = [] if status == there[0] else [f"the status is {there[0]!r}, not {status!r}"]
    wrong += [f"no header {each!r}" for each in headers if not any(matches(each, line) for line in there)]
    return wrong + json_differences(shown_body, body)


def text_differences(shown: str, got: str) -> list[str]:
    return [] if matches(shown.rstrip(), got.rstrip()) else [f"printed was:\n{got}"]


ANSWERS = {"json": json_differences, "http": http_differences, "text": text_differences}
