"""Virtual environments with exactly the packages of lock files, linked from this environment instead of downloaded."""

import re
import venv
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

import pytest

from support.pages import PROJECT


def create_environment(folder: Path, source: Path, locks: list[str]) -> None:
    """An environment in `folder` with the packages of the lock files, and Plankeeper from the folder `source`."""
    venv.create(folder, with_pip=False, symlinks=True)
    [site] = folder.glob("lib/python*/site-packages")
    (site / "plankeeper.pth").write_text(f"{source}\n")
    write_script(folder / "bin" / "plankeeper", "plankeeper.__main__:main")
    for lock in locks:
        for name in pins(lock):
            link_package(installed(name, lock), site, folder / "bin")


def pins(lock: str) -> dict[str, str]:
    """The version of each package of a lock file."""
    text = (PROJECT / lock).read_text()
    return dict(re.findall(r"^([a-z0-9][\w.-]*)==([^\s;]+)", text, re.MULTILINE))


def installed(name: str, lock: str) -> Distribution:
    try:
        return distribution(name)
    except PackageNotFoundError:
        pytest.fail(f"{name} of {lock} is not installed here: run `make .venv/dev`")


def link_package(package: Distribution, site: Path, programs: Path) -> None:
    """Link the files of a package, and write its console scripts for the interpreter of this environment."""
    files = package.files or []
    for name in {file.parts[0] for file in files} - {"..", "__pycache__"}:
        if not (site / name).exists():
            (site / name).symlink_to(Path(str(package.locate_file(name))).resolve())
    for file in files:
        if file.parts[0] == ".." and file.parts[-2] == "bin":
            source = Path(str(package.locate_file(file))).resolve()
            with source.open("rb") as content:
                if content.read(2) != b"#!":
                    (programs / file.name).symlink_to(source)
    for entry in package.entry_points.select(group="console_scripts"):
        write_script(programs / entry.name, entry.value)


def write_script(path: Path, entry_point: str) -> None:
    module, _, function = entry_point.partition(":")
    # The worker processes of `serve` import the script again.
    run = f'if __name__ == "__main__":\n    sys.exit({function}())\n'
    path.write_text(f"#!{path.parent / 'python'}\nimport sys\nfrom {module} import {function}\n{run}")
    path.chmod(0o755)
