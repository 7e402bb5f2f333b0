"""Law 9: no function over 40 lines, no file over 300 (tests: 500)."""

import ast
from collections.abc import Iterator
from pathlib import Path

from contract.sources import PROJECT, ROOT, functions

MAX_FUNCTION_LINES = 40
MAX_FILE_LINES = 300
MAX_TEST_FILE_LINES = 500

# Files that are longer.
LONG_FILES = {
    "src/plankeeper/database/migrations/versions/0001_first_tables.py": "one list of statements, never changed again",
}
LONG_FUNCTIONS: dict[str, str] = {}


def python_files() -> Iterator[Path]:
    folders = [ROOT, *(PROJECT / name for name in ("tests", "benchmarks", "scripts"))]
    return (path for folder in folders for path in sorted(folder.rglob("*.py")))


def relative_path(path: Path) -> str:
    return path.relative_to(PROJECT).as_posix()


def test_the_sweep_finds_the_code() -> None:
    found = {relative_path(path) for path in python_files()}
    assert {"src/plankeeper/app.py", "tests/conftest.py", "tests/contract/test_limits.py"} <= found


def test_no_file_is_too_long() -> None:
    lengths = {relative_path(path): len(path.read_text().splitlines()) for path in python_files()}
    limits = {name: MAX_TEST_FILE_LINES if name.startswith("tests/") else MAX_FILE_LINES for name in lengths}
    assert {name for name, length in lengths.items() if length > limits[name]} == set(LONG_FILES)


def test_no_function_is_too_long() -> None:
    lengths = {
        f"{relative_path(path)}:{function.name}": (function.end_lineno or 0) - function.lineno + 1
        for path in python_files()
        for function in functions(ast.parse(path.read_text()))
    }
    assert len(lengths) > 200
    assert {name for name, length in lengths.items() if length > MAX_FUNCTION_LINES} == set(LONG_FUNCTIONS)
