"""Every `make` target starts in a fresh clone: its first step finds its programs and can import what it needs.

The clone's virtual environments contain exactly the packages of the lock files that `make` installs for a target. They
are linked from this environment instead of downloaded. `--help` starts each program without its actual work.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.locked_environment import create_environment

PROJECT = Path(__file__).parents[3]
LOCKS = {"run": ["requirements-embedded.lock", "requirements-build.lock"], "dev": ["requirements-dev.lock"]}
NOT_CLONED = (".git", ".venv*", ".plankeeper", ".bench", "node_modules", "*_cache", "axe")
# The programs that a script starts.
SCRIPT_PROGRAM = re.compile(r"\.venv/bin/[\w-]+")


def targets() -> list[str]:
    match = re.search(r"^\.PHONY: (.+)$", (PROJECT / "Makefile").read_text(), re.MULTILINE)
    assert match
    return match[1].split()


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the project with an environment for each stamp of the Makefile, `.venv-run` and `.venv-dev`."""
    folder = tmp_path_factory.mktemp("make") / "clone"
    shutil.copytree(PROJECT, folder, ignore=shutil.ignore_patterns(*NOT_CLONED), symlinks=True)
    for stamp, locks in LOCKS.items():
        create_environment(folder / f".venv-{stamp}", folder / "src", locks)
    (folder / "a folder").mkdir()
    (folder / "a folder" / "python").symlink_to(sys.executable)
    return folder


def make(clone: Path, target: str) -> list[str]:
    """The commands that `make` would run."""
    done = subprocess.run(
        ["make", "--no-print-directory", "--dry-run", f"PYTHON={clone / 'a folder' / 'python'}", target],
        cwd=clone,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.replace("\\\n", " ").splitlines()


def first_step(clone: Path, target: str) -> str:
    """Install the environment of a target, and return the first command of its own recipe, without redirection."""
    environment = clone / ".venv"
    environment.unlink(missing_ok=True)
    stamp = "dev" if any("requirements-dev.lock" in line for line in make(clone, target)) else "run"
    environment.symlink_to(f".venv-{stamp}")
    for name in ("run", "dev", "clients/ready"):
        (environment / name).parent.mkdir(exist_ok=True)
        (environment / name).touch()
    return re.sub(r" > \S+$", "", make(clone, target)[0])


@pytest.mark.parametrize("target", targets())
def test_the_first_step_of_a_target_starts_in_a_fresh_clone(clone: Path, target: str) -> None:
    command = first_step(clone, target)
    script = re.match(r"scripts/\S+", command)
    programs = sorted(set(SCRIPT_PROGRAM.findall((clone / script[0]).read_text()))) if script else [command]
    assert programs
    for program in programs:
        done = subprocess.run(
            ["bash", "-c", f"{program} --help"], cwd=clone, check=False, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, f"make {target}: {program}\n{done.stdout}{done.stderr}"


def test_an_environment_of_another_python_is_named(clone: Path, tmp_path: Path) -> None:
    (clone / ".venv").unlink(missing_ok=True)
    (clone / ".venv").symlink_to(".venv-run")
    other = tmp_path / "python"
    other.write_text("#!/bin/sh\necho 3.99\n")
    other.chmod(0o755)
    command = [clone / "scripts/check_python.sh"]
    done = subprocess.run([*command, other], check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert "not 3.99: delete .venv" in done.stderr
    assert subprocess.run([*command, sys.executable], check=False).returncode == 0
