"""The version of this program, and the commit that it was built from."""

from functools import cache
from pathlib import Path

from plankeeper import __version__

_PACKAGE = Path(__file__).parents[1]
_COMMIT_LENGTH = 12


@cache
def commit() -> str | None:
    """The first digits of the commit, for a wheel also whether files had changed since; None if it isn't known."""
    built = _PACKAGE / "commit.txt"  # hatch_build.py adds it to the wheel
    try:
        return built.read_text().strip() if built.exists() else _checked_out_commit(_PACKAGE.parents[1])
    except OSError:
        return None


def full_version() -> str:
    """The version for people, such as `0.1.0 (e678640f733d)`."""
    return f"{__version__} ({commit()})" if commit() else __version__


def _checked_out_commit(root: Path) -> str | None:
    """The commit of a checkout in `root`, read without git, which isn't always installed."""
    if not (root / "pyproject.toml").exists() or not (root / ".git").exists():
        return None
    git = root / ".git"
    if git.is_file():  # a worktree
        git = root / git.read_text().removeprefix("gitdir:").strip()
    head = (git / "HEAD").read_text().strip()
    if head.startswith("ref: "):
        head = _resolve(git, head.removeprefix("ref: "))
    return head[:_COMMIT_LENGTH] or None


def _resolve(git: Path, ref: str) -> str:
    shared = git / (git / "commondir").read_text().strip() if (git / "commondir").exists() else git
    if (shared / ref).exists():
        return (shared / ref).read_text().strip()
    lines = (shared / "packed-refs").read_text().splitlines()
    return next((line.split()[0] for line in lines if line.endswith(f" {ref}")), "")
