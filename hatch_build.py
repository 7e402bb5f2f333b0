"""Adds the commit to the wheel, so that an installed program can report its origin, and requires the built site."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_SITE = "src/plankeeper/http/public/static/site"


class CommitHook(BuildHookInterface[Any]):
    """Writes `plankeeper/commit.txt` from PLANKEEPER_COMMIT, or from git if the project directory is a checkout.

    A wheel must contain the documentation site, which servers don't build.
    """

    _folder = ""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        commit = os.environ.get("PLANKEEPER_COMMIT", "").strip() or _describe(self.root)
        if version == "editable":
            return
        if not (Path(self.root) / _SITE / "manifest.json").exists():
            raise RuntimeError(f"The documentation site is missing in {_SITE}. Build it first: make docs")
        if not commit:
            return
        self._folder = tempfile.mkdtemp()
        file = Path(self._folder) / "commit.txt"
        file.write_text(f"{commit}\n")
        build_data["force_include"][str(file)] = "plankeeper/commit.txt"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002 - hatchling's
        if self._folder:
            shutil.rmtree(self._folder)


def _describe(root: str) -> str:
    """The commit, with `-dirty` if files have changed since; empty without git or a repository."""
    if not (Path(root) / ".git").exists():
        return ""
    command = ["git", "-C", root, "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603 - fixed
    except (OSError, subprocess.CalledProcessError):
        return ""
