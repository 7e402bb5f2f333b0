"""`.ci/run` ends with the sum of all test runs, and fails if one of them does or if none ran."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
CHECKS = "All checks passed!\n7 passed in 1.20s\n"
TESTS = "\x1b[32m....\x1b[0m\n======= 10 passed, 2 skipped, 1 warning in 65.02s (0:01:05) =======\n"
SYSTEM = "=== 3 passed in 1.00s ===\n=== 1 failed, 4 passed, 1 error in 2.00s ===\n"
FUZZ = "============================== 1 warning in 0.89s ==============================\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project whose make prints what a test tells it, and whose scripts do nothing."""
    for name in (".ci/run", "scripts/sum_test_runs.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(PROJECT / name, tmp_path / name)
    text = (tmp_path / ".ci/run").read_text()
    (tmp_path / ".ci/run").write_text(re.sub(r"^require .*\n", "", text, flags=re.MULTILINE))
    for name in ("node_modules", "audit"):
        script = tmp_path / f"scripts/{name}.sh"
        script.write_text("#!/bin/sh\n")
        script.chmod(0o755)
    make = tmp_path / "make"
    make.write_text('#!/bin/sh\ncat "$1.output"\nexit "$(cat "$1.status" 2>/dev/null || echo 0)"\n')
    make.chmod(0o755)
    for target in ("check", "test", "test-system", "fuzz"):
        (tmp_path / f"{target}.output").write_text("")
    return tmp_path


def run(folder: Path) -> tuple[int, str]:
    """The status, and the last line."""
    done = subprocess.run(
        ["bash", ".ci/run"], cwd=folder, env={"PATH": f"{folder}:/usr/bin:/bin"}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    return done.returncode, done.stdout.splitlines()[-1]


def test_the_last_line_sums_all_runs(folder: Path) -> None:
    for target, output in (("check", CHECKS), ("test", TESTS), ("test-system", "=== 3 passed in 1.00s ===\n")):
        (folder / f"{target}.output").write_text(output)
    (folder / "fuzz.output").write_text(FUZZ)
    assert run(folder) == (0, "20 passed, 0 failed, 2 skipped")


def test_a_failed_run_is_counted_and_fails(folder: Path) -> None:
    (folder / "test.output").write_text(TESTS)
    (folder / "test-system.output").write_text(SYSTEM)
    (folder / "test-system.status").write_text("2")
    assert run(folder) == (2, "17 passed, 2 failed, 2 skipped")


def test_a_failed_check_without_tests_fails(folder: Path) -> None:
    (folder / "check.status").write_text("1")
    assert run(folder) == (1, "0 passed, 0 failed, 0 skipped")


def test_a_run_without_tests_fails(folder: Path) -> None:
    assert run(folder) == (1, "0 passed, 0 failed, 0 skipped")
