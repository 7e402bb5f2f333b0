"""Words that the project does not use, in documentation, docstrings, comments, messages and templates."""

import re
from collections.abc import Iterator
from pathlib import Path

from support.sweeps import sweep

PROJECT = Path(__file__).parents[2]

# Each with what to write instead.
BANNED = {
    "anew": "again, or regenerate",
    "keyless": "unauthenticated",
    "made-up": "sample",
    "told of": "notified of",
    "is told": "is notified, or receives",
    "what came of it": "the result",
    "puts right": "corrects, or fixes",
    "who gets in": "who has access",
    "as good as none": "ignored, or treated as missing",
    "none of ours": "unknown",
}
FOLDERS = ("docs", "src", "tests", "scripts", "packaging", ".ci", "benchmarks")
FILES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "Makefile", "pyproject.toml", "openapi.json")
SUFFIXES = {".md", ".py", ".html", ".js", ".css", ".sh", ".sql", ".service", ".svg", ""}
# Built from the documentation, with a theme.
SITE = PROJECT / "src/plankeeper/http/public/static/site"
THIRD_PARTY = {"swagger-ui-bundle.js", "swagger-ui.css", "axe.min.js"}


def is_prose(path: Path) -> bool:
    """Whether a file was written for the project. This file lists the phrases."""
    is_generated = SITE in path.parents or "node_modules" in path.parts
    is_text = path.suffix in SUFFIXES and path.name not in THIRD_PARTY and path.is_file()
    return is_text and not is_generated and path != Path(__file__)


def files() -> Iterator[Path]:
    yield from (PROJECT / name for name in FILES)
    for folder in FOLDERS:
        yield from filter(is_prose, sorted((PROJECT / folder).rglob("*")))


def occurrences(text: str) -> list[str]:
    """Each banned phrase with its line: `12: anew`. Line breaks and comment signs within a phrase count as spaces."""
    result: list[str] = []
    lower = text.lower()
    for phrase in BANNED:
        if any(word not in lower for word in phrase.split()):
            continue  # much faster than to search each file for each pattern
        pattern = r"\b" + r"[\s#]+".join(re.escape(word) for word in phrase.split()) + r"\b"
        matches = re.finditer(pattern, text, re.IGNORECASE)
        result += [f"{text.count(chr(10), 0, match.start()) + 1}: {phrase}" for match in matches]
    return result


def test_the_search_finds_a_phrase_over_two_lines() -> None:
    assert occurrences("A client\n# is\n# told Of it, Anew.") == ["3: anew", "3: told of", "2: is told"]
    assert occurrences("renewed, foretold") == []


@sweep("path", tuple(files()), ids=lambda path: path.relative_to(PROJECT).as_posix())
def test_no_banned_phrase_is_used(path: Path) -> None:
    assert occurrences(path.read_text()) == []
