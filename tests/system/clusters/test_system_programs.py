"""The embedded cluster on the PostgreSQL programs of the operating system, which PLANKEEPER_POSTGRES_BIN names."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.folder import temporary_folder
from support.program import ServeProcess, run_program

# Debian's PostgreSQL, the oldest supported version.
PROGRAMS = Path("/usr/lib/postgresql/15/bin")


@pytest.fixture(autouse=True)
def require_programs() -> None:
    if not PROGRAMS.is_dir() and "CI" not in os.environ:
        pytest.skip(f"{PROGRAMS} does not exist: install the package postgresql-15")


@pytest.fixture
def folders() -> Iterator[tuple[Path, Path]]:
    with temporary_folder() as one, temporary_folder() as two:
        yield one, two


def test_the_programs_of_the_system_serve_back_up_and_restore(folders: tuple[Path, Path], tmp_path: Path) -> None:
    (one, two), backup = folders, tmp_path / "backup.dump"
    programs = {"PLANKEEPER_POSTGRES_BIN": str(PROGRAMS)}
    original, restored = programs | {"PLANKEEPER_DATA_DIR": str(one)}, programs | {"PLANKEEPER_DATA_DIR": str(two)}
    server = ServeProcess(one, "--demo", **programs)
    try:
        assert Path(server.postmaster().cmdline()[0]) == PROGRAMS / "postgres"
        with server.client() as client:
            assert client.get("/participants").json()["pagination"]["total"] == 400
        doctor = run_program("doctor", **original)
        assert "PostgreSQL 15" in doctor.stdout, doctor
        assert run_program("backup", str(backup), **original).returncode == 0
    finally:
        assert server.stop() == 0
    listed = run_program("plan-managers", "list", **original)
    assert (listed.returncode, "Wattlebird Plans" in listed.stdout) == (0, True)
    assert run_program("restore", str(backup), **restored).returncode == 0
    assert run_program("plan-managers", "list", **restored) == listed


def test_other_programs_cannot_read_the_cluster(folders: tuple[Path, Path]) -> None:
    folder = str(folders[0])
    settings = {"PLANKEEPER_DATA_DIR": folder, "PLANKEEPER_POSTGRES_BIN": str(PROGRAMS)}
    assert run_program("migrate", **settings).returncode == 0
    refused = run_program("migrate", PLANKEEPER_DATA_DIR=folder)
    assert refused.returncode == 1
    assert f"The database in {folder}/postgres was created by PostgreSQL 15, but the programs in" in refused.stderr
    assert "PLANKEEPER_POSTGRES_BIN set to the programs of version 15" in refused.stderr
    assert run_program("migrate", **settings).returncode == 0
