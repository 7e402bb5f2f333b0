"""Law 9: no function over 40 lines, no file over 300 (tests: 500)."""

import ast
from collections.abc import Iterator
from pathlib import Path

from contract.sources import PROJECT, ROOT, functions

LONGEST_FUNCTION = 40
LONGEST_FILE = 300
LONGEST_TEST_FILE = 500

# Files that are longer.
LONG_FILES = {
    "src/plankeeper/database/migrations/versions/0001_first_tables.py": "one list of statements, never changed again",
}
LONG_FUNCTIONS: dict[str, str] = {}


def python_files() -> Iterator[Path]:
    folders = [ROOT, *(PROJECT / name for name in ("tests", "benchmarks", "scripts"))]
    return (path for folder in folders for path in sorted(folder.rglob("*.py")))


def name_of(path: Path) -> str:
    return path.relative_to(PROJECT).as_posix()


def test_the_sweep_finds_the_code() -> None:
    found = {name_of(path) for path in python_files()}
    assert {"src/plankeeper/app.py", "tests/conftest.py", "tests/contract/test_limits.py"} <= found


def test_no_file_is_too_long() -> None:
    lengths = {name_of(path): len(path.read_text().splitlines()) for path in python_files()}
    limits = {name: LONGEST_TEST_FILE if name.startswith("tests/") else LONGEST_FILE for name in lengths}
    assert {name for name, length in lengths.items() if length > limits[name]} == set(LONG_FILES)


def test_no_function_is_too_long() -> None:
    lengths = {
        f"{name_of(path)}:{function.name}": (function.end_lineno or 0) - function.lineno + 1
        for path in python_files()
        for function in functions(ast.parse(path.read_text()))
    }
    assert len(lengths) > 200
    assert {name for name, length in lengths.items() if length > LONGEST_FUNCTION} == set(LONG_FUNCTIONS)
