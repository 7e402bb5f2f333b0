"""No function over 40 lines, no file over 600, without SQL and docstrings; little copied SQL."""

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

from contract.sources import PROJECT, ROOT, modules, parse_source

MAX_FUNCTION_LINES = 40
MAX_FILE_LINES = 600
# The share of lines of SQL in passages of three lines or more that occur in another place, too.
MAX_COPIED_SQL = 0.05
# Comments that switch off the formatter, in `src`.
MAX_FORMATTER_EXCEPTIONS = 20

# Files that are longer.
LONG_FILES: dict[str, str] = {}
LONG_FUNCTIONS: dict[str, str] = {}

_SQL = re.compile(r"\s*(--[^\n]*\n\s*)*(with|select|insert|update|delete)\b", re.IGNORECASE)
_FORMATTER_EXCEPTION = re.compile(r"# fmt: (?:skip|off)(.*)")


def python_files() -> Iterator[Path]:
    folders = [ROOT, *(PROJECT / name for name in ("tests", "benchmarks", "scripts"))]
    return (path for folder in folders for path in sorted(folder.rglob("*.py")))


def relative_path(path: Path) -> str:
    return path.relative_to(PROJECT).as_posix()


def long_text(node: ast.AST) -> str:
    """The text of a string literal of several lines; a replacement field of an f-string is `{}`."""
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.end_lineno != node.lineno:
        return node.value
    return ""


def uncounted_lines(nodes: Iterable[ast.AST]) -> set[int]:
    """The lines of docstrings and SQL: of statements, and of constants that statements are composed of."""
    strings: dict[ast.expr, str] = {}
    named: set[ast.expr] = set()
    for node in nodes:
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.Expr) and node.value:
            named.add(node.value)  # a constant or a docstring
        elif isinstance(node, ast.expr) and node.end_lineno != node.lineno and (text := long_text(node)):
            strings[node] = text
    uncounted = [node for node, text in strings.items() if node in named or _SQL.match(text)]
    return {line for node in uncounted for line in range(node.lineno, (node.end_lineno or 0) + 1)}


def counted_length(first: int, last: int, uncounted: set[int]) -> int:
    return last + 1 - first - sum(first <= line <= last for line in uncounted)


@cache
def counted_lengths() -> tuple[dict[str, int], dict[str, int]]:
    """The counted lines of each file, and of each function."""
    files: dict[str, int] = {}
    functions_: dict[str, int] = {}
    known = {module.path: module for module in modules()}
    for path in python_files():
        source = path.read_text()
        nodes = known[path].nodes if path in known else tuple(ast.walk(parse_source(source)))
        uncounted = uncounted_lines(nodes)
        files[relative_path(path)] = counted_length(1, len(source.splitlines()), uncounted)
        for function in (node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)):
            length = counted_length(function.lineno, function.end_lineno or 0, uncounted)
            functions_[f"{relative_path(path)}:{function.name}"] = length
    return files, functions_


@pytest.mark.parametrize(
    "source, expected",
    [
        ("x = 1\ny = 2", 2),
        ('"""One\ntwo."""\nx = 1', 1),
        ('def f():\n    """One\n    two."""\n    return 1', 2),
        ('S = """\nselect 1\n"""\nx = 1', 1),
        ('S = f"""\nselect {C}\n"""\nx = 1', 1),
        ('C: LiteralString = """\nid, name\n"""\nx = 1', 1),
        ('f(db, """\n  -- why\n  select 1\n""")\nx = 1', 1),
        ('f(db, """\nplain text\n""")\nx = 1', 4),
    ],
)
def test_only_sql_and_docstrings_are_not_counted(source: str, expected: int) -> None:
    assert counted_length(1, len(source.splitlines()), uncounted_lines(ast.walk(parse_source(source)))) == expected


def test_all_code_is_checked() -> None:
    paths = {relative_path(path) for path in python_files()}
    assert {"src/plankeeper/server/app.py", "tests/conftest.py", "tests/contract/test_limits.py"} <= paths


def test_no_file_is_too_long() -> None:
    lengths, _ = counted_lengths()
    assert {name for name, length in lengths.items() if length > MAX_FILE_LINES} == set(LONG_FILES)


def test_no_function_is_too_long() -> None:
    _, lengths = counted_lengths()
    assert len(lengths) > 200
    assert {name for name, length in lengths.items() if length > MAX_FUNCTION_LINES} == set(LONG_FUNCTIONS)


def test_the_formatter_is_on_except_for_a_reason() -> None:
    exceptions = [
        (relative_path(path), match[1].strip())
        for path in sorted(ROOT.rglob("*.py"))
        for match in _FORMATTER_EXCEPTION.finditer(path.read_text())
    ]
    assert len(exceptions) <= MAX_FORMATTER_EXCEPTIONS
    assert [name for name, reason in exceptions if not reason] == []


def without_parts(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """The nodes without the texts within f-strings, which would count twice."""
    known = list(nodes)
    parts = {id(part) for each in known if isinstance(each, ast.JoinedStr) for part in each.values}
    yield from (each for each in known if id(each) not in parts)


def test_passages_of_sql_are_not_copied() -> None:
    statements = [
        [line for line in map(str.strip, text.splitlines()) if line]
        for module in modules()
        if not module.name.startswith("database.migrations")
        for text in map(long_text, without_parts(module.nodes))
        if "\n" in text and _SQL.match(text)
    ]
    passages = [passage for lines in statements for passage in zip(lines, lines[1:], lines[2:], strict=False)]
    times = Counter(passages)
    assert len(times) > 500
    assert sum(times[passage] > 1 for passage in passages) / len(passages) < MAX_COPIED_SQL
