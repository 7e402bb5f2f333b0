"""Each step of `docs/first-change.md` works to the letter, on a copy of the repository."""

import os
import re
import shlex
import shutil
import subprocess
import textwrap
from pathlib import Path
from typing import NamedTuple

import pytest

from plankeeper.database.schema import LATEST_REVISION

PROJECT = Path(__file__).parents[2]
PAGE = (PROJECT / "docs/first-change.md").read_text()
CHANGES = ("Add a field", "Add an endpoint", "Add a page")
NEXT_REVISION = f"{int(LATEST_REVISION) + 1:04}"

# A run of whole files.
PYTEST = re.compile(r"\.venv/bin/pytest(?: [\w/.]+)+")
# A new file has its path above it.
BLOCK = re.compile(
    r"(?:^ *\*\*(?P<path>\S+)\*\*\n\n)?^(?P<indent> *)```(?P<kind>\w+)\n(?P<text>.*?)^ *```$", re.MULTILINE | re.DOTALL
)


class Block(NamedTuple):
    """A block of code of the page."""

    kind: str
    path: str | None
    text: str


def blocks(section: str) -> list[Block]:
    """The blocks of a section, in their order, with the numbers of the migrations."""
    text = PAGE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    text = text.replace("MMMM", LATEST_REVISION).replace("NNNN", NEXT_REVISION)
    return [
        Block(each["kind"], each["path"], textwrap.dedent(each["indent"] + each["text"].removeprefix(each["indent"])))
        for each in BLOCK.finditer(text)
    ]


def edit(text: str, hunk: str, name: str = "") -> str:
    """A file with a hunk applied. Its lines must be in the file exactly once, below a line that begins with `name`."""
    lines = [each or " " for each in hunk.splitlines()]
    old, new = ("\n" + "".join(each[1:] + "\n" for each in lines if each[0] != sign) for sign in "+-")
    text = "\n" + text
    assert text.count(old) == 1, f"these lines are {text.count(old)} times in the file:{old}"
    above = re.findall(r"^#+ .*" if name.startswith("#") else r"^\w.*", text.partition(old)[0], re.MULTILINE)
    assert not name or above[-1].startswith(name), f"these lines aren't in {name}, but in {above[-1]}:{old}"
    return text.replace(old, new)[1:]


def commands(text: str) -> list[str]:
    """The commands of a console. Consecutive runs of whole files are one: each start of the tests takes seconds."""
    found: list[str] = []
    for command in (line.removeprefix("$ ") for line in text.splitlines()):
        if found and PYTEST.fullmatch(found[-1]) and PYTEST.fullmatch(command):
            found[-1] += command.removeprefix(".venv/bin/pytest")
        else:
            found.append(command)
    return found


class Copy:
    """A copy of the repository, with the virtual environment of the tests."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=PROJECT, capture_output=True, text=True, check=True)
        for name in filter(None, listed.stdout.split("\0")):
            if (PROJECT / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(PROJECT / name, folder / name)
                os.utime(folder / name, (0, 0))  # older than the virtual environment, which make needn't create again
        (folder / ".venv").symlink_to(PROJECT / ".venv")
        self.run("git init --quiet")
        self.run("git add --all")

    def run(self, command: str) -> None:
        # The tests of the copy have a database of their own, whatever process runs this one.
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        environment = inherited | {"PYTHONPATH": str(self.folder / "src")}
        done = subprocess.run(
            shlex.split(command), cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{command}\n{done.stdout[-5000:]}\n{done.stderr[-2000:]}"

    def carry_out(self, block: Block) -> None:
        if block.kind == "console":
            for command in commands(block.text):
                self.run(command)
        elif block.kind == "diff":
            for change in block.text.split("--- ")[1:]:
                name, *hunks = re.split(r"\n@@ ?(.*)\n", change)
                file = self.folder / name
                for place, hunk in zip(hunks[::2], hunks[1::2], strict=True):
                    file.write_text(edit(file.read_text(), hunk, place))
        elif block.path:
            file = self.folder / block.path
            assert not file.exists()
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text)
        else:
            raise AssertionError(f"what should be done with this block?\n{block.text}")


@pytest.mark.parametrize(
    "hunk, expected",
    [("+x\n a\n", "x\na\nb\na b\n"), ("-b\n+c\n", "a\nc\na b\n"), (" a\n+x\n b\n", "a\nx\nb\na b\n")],
)
def test_a_hunk_is_applied_to_whole_lines(hunk: str, expected: str) -> None:
    assert edit("a\nb\na b\n", hunk) == expected


def test_a_hunk_is_below_the_name_that_the_page_shows() -> None:
    assert edit("class A:\n    a\n", "+    b\n     a\n", "class A") == "class A:\n    b\n    a\n"
    with pytest.raises(AssertionError, match="aren't in class B, but in class A"):
        edit("class B:\n    b\nclass A:\n    a\n", "+    b\n     a\n", "class B")


def test_runs_of_whole_files_are_one_command() -> None:
    text = "$ .venv/bin/pytest a b.py\n$ .venv/bin/pytest c/d.py\n$ .venv/bin/pytest e -k f\n$ .venv/bin/pytest g\n"
    runs = [".venv/bin/pytest a b.py c/d.py", ".venv/bin/pytest e -k f", ".venv/bin/pytest g"]
    assert commands(text) == runs


def test_every_step_of_the_first_change_works(tmp_path: Path) -> None:
    copy = Copy(tmp_path)
    steps = [block for section in CHANGES for block in blocks(section)]
    assert len(steps) > 20
    assert {each.kind for each in steps} == {"python", "html", "diff", "console"}
    for each in steps:
        copy.carry_out(each)
    copy.run(".venv/bin/ruff format --check src tests")
    copy.run(".venv/bin/ruff check src tests")
    copy.run(".venv/bin/pyright")
