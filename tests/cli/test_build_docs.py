"""`serve --build-docs`: the build beside the server, its one log line, and its end with the server."""

import os
from pathlib import Path

import click
import psutil
import pytest

from plankeeper.cli.documentation import DocumentationBuild
from support.server import wait_until


def checkout(folder: Path, recipe: str) -> Path:
    """A folder that looks like a checkout, in which `make docs` runs a recipe."""
    (folder / "mkdocs.yml").touch()
    (folder / "Makefile").write_text(f"docs:\n\t{recipe}\n")
    return folder


def test_the_build_runs_in_the_background_at_the_lowest_priority(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAKEFLAGS", "n")  # as if the server itself ran under `make --dry-run`
    build = DocumentationBuild(checkout(tmp_path, "@nice > built"))
    with build:
        build.start()
        assert wait_until(lambda: (tmp_path / "built").exists() and (tmp_path / "built").read_text()) == "19\n"


def test_a_failed_build_is_one_log_line_with_the_reason(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    build = DocumentationBuild(checkout(tmp_path, "@echo 'no such package' >&2; exit 1"))
    with build:
        build.start()
        wait_until(lambda: caplog.records)
    [record] = caplog.records
    assert record.levelname == "ERROR"
    assert record.getMessage() == "the documentation site could not be built, so /docs shows the API reference"
    assert vars(record)["reason"] == "no such package"


def test_without_make_the_reason_is_that_it_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    DocumentationBuild(checkout(tmp_path, "true")).start()
    [record] = caplog.records
    assert "nice" in vars(record)["reason"]


def is_over(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_a_build_ends_with_the_server_without_a_log_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    build = DocumentationBuild(checkout(tmp_path, "@echo $$$$ > pid; exec sleep 600"))
    with build:
        build.start()
        pid = int(wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text()))
        assert psutil.pid_exists(pid)
    wait_until(lambda: is_over(pid))
    assert caplog.records == []


def test_a_build_that_ends_when_the_server_does_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build = DocumentationBuild(checkout(tmp_path, "@sleep 600"))
    kill = os.killpg

    def end_before(group: int, number: int) -> None:
        """The group is gone when the signal is sent."""
        kill(group, number)
        wait_until(lambda: is_over(group))
        raise ProcessLookupError

    monkeypatch.setattr(os, "killpg", end_before)
    with build:
        build.start()


def test_without_a_checkout_there_is_nothing_to_build(tmp_path: Path) -> None:
    with pytest.raises(click.ClickException, match="works only in a checkout"):
        DocumentationBuild(tmp_path)
